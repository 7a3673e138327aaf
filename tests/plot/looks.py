"""What a reader sees of a picture: its texts, and which of them cover each other.

`drawn(draw, path)` runs a function that draws and writes a picture, and gives the figure that it
wrote; `faults_of(figure)` lists what would make a reader ask: an axis without words, a word outside
of the picture, two words over each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from unittest import mock

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_TOUCH_PX = 2.0  # boxes of texts are a little higher than their letters


def drawn(draw: Callable[[], object], path: Path) -> Figure:
    """The figure that a function writes to a file, which must be there after it."""
    figures: list[Figure] = []
    save = Figure.savefig

    def kept(figure: Figure, *args: object, **kwargs: object) -> None:
        figures.append(figure)
        save(figure, *args, **kwargs)  # type: ignore[arg-type]

    with mock.patch.object(Figure, "savefig", kept):
        draw()
    if not path.stat().st_size:
        raise AssertionError(f"{path.name} is empty")
    return figures[-1]


def words_of(figure: Figure) -> list[str]:
    """All texts but those of ticks."""
    return [text.get_text() for text in _texts(figure)]


def faults_of(figure: Figure) -> list[str]:
    """One line for each thing that a reader would trip over; empty of a good picture."""
    figure.draw_without_rendering()
    faults = [fault for axis in figure.axes for fault in _unnamed(axis)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in _texts(figure)]
    page = Bbox.from_bounds(0, 0, *(figure.get_size_inches() * figure.dpi))
    for words, box in boxes:
        if min(box.x0, box.y0, page.x1 - box.x1, page.y1 - box.y1) < -_TOUCH_PX:
            faults.append(f"{words!r} leaves the picture")
        if "$" in words and "cost" not in words:
            faults.append(f"{words!r} has a sign of formulas, which are not drawn")
    for (first, a), (second, b) in combinations(boxes, 2):
        both = Bbox.intersection(a, b)
        if both is not None and min(both.width, both.height) > _TOUCH_PX:
            faults.append(f"{first!r} and {second!r} cover each other")
    return faults


def _unnamed(axis: Axes) -> Iterator[str]:
    shows_x = any(label.get_visible() and label.get_text() for label in axis.get_xticklabels())
    shared_below = not axis.xaxis.get_tick_params().get("labelbottom", True)
    if shows_x and not shared_below and not axis.get_xlabel():
        yield "an axis has numbers below it and no words"
    numbers = [label.get_text() for label in axis.get_yticklabels() if label.get_visible()]
    named = any(any(letter.isalpha() for letter in number) for number in numbers)
    shared_left = not axis.yaxis.get_tick_params().get("labelleft", True)
    if numbers and not named and not shared_left and not axis.get_ylabel():
        yield "an axis has numbers at its left and no words"


def _texts(figure: Figure) -> Iterator[Text]:
    ticks = {
        id(label)
        for axis in figure.axes
        for label in (*axis.get_xticklabels(which="both"), *axis.get_yticklabels(which="both"))
    }
    for text in figure.findobj(Text):
        if not isinstance(text, Text) or id(text) in ticks:
            continue
        if text.get_visible() and text.get_text().strip():
            yield text
