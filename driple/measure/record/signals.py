"""Signals to a recorder: those of the command reach it, and the record is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["forwarding_to", "handling"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def forwarding_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send SIGINT and SIGTERM on to a process; a terminal sends Ctrl-C to both by itself.

    Args:
        process: which gets them.
    """

    def forward(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not _is_foreground():
            process.send_signal(number)

    with handling(forward):
        yield


@contextmanager
def handling(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM while the block runs; the handlers of before are put back.

    Args:
        handler: as for `signal.signal`.
    """
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old or signal.SIG_DFL)


def _is_foreground() -> bool:
    """Whether this process is in the foreground of a terminal, which signals the whole group."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return False
