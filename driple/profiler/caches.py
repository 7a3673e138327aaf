"""Clear the file system's caches before step 3 (section II-B).

drop_caches      clears all caches of the machine; needs root, and a kernel that permits it
fadvise          asks the kernel to drop the cached pages of each data file; needs no permission
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from driple.errors import ConfigError, MeasureError

__all__ = ["CLEARERS", "check_data", "choose_clearer", "data_files"]

_DROP = Path("/proc/sys/vm/drop_caches")
_ALL = "3\n"  # page cache, directory entries and inodes


def check_data(data: Sequence[Path]) -> None:
    """Raise ConfigError if a file or folder to clear does not exist."""
    for place in data:
        if not place.exists():
            raise ConfigError(
                f"--set reads={place} is not there; give the files that the script reads"
            )


def data_files(data: Sequence[Path]) -> Iterator[Path]:
    """Every file in these places."""
    for place in data:
        if place.is_file():
            yield place
        else:
            for folder, _, names in os.walk(place):
                yield from (Path(folder) / name for name in names)


def choose_clearer(data: Sequence[Path]) -> str:
    """The function that clears caches on this machine.

    Args:
        data: files, or folders of files, that the script reads.

    Raises:
        MeasureError: no method is permitted.
    """
    if os.access(_DROP, os.W_OK):
        try:
            drop_caches(data)
        except MeasureError:  # a container may have the file and refuse to write it
            pass
        else:
            return "drop_caches"
    if data:
        return "fadvise"
    raise MeasureError(
        "clearing all caches is not permitted here; name the data files with --set reads=PATH, so "
        "that they can be cleared one by one"
    )


def drop_caches(_: Sequence[Path]) -> None:
    """Clear all caches of this machine.

    Raises:
        MeasureError: the kernel refuses.
    """
    os.sync()  # dirty pages cannot be dropped
    try:
        _DROP.write_text(_ALL)
    except OSError as error:
        raise MeasureError(f"cannot clear caches with {_DROP}: {error.strerror}") from error


def fadvise(data: Sequence[Path]) -> None:
    """Ask the kernel to drop the cached pages of these files.

    Raises:
        MeasureError: a file cannot be opened.
    """
    os.sync()
    for file in data_files(data):
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except OSError as error:
            raise MeasureError(
                f"cannot clear {file} from the cache: {error.strerror}; --set reads must name "
                "files that can be read"
            ) from error
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


CLEARERS: dict[str, Callable[[Sequence[Path]], None]] = {
    "drop_caches": drop_caches,
    "fadvise": fadvise,
}
