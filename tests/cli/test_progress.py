"""Bars of long work: names of a user's file cannot write to the terminal, and files get no bars."""

from __future__ import annotations

import io

import pytest

from driple.cli import progress
from driple.cli.progress import named_steps


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("words", ["a\x1b[2Jb", "[red]a", "[/x]", "a\u202eb", "a\nb"])
def test_words_are_shown_as_they_are(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No control character of them is obeyed, and no markup."""
    stream = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    with named_steps() as advance:
        advance(words)
    shown = stream.getvalue()
    assert "\x1b[2J" not in shown.replace("\x1b[2K", "")
    assert "\u202e" not in shown
    assert words.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\n", " ") in shown


def test_a_file_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    with named_steps() as advance:
        advance("step")
    assert stream.getvalue().strip() == ""
