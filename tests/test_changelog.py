"""The changelog is short: versions with dates, one sentence a change, at most 60 for a version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
VERSIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
MOST_ENTRIES = 60
_SENTENCE_END = re.compile(r"[.!?](?= [A-Z*`\[])")


def entries(version: str) -> list[str]:
    """Each entry of a version on one line, without the code in it."""
    lines = re.findall(r"^- (.*(?:\n  .*)*)", version, re.MULTILINE)
    return [re.sub(r"`[^`]*`", "code", " ".join(line.split())) for line in lines]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version[:5])
def test_a_version_has_a_date_and_few_entries_under_known_heads(version: str) -> None:
    assert re.match(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)\n", version)
    assert 0 < len(entries(version)) <= MOST_ENTRIES
    heads = re.findall(r"^### (.*)$", version, re.MULTILINE)
    assert heads == [head for head in ("Added", "Changed", "Fixed") if head in heads]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version[:5])
def test_an_entry_is_one_sentence(version: str) -> None:
    for entry in entries(version):
        assert entry.endswith("."), entry
        assert not _SENTENCE_END.search(entry), entry
