"""What is printed cannot drive the terminal, whatever a file calls its parts."""

from __future__ import annotations

import io
import sys

import pytest

from driple.cli.main import run
from driple.render.show import note, print_table
from driple.render.terminal import escaped, escaped_streams, one_line, unescaped

EVIL = "a\x1b]0;owned\x07\x1b[2Jb\x9b\u202e\r\x00"


def test_control_characters_are_shown() -> None:
    """Tab and line feed stay; a second time changes nothing."""
    assert escaped(EVIL) == r"a\x1b]0;owned\x07\x1b[2Jb\x9b\u202e\x0d\x00"
    assert escaped("a\tb\n") == "a\tb\n"
    assert escaped(escaped(EVIL)) == escaped(EVIL)
    assert one_line("a\n\nfake  line\x1b") == r"a fake line\x1b"


def test_streams_are_escaped_within_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever prints; our own colours go around it, and the streams are given back."""
    before = sys.stdout, sys.stderr
    with escaped_streams():
        print(EVIL)
        print(EVIL, file=sys.stderr)
        print("\x1b[1mbold\x1b[0m", file=unescaped(sys.stdout))
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert out == f"{escaped(EVIL)}\n\x1b[1mbold\x1b[0m\n"
    assert err == f"{escaped(EVIL)}\n"


def test_notes_and_tables_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """A name cannot fake a line of its own."""
    note("remark\n\nfake line\x1b[2J")
    print_table(["op", "n"], [["x\ndriple: fake", "1"], [EVIL, "2"]])
    out, err = capsys.readouterr()
    assert err == "driple: remark fake line\\x1b[2J\n"
    assert len(out.splitlines()) == 3
    assert "\x1b" not in out


def test_bold_is_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a chosen cell is bold, and its text still escaped."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with escaped_streams():
        print_table(["op"], [["x\x1b[2J"]], bold={(0, 0)})
    assert terminal.getvalue() == "op\n\x1b[1mx\\x1b[2J\x1b[0m\n"


def test_errors_are_escaped_and_of_bounded_length(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line shows an argument that is a sequence, and cuts one of any length."""
    with pytest.raises(SystemExit) as end:
        run(["predict", "\x1b[2J.pb"])
    assert end.value.code == 2
    assert "\x1b" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(["predict", "x.pb", "--setting", "y" * 100_000])
    assert len(capsys.readouterr().err) < 2100
