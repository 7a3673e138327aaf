"""No log lines of transformers while Driple reads a model.

They tell how to train or load weights, and would stand between the lines of an answer.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet_transformers"]


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No log lines of transformers within the block, if it is imported by then.

    Its import sets the level of its logger, so an import within the block ends the silence.
    """
    if "transformers" not in sys.modules:
        yield
        return
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
