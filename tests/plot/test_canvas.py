"""Pictures that are files."""

from __future__ import annotations

from pathlib import Path

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture
from tests.plot.looks import drawn, words_of


def _draw(path: Path) -> None:
    figure, axis = pyplot().subplots()
    axis.set_title("a $ of cost and a $ of price")
    save_picture(figure, path)


def test_a_sign_of_money_begins_no_formula_and_the_same_picture_is_the_same_file(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    assert "a $ of cost and a $ of price" in words_of(drawn(lambda: _draw(first), first))
    _draw(second)
    assert first.read_bytes() == second.read_bytes()
