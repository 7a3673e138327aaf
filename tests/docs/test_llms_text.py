"""llms.txt names every page of the index, and what it is for."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from llms_text import llms_text  # noqa: E402


def test_every_page_of_the_index_is_there() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    text = llms_text(index)
    assert text.startswith("# Driple\n\n> Driple predicts how")
    pages = set(re.findall(r"\]\(([^)]+)\)", text))
    named = {
        line.strip() for line in index.partition("```{toctree}")[2].splitlines() if line.strip()
    }
    known = {file.stem for file in DOCS.glob("*.md")} & named
    assert {f"{name}.html" for name in known - {"decisions", "studies"}} <= pages
    assert "- [Quick start](quickstart.html): install Driple and get a first answer" in text
