"""Scatter plots of the simulator on published runs: how far off, and how busy devices were.

step times:  simulated / published against the distance of the job
utilisation: simulated against measured
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_scatter", "plot_utilisation"]

_COLOURS = ("#3b6ea8", "#c8612c", "#5b9e5b", "#7a5195", "#e0b050", "#4aa5a5", "#a03c50")
_OTHERS = "#bbbbbb"
_FAMILIES = 5  # with a colour of their own
_BUSY_PCT = 90


def plot_scatter(points: Sequence[tuple[float, float, str]], path: Path, *, title: str) -> None:
    """Draw simulated over published time against the distance of the job, a dot per run.

    Args:
        points: ln(simulated / published), distance of the job, model family.
        path: of the picture.
        title: above it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import numpy as np
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    figure, axis = _axes(title)
    ratios = np.exp([one[0] for one in points]).tolist()
    dots = [(one[1], ratio, one[2]) for one, ratio in zip(points, ratios, strict=True)]
    _draw(axis, dots, _FAMILIES)
    for ratio, style in ((1.0, "-"), (1.22, ":"), (1 / 1.22, ":")):
        axis.axhline(ratio, color="black", linewidth=0.7, linestyle=style)
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(FixedLocator([0.125, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 8]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("distance of the job's mix of ops from the nearest one that the fit had seen")
    axis.set_ylabel("simulated / published time")
    _save(figure, axis, path)


def plot_utilisation(points: Sequence[tuple[float, float, str]], path: Path, *, title: str) -> None:
    """Draw simulated against measured mean utilisation, and the line on which both are equal.

    Args:
        points: measured and simulated mean utilisation, percent, and the model.
        path: of the picture.
        title: above it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    figure, axis = _axes(title)
    _draw(axis, points, len(_COLOURS))
    axis.plot([0, 100], [0, 100], color="black", linewidth=0.7)
    axis.axvline(_BUSY_PCT, color="black", linewidth=0.7, linestyle=":")
    axis.set_xlim(0, 102)
    axis.set_ylim(0, 102)
    axis.set_xlabel("measured mean utilisation (%)")
    axis.set_ylabel("simulated (%)")
    _save(figure, axis, path)


def _axes(title: str) -> tuple[Figure, Axes]:

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 4))
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _draw(axis: Axes, dots: Sequence[tuple[float, float, str]], count: int) -> None:
    """Dots (x, y, group); the largest groups have a colour of their own."""
    named = [name for name, _ in Counter(group for *_, group in dots).most_common(count)]
    for name, colour in [("", _OTHERS), *zip(named, _COLOURS, strict=False)]:
        some = [one for one in dots if (one[2] == name if name else one[2] not in named)]
        if some:
            axis.scatter(
                [one[0] for one in some], [one[1] for one in some], s=7, c=colour,
                label=name or "others", linewidths=0, alpha=0.7, rasterized=True,
            )  # fmt: skip


def _save(figure: Figure, axis: Axes, path: Path) -> None:
    """Write the picture with its legend beside the dots, which may be anywhere."""
    axis.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    save_picture(figure, path)
