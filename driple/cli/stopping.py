"""Commands that must tidy up when a scheduler stops them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ending_on_sigterm"]

_STOPPED = 143  # what a shell calls the end by SIGTERM


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command like Ctrl-C: its processes end, its namespaces are removed.

    The handler that was there before is put back.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(_STOPPED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
