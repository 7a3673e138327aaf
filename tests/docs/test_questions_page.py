"""The page of seven questions: one command each, which runs, with its output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.pages.commands import BLOCK, COMMAND, main, printed
from scripts.settings.shipped import DOCS

PAGE = DOCS / "questions.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = COMMAND.findall(TEXT)


def test_there_is_one_command_for_each_question() -> None:
    headings = re.findall(r"^## (\d)\. .*\?$", TEXT, re.MULTILINE)
    assert headings == list("1234567")
    blocks = BLOCK.findall(TEXT)
    assert len(blocks) == len(COMMANDS) == 7
    assert all(len(block.splitlines()) > 3 for block in blocks), "python -m scripts.pages.commands"


def test_a_command_of_the_page_runs_and_has_the_columns_that_are_shown() -> None:
    (command,) = [one for one in COMMANDS if "--epochs 10" in one]
    (block,) = [one for one in BLOCK.findall(TEXT) if command in one]
    header = next(line for line in block.splitlines() if line.startswith("machines"))
    assert (
        header.split()
        == next(
            line for line in printed(command).splitlines() if line.startswith("machines")
        ).split()
    )


@pytest.mark.slow
def test_the_page_shows_what_its_commands_print() -> None:
    assert main(["--check"]) == 0


def test_the_page_is_part_of_the_site() -> None:
    assert "questions" in (Path(PAGE).parent / "index.md").read_text(encoding="utf-8")
