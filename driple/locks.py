"""Locks on files: one run at a time in a folder, or on a machine.

    file --flock--> held until the block ends or the process does, however it ends

The system releases the lock of a killed process, so a lock file that is left means nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driple.errors import DripleError
from driple.units import counted

__all__ = ["locked", "take_lock"]

_MODE = 0o600


@contextmanager
def locked(file: Path, *, error: type[DripleError], held: str) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be, while the block runs.

    Raises:
        DripleError: of the type `error`: `held`, if another process has it; or why not.
    """
    descriptor = take_lock(file, error=error, held=held)
    try:
        yield
    finally:
        os.close(descriptor)


def take_lock(file: Path, *, error: type[DripleError], held: str) -> int:
    """The descriptor that holds the lock of a file; closing it gives the lock back.

    The file may lie in a folder where others can write: it is not followed if it is a link, never
    truncated or written, and refused unless it is a plain file of this user.

    Args:
        file: that stands for what is locked; its folder must be there.
        error: what is raised.
        held: its message if another process has the lock.

    Raises:
        DripleError: of the type `error`.
    """
    import fcntl  # not on Windows, where nothing is measured or trained

    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags, _MODE)
    except OSError as reason:
        raise error(
            f"cannot open lock file {file}: {reason.strerror or reason}; it must be a plain file "
            "of yours, and no link: remove it and run again"
        ) from reason
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid != os.geteuid():
            raise error(
                f"lock file {file} is no plain file of yours (user {status.st_uid}, "
                f"{counted(status.st_nlink, 'name')}); remove it and run again"
            )
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as reason:
        os.close(descriptor)
        raise error(held) from reason
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
