"""Clearing the caches of the file system."""

import os
import time
from pathlib import Path

import pytest

from driple.errors import ConfigError, MeasureError
from driple.profiler import caches
from driple.profiler.caches import check_data, choose_clearer, data_files, fadvise

MIB = 2**20


def refuse(_: object) -> None:
    raise MeasureError("not permitted")


def test_files_of_folders_are_found(tmp_path: Path) -> None:
    for name in ("a", "b/c", "b/d/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = {str(file.relative_to(tmp_path)) for file in data_files([tmp_path])}
    assert files == {"a", "b/c", "b/d/e"}
    assert [*data_files([tmp_path / "a"])] == [tmp_path / "a"]


def test_without_permission_the_data_files_are_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not root, or a container that refuses: file by file, if they are named; else it is said."""
    monkeypatch.setattr(caches, "drop_caches", refuse)
    assert choose_clearer([tmp_path]) == "fadvise"
    with pytest.raises(MeasureError, match="--set reads=PATH"):
        choose_clearer([])


def test_missing_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not there"):
        check_data([tmp_path, tmp_path / "none"])


def test_cleared_files_are_read_from_the_disk_again(tmp_path: Path) -> None:
    """The kernel counts what this process had to read: nothing when cached, all when cleared."""
    file = tmp_path / "data"
    file.write_bytes(os.urandom(8 * MIB))
    os.sync()

    def bytes_from_disk() -> int:
        before = _read_bytes()
        file.read_bytes()
        return _read_bytes() - before

    if not Path("/proc/self/io").exists():
        pytest.skip("the kernel does not count a process's reads")
    fadvise([file])
    time.sleep(0.1)
    cold = bytes_from_disk()
    if cold == 0:
        pytest.skip(f"{tmp_path} is in memory, or its file system keeps what it has")
    assert cold >= 7 * MIB
    assert bytes_from_disk() < MIB


def _read_bytes() -> int:
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes"):
            return int(line.split()[1])
    raise AssertionError
