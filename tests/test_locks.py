"""Locks: one at a time, released by a kill, and never a way to write elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from driple.errors import MeasureError
from driple.locks import locked, take_lock

HOLDER = """
import sys, time
from pathlib import Path
from driple.errors import MeasureError
from driple.locks import locked
with locked(Path(sys.argv[1]), error=MeasureError, held="held"):
    print("up", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_refused_and_a_kill_releases(tmp_path: Path) -> None:
    """The file stays; it means nothing."""
    file = tmp_path / "a.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        with pytest.raises(MeasureError, match=r"^held$"):
            take_lock(file, error=MeasureError, held="held")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert file.exists()
    with locked(file, error=MeasureError, held="held"):
        pass
    with locked(file, error=MeasureError, held="held"):
        assert file.stat().st_mode & 0o777 == 0o600


def test_the_file_is_never_written(tmp_path: Path) -> None:
    """What a file of ours holds stays."""
    file = tmp_path / "a.lock"
    file.write_text("kept")
    with locked(file, error=MeasureError, held=""):
        pass
    assert file.read_text() == "kept"


def test_links_and_other_files_are_refused(tmp_path: Path) -> None:
    """Symbolic links, also to nothing; hard links; folders; pipes."""
    target = tmp_path / "target"
    target.write_text("kept")
    links = {name: tmp_path / name for name in ("symbolic", "to_nothing", "hard", "folder", "pipe")}
    links["symbolic"].symlink_to(target)
    links["to_nothing"].symlink_to(tmp_path / "nothing")
    os.link(target, links["hard"])
    links["folder"].mkdir()
    os.mkfifo(links["pipe"])
    for link in links.values():
        with pytest.raises(MeasureError, match="remove it and run again"):
            take_lock(link, error=MeasureError, held="")
    assert target.read_text() == "kept"
    assert not (tmp_path / "nothing").exists()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who made it could hold its lock for ever."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(MeasureError, match="no plain file of yours"):
        take_lock(tmp_path / "a.lock", error=MeasureError, held="")
