"""Files appear whole or not at all, with the permissions that a plain write would give them."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from driple.errors import ConfigError, DatasetError
from driple.files import advice_on, atomic_replace, atomic_write, wrap_os_error


@pytest.fixture
def plain_umask() -> Iterator[None]:
    """New files are for all to read, whatever the shell of the tests says."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_the_file_holds_the_data_and_nothing_else_is_left(tmp_path: Path) -> None:
    """A new file, and then another content in its place."""
    for data in (b"one", b"", b"two"):
        atomic_write(tmp_path / "a.bin", data, error=ConfigError)
        assert content(tmp_path) == {"a.bin": data}


def test_all_is_on_the_disk_before_the_first_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flush, flush, rename, rename, flush the folder: what a power cut needs."""
    done: list[str] = []
    flush, rename = os.fsync, Path.replace

    def watched_flush(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        done.append("flush folder" if name == tmp_path.name else f"flush {name[:2]}")
        flush(descriptor)

    def watched_rename(part: Path, target: Path) -> Path:
        done.append(f"rename {target.name}")
        return rename(part, target)

    monkeypatch.setattr(os, "fsync", watched_flush)
    monkeypatch.setattr(Path, "replace", watched_rename)
    with atomic_replace(tmp_path / "b", tmp_path / "a") as parts:
        for part in parts:
            part.write_bytes(b"new")
    assert done == ["flush .b", "flush .a", "rename b", "rename a", "flush folder"]


def test_new_files_have_the_permissions_of_new_files(tmp_path: Path, plain_umask: None) -> None:
    """Others may read what the umask lets them read."""
    atomic_write(tmp_path / "open", b"", error=ConfigError)
    os.umask(0o077)
    atomic_write(tmp_path / "closed", b"", error=ConfigError)
    assert (mode(tmp_path / "open"), mode(tmp_path / "closed")) == (0o644, 0o600)


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, plain_umask: None) -> None:
    """What was secret stays secret, what ran still runs."""
    for bits in (0o600, 0o755, 0o444):
        file = tmp_path / f"{bits:o}"
        file.write_bytes(b"old")
        file.chmod(bits)
        atomic_write(file, b"new", error=ConfigError)
        assert (mode(file), file.read_bytes()) == (bits, b"new")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it leads to is replaced, there where it lies."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/file")
    atomic_write(tmp_path / "link", b"new", error=ConfigError)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "there") == {"file": b"new"}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, OSError])
def test_a_failure_in_the_middle_leaves_the_old_files(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    """Whatever ends the block: both files are as they were, no temporary one is left."""
    before = {"a": b"old a", "b": b"old b"}
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(failure), atomic_replace(tmp_path / "a", tmp_path / "b") as (first, second):
        first.write_bytes(b"new")
        second.write_bytes(b"ne")
        raise failure
    assert content(tmp_path) == before


def test_a_full_disk_is_the_callers_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the data is written, then there is no room: one line, and the old file stays."""
    (tmp_path / "a").write_bytes(b"old")

    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(DatasetError) as caught:
        atomic_write(tmp_path / "a", b"new data", error=DatasetError, advice="buy a disk")
    reason = "No space left on device; buy a disk"
    assert str(caught.value) == f"cannot write {tmp_path / 'a'}: {reason}"
    assert content(tmp_path) == {"a": b"old"}


def test_a_full_disk_may_show_only_when_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with delayed allocation: the flush fails, nothing is renamed."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device; free some space or choose"):
        atomic_write(tmp_path / "a", b"new", error=ConfigError)
    assert content(tmp_path) == {}


def test_the_advice_fits_the_reason(tmp_path: Path) -> None:
    """Space is of no help where a folder is missing."""
    with pytest.raises(ConfigError, match=r"the folder .*/none does not exist: make it"):
        atomic_write(tmp_path / "none" / "a", b"new", error=ConfigError)
    assert "free some space" in advice_on(OSError(errno.ENOSPC, "full", "a"))
    assert advice_on(OSError(errno.EACCES, "no", "a")) == "choose another place"


def test_no_folder_and_no_file_are_refused(tmp_path: Path) -> None:
    """A folder that is missing, a folder in place of the file, and a device, which stays one."""
    with pytest.raises(ConfigError, match="No such file or directory"):
        atomic_write(tmp_path / "none/a", b"", error=ConfigError)
    (tmp_path / "pipe.d").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe.d", "pipe"):
        with pytest.raises(ConfigError, match=f"{name}: it is there and is no regular file"):
            atomic_write(tmp_path / name, b"", error=ConfigError)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_only_what_the_system_refuses_is_told_in_one_line() -> None:
    """Defects keep their own type and place."""
    with (
        pytest.raises(ConfigError, match=r"^cannot read x: no reason; try y$"),
        wrap_os_error(ConfigError, "read x", "try y"),
    ):
        raise OSError("no reason")
    with pytest.raises(ZeroDivisionError), wrap_os_error(ConfigError, "read x"):
        raise ZeroDivisionError


def test_what_a_killed_process_has_left_goes_with_the_next_write(tmp_path: Path) -> None:
    """Of this host alone; a process that still runs keeps its file."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with atomic_replace(tmp_path / "rows.csv") as (part,):
        part.write_text("a")
    host = part.name.split(".")[3].split("-")[0]
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    left, running, elsewhere = (
        folder / f".rows.csv.{name}-{number}-00000000-0.tmp"
        for name, number in ((host, dead.pid), (host, os.getpid()), ("ffffff", dead.pid))
    )
    for file in (left, running, elsewhere):
        file.write_text("half")
    atomic_write(folder / "other.csv", b"b", error=ConfigError)
    assert sorted(folder.iterdir()) == sorted([elsewhere, running, folder / "other.csv"])
