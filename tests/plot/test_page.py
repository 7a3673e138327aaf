"""The frame of pages: what users name is text, whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.plot.page import facts, heading, items, page, paragraphs, picture, table, write_text
from tests.plot.pages import check_page

ODD = "<script>alert('1')</script> & \"x\""


def test_odd_text_stays_text() -> None:
    text = page(ODD, [
        heading(ODD), paragraphs([ODD, ""]), items([ODD]), facts([(ODD, ODD)]),
        table([ODD], [[ODD], [ODD]], kinds={0: "best"}),
    ])  # fmt: skip
    check_page(text)
    assert text.count("&lt;script&gt;") == 10
    assert '<tr class="best">' in text


def test_empty_parts_are_nothing() -> None:
    assert [table(["a"], []), items([]), facts([]), picture(""), paragraphs([""])] == [""] * 5


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_text("old", file)
    write_text("new \ud800", file)
    assert file.read_text() == "new ?"
    with pytest.raises(ConfigError, match="cannot write"):
        write_text("x", tmp_path / "none" / "page.html")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
