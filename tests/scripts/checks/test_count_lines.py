"""Lines of code by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.checks.count_lines import count, main

SOURCE = '''"""A module
of two lines."""

# a comment
X = (1,
     2)  # two lines of code


class Box:
    """A box."""

    def open(self) -> str:
        """Open it."""

        return """no
docstring"""

    def shut(self) -> None: ...


def _private() -> None:
    pass
'''


def test_blanks_comments_and_docstrings_are_no_code() -> None:
    """2 of X, 1 of the class, 3 of `open`, 1 of `shut`, 2 of `_private`."""
    counts = count(SOURCE)
    assert sorted(counts.functions) == [1, 2, 3]
    assert (counts.lines, counts.public, counts.documented) == (9, 4, 3)


def test_folders_are_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each folder, then their sum."""
    (tmp_path / "a.py").write_text("x = 1\n")
    assert main([str(tmp_path), str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 lines of code in 1 files" in said
    assert said.endswith("together: 2 lines of code\n")
