"""Tasks for tests of engines."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from driple.errors import ConfigError


def scaled(shared: int, number: int) -> int:
    return shared * number


def refused(shared: int, number: int) -> int:
    if number == 3:
        raise ConfigError(f"no {number}, {shared}")
    return number


def killed_once(shared: Path, number: int) -> int:
    """Ends its own process the first time that an odd item is asked for."""
    mark = shared / str(number)
    if number % 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def always_killed(shared: int, number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return shared + number


def process_of(shared: int, number: int) -> int:
    """The process that works."""
    return os.getpid()
