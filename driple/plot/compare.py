"""Picture of `driple predict --method all`: every method on every setting, with its known error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer

__all__ = ["plot_compared"]

_COLOURS = {
    "measured": "#000000",
    "inspector": "#5b9e5b",
    "simulator": "#3b6ea8",
    "zhang": "#c8612c",
    "zeng-repaired": "#7a5195",
    "zeng": "#bbbbbb",
}


def plot_compared(
    settings: Sequence[tuple[str, Sequence[MethodAnswer]]],
    words: Mapping[str, str],
    path: Path,
    *,
    title: str,
) -> None:
    """Draw a group of rows for each setting, a dot for each method, a line for its range.

    Args:
        settings: name of each, and what methods say.
        words: names of the methods.
        path: of the picture.
        title: above it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plt = pyplot()
    count = sum(len(estimates) + 1 for _, estimates in settings)
    figure, axis = plt.subplots(figsize=(8, 1.2 + 0.24 * count))
    row, places, labels = 0, [], []
    shown = [one.step_s for _, estimates in settings for one in estimates]
    least, most = min(shown) / 2, max(shown) * 2
    for name, estimates in settings:
        axis.text(least, row, name, fontsize=9, fontweight="bold", va="center")
        row += 1
        for answer in estimates:
            colour = _COLOURS[answer.method]
            interval = answer.step_time.interval
            if interval is not None:
                high = most if interval.high is None else min(interval.high, most)
                axis.hlines(row, max(interval.low, least), high, color=colour,
                            linewidth=5, alpha=0.35)  # fmt: skip
            hollow = interval is None and answer.method != "measured"
            axis.plot(answer.step_s, row, "o", color=colour, markersize=6,
                      fillstyle="none" if hollow else "full")  # fmt: skip
            places.append(row)
            labels.append(f"{words[answer.method]}  {answer.step_s:.3g} s")
            if answer.method == "measured":
                axis.vlines(answer.step_s, row - 0.5, row + len(estimates) - 0.5,
                            color=colour, linewidth=0.8)  # fmt: skip
            row += 1
    axis.set_yticks(places, labels, fontsize=8)
    axis.set_ylim(row - 0.5, -0.7)
    axis.set_xscale("log")
    axis.set_xlim(least, most)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("seconds of an iteration; bars: nine times out of ten; hollow: error not known",
                    fontsize=8)  # fmt: skip
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)
