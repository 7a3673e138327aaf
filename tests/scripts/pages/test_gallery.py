"""Each picture of the gallery ships, and its command is one that Driple takes."""

from __future__ import annotations

import shlex

from scripts.pages.gallery import FOLDER, PAGE, PICTURES, page
from tests.cli.test_main import driple


def test_the_page_is_current_and_each_picture_is_there() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
    for picture in PICTURES:
        assert (FOLDER / f"gallery-{picture.name}.png").stat().st_size > 10_000
    drawn = {file.name for file in FOLDER.glob("gallery-*")}
    assert drawn == {f"gallery-{picture.name}.png" for picture in PICTURES}


def test_a_command_answers() -> None:
    memory = next(picture for picture in PICTURES if picture.name == "memory")
    done = driple(*shlex.split(memory.command))
    assert done.returncode == 0, done.stderr
