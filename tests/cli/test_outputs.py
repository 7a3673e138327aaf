"""Every place that a command writes to is checked while the command line is parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from driple.cli import main
from driple.cli.main import app
from driple.cli.outputs import check_output_file, check_output_folder
from driple.errors import ConfigError
from tests.cli.test_main import EXAMPLE, refused
from tests.cli.test_numbers import commands, cut_off, required

__all__ = ["cut_off"]  # a fixture

FILES = {"--html", "--plot", "--timeline"}
FOLDERS: set[str] = set()
# What `-o` names is a file in some commands, a folder in others; jobs build looks at it itself.
FOLDER_OUTPUT = {
    ("data", "import"),
    ("data", "label"),
    ("data", "simulate"),
    ("profile", "run"),
    *((name,) for name in ("train", "transfer", "evaluate", "measure", "record")),
}
LOOKS_ITSELF = {("jobs", "build")}


def outputs(*, folders: bool) -> list[tuple[tuple[str, ...], str]]:
    """Commands, and the options that name files, or folders, which they write."""
    options = []
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            flag = max(parameter.opts, key=len)
            is_folder = flag in FOLDERS or (flag == "--output" and path in FOLDER_OUTPUT)
            is_file = flag in FILES or (flag == "--output" and path not in FOLDER_OUTPUT)
            if path not in LOOKS_ITSELF and (is_folder if folders else is_file):
                options.append((path, flag))
    return options


def test_the_options_are_found() -> None:
    assert len(outputs(folders=False)) >= 9
    assert len(outputs(folders=True)) >= 7


@pytest.mark.parametrize(("path", "flag"), outputs(folders=False), ids=str)
def test_a_file_in_a_folder_that_does_not_exist_is_refused_before_any_work(
    path: tuple[str, ...],
    flag: str,
    cut_off: Any,  # the fixture
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = required(cut_off, path, flag)
    end = ".html" if flag == "--html" else ".csv" if flag == "--output" else ".png"
    assert main._run([*path, flag, str(tmp_path / "none" / f"x{end}"), *others]) == 2
    said = capsys.readouterr().err
    assert f"{flag} {tmp_path}/none/x{end}: the folder {tmp_path}/none does not exist" in said
    assert main._run([*path, flag, str(tmp_path / f"x{end}"), *others]) == 0


@pytest.mark.parametrize(("path", "flag"), outputs(folders=True), ids=str)
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(
    path: tuple[str, ...],
    flag: str,
    cut_off: Any,  # the fixture
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    others = required(cut_off, path, flag)
    assert main._run([*path, flag, str(tmp_path / "file" / "x"), *others]) == 2
    assert f"{flag} {tmp_path}/file/x: {tmp_path}/file is no folder" in capsys.readouterr().err
    assert main._run([*path, flag, str(tmp_path / "new" / "x"), *others]) == 0


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="it is a folder; give the name of a file"):
        check_output_file("--plot", tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match="may not be written"):
        check_output_file("--plot", tmp_path / "a.png")
    with pytest.raises(ConfigError, match="may not be written"):
        check_output_folder("--out", tmp_path / "a")


def test_a_picture_that_has_no_place_says_so_and_not_that_the_disk_is_full() -> None:
    said = refused("predict", EXAMPLE, "--plot", "/no-such-folder/x.png")
    assert "the folder /no-such-folder does not exist" in said
    assert "space" not in said
