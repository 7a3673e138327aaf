"""Whoever reads what a command prints may stop, may be missing, and names may be any bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "datasets" / "examples" / "resnet20.pbtxt"
LONG = "x" * 300


def driple(command: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """What a shell shows of a command line in which `driple` stands for the command."""
    script = f'driple() {{ {sys.executable} -m driple "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script,
         "bash", *map(os.fspath, map(str, arguments))],
        cwd=ROOT, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["list devices", "predict --json $1", "--help"])
@pytest.mark.parametrize("reader", ["true", "head -1"])
def test_a_reader_that_stops_is_no_fault(command: str, reader: str) -> None:
    """Nothing is printed of it, neither by a command nor by Python as it ends."""
    ended = driple(f"driple {command} | {reader}", EXAMPLE)
    assert ended.returncode == 0, ended.stderr
    assert b"Error" not in ended.stderr
    assert b"Errno" not in ended.stderr


def test_messages_that_nobody_reads_are_no_fault() -> None:
    ended = driple("driple predict nosuch 2>&1 | true")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.parametrize("where", [">&-", "1</dev/null", ">/dev/full"])
def test_output_that_cannot_be_written_is_one_line(where: str) -> None:
    """A closed stdout, one for reading, and a full disk."""
    ended = driple(f"driple list links {where}")
    assert ended.returncode == 2
    assert ended.stdout == b""
    lines = [line for line in ended.stderr.splitlines() if b"sources and dates" not in line]
    assert len(lines) == 1
    assert lines[0].startswith(b"driple: ")


def test_a_closed_stderr_sends_nothing_to_stdout() -> None:
    ended = driple("driple predict nosuch 2>&-")
    assert (ended.returncode, ended.stdout) == (2, b"")


@pytest.mark.parametrize(
    "command",
    [
        "predict $1 --plot $2.png",
        "predict $1 --plot $2/x.png",
        "predict $1 --setting $2.yaml",
        "predict $1 --checkpoint $2",
        "data list $2",
        "jobs build resnet20/cifar10/b32/sgd/sync -o $2.pb",
    ],
)
def test_names_that_are_too_long_are_one_line(command: str) -> None:
    """A part of a path has at most 255 bytes."""
    ended = driple(f"driple {command}", EXAMPLE, LONG)
    assert ended.returncode == 2
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(b"driple: ")
    assert b"too long" in last


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    """A temporary file beside the target has a name of its own."""
    picture = tmp_path / f"{'y' * 251}.png"
    assert driple("driple predict $1 --plot $2", EXAMPLE, picture).returncode == 0
    assert list(tmp_path.iterdir()) == [picture]


@pytest.mark.parametrize("name", [b"a-\xff.pbtxt", b"a$b_{$.pbtxt"])
def test_pictures_of_files_of_any_name(name: bytes, tmp_path: Path) -> None:
    """Neither bytes that are not UTF-8 nor what looks like a formula stops a picture."""
    pytest.importorskip("matplotlib")
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    file.write_bytes(EXAMPLE.read_bytes())
    picture = tmp_path / "a.png"
    for command in (
        "predict",
        "predict --method all",
        "inspect",
        "plan --batch-size 24 --instance p3",
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "driple", *command.split(), file, "--plot", picture],
            cwd=ROOT, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        picture.unlink()
