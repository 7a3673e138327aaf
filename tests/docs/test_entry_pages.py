"""Entry pages are short: at most 700 words and a single table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_WORDS = 700


def num_words(page: str) -> int:
    """Words of a page; each cell of a table counts by itself."""
    return len(page.replace("|", " ").split())


def num_tables(page: str) -> int:
    """Tables of a page, by the rules under their heads."""
    return len(re.findall(r"^\|[ :-]*-[ :|-]*\|$", page, re.MULTILINE))


@pytest.mark.parametrize("name", ["accuracy.md", "memory.md"])
def test_an_entry_page_is_short(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert num_words(page) <= MOST_WORDS
    assert num_tables(page) == 1
    assert "{{" not in page


def test_words_and_tables_are_counted() -> None:
    page = "a page\n\n|a|b c|\n|---|--:|\n|1||\n\n| x |\n| --- |\n"
    assert num_words(page) == 2 + 3 + 2 + 1 + 1 + 1
    assert num_tables(page) == 2
