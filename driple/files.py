"""Files that appear whole or not at all: a full disk or a kill leaves what was there before.

    data -> temporary file beside the target -> flushed to the disk -> renamed over the target

Entry points: `atomic_write` for bytes in hand; `atomic_replace` for code that writes files itself,
also several that belong together; `wrap_os_error` for the one line that a failure ends in.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from driple.errors import DripleError

__all__ = [
    "ADVICE",
    "advice_on",
    "atomic_replace",
    "atomic_write",
    "is_nameable",
    "printable_name",
    "wrap_os_error",
]

ADVICE = "free some space or choose another place"
_LONGEST_PART, _LONGEST_PATH = 255, 4095  # bytes, NAME_MAX and PATH_MAX of Linux
_BEGIN = 40  # characters of a target's name in that of its temporary file
_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def atomic_write(
    target: Path, data: bytes, *, error: type[DripleError], advice: str = ADVICE
) -> None:
    """Put the data into the file, in place of what it held.

    Args:
        target: the file; its folder must be there.
        data: all that it shall hold.
        error: what is raised if that fails.
        advice: what to do then, the end of the error's line.

    Raises:
        DripleError: of the type `error`: it cannot be written; the target is as it was.
    """
    with wrap_os_error(error, f"write {target}", advice), atomic_replace(target) as (part,):
        part.write_bytes(data)


@contextmanager
def atomic_replace(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Names for temporary files, which take their targets' places if the block ends well.

    The block must write every one of them. All are on the disk before the first is renamed; they
    are renamed in the order given. A target that is there keeps its permission bits, and a link
    stays a link. After an exception no temporary file is left and every target is as it was, unless
    one of several could be renamed and the next could not. What processes of this host that were
    killed have left in the folders is removed, once in a process.

    Raises:
        OSError: a target is no regular file, or the system refuses.
    """
    for target in targets:
        if target.exists() and not target.is_file():
            raise OSError(errno.EINVAL, "it is there and is no regular file", str(target))
    places = [target.resolve() for target in targets]
    for place in places:
        _remove_leftovers(place.parent)
    token = f"{_host()}-{os.getpid()}-{os.urandom(4).hex()}"
    parts = tuple(  # the target's name may be as long as a name can be
        place.with_name(f".{place.name[:_BEGIN]}.{token}-{number}.tmp")
        for number, place in enumerate(places)
    )
    try:
        yield parts
        for part, place in zip(parts, places, strict=True):
            if place.exists():
                part.chmod(stat.S_IMODE(place.stat().st_mode))
            _flush(part)
        for part, place in zip(parts, places, strict=True):
            part.replace(place)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    for folder in dict.fromkeys(place.parent for place in places):
        _flush(folder)


@cache
def _remove_leftovers(folder: Path) -> None:
    """Temporary files whose process has ended; those of other hosts stay."""
    for left in folder.glob(f".*.{_host()}-*.tmp"):
        number = left.name.rpartition(f".{_host()}-")[2].partition("-")[0]
        if number.isdecimal() and not _is_running(int(number)):
            left.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    return True


@cache
def _host() -> str:
    """This host in a name: hosts that share a folder have process numbers of their own."""
    return hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:6]


def is_nameable(path: str) -> bool:
    """Whether a system can look a path up: neither a part of it nor the whole is too long."""
    parts = os.fsencode(path).split(b"/")
    return max(map(len, parts)) <= _LONGEST_PART and len(os.fsencode(path)) <= _LONGEST_PATH


def printable_name(name: str) -> str:
    r"""A file's name as text: bytes that are not UTF-8 are shown, as `\xff`."""
    return os.fsencode(name).decode(errors="backslashreplace")


@contextmanager
def wrap_os_error(error: type[DripleError], task: str, advice: str = ADVICE) -> Iterator[None]:
    """Turn an OSError of the block into one of ours: `cannot TASK: REASON; ADVICE`.

    The usual advice fits the reason: space is of no help where a folder is missing.
    """
    try:
        yield
    except OSError as reason:
        fitting = advice_on(reason) if advice == ADVICE else advice
        raise error(f"cannot {task}: {reason.strerror or reason}; {fitting}") from reason


def advice_on(reason: OSError) -> str:
    """What helps where the system refuses to write."""
    if reason.errno == errno.ENOENT and isinstance(reason.filename, str | os.PathLike):
        folder = Path(reason.filename).absolute().parent
        if not folder.is_dir():
            return f"the folder {folder} does not exist: make it, or choose another place"
    if reason.errno in _SPACE:
        return ADVICE
    return "choose another place"


def _flush(path: Path) -> None:
    """Have a file's content, or a folder's names, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
