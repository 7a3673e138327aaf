"""No log lines of transformers, and no warnings of libraries, while Driple reads a model.

They tell how to train or load weights, and would stand between the lines of an answer.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet_transformers"]


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No warnings within the block, and no log lines of transformers if it is imported by then.

    Its import sets the level of its logger, so an import within the block ends the silence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
