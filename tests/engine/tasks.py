"""Tasks for tests of engines."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from driple.errors import ConfigError


def scaled(shared: int, item: int) -> int:
    return shared * item


def refused(shared: int, item: int) -> int:
    if item == 3:
        raise ConfigError(f"no {item}, {shared}")
    return item


def killed_once(shared: Path, item: int) -> int:
    """Ends its own process the first time that an odd item is asked for."""
    mark = shared / str(item)
    if item % 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def always_killed(shared: int, item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return shared + item
