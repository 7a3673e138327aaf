"""Picture of `driple sweep`: examples/s against workers, and what holds each point back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture
from driple.units import format_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from driple.analytic.sweep import StepBreakdown

__all__ = ["apart", "plot_whatif"]

_COLOURS = {
    "compute": "#1f77b4",
    "worker_nic": "#ff7f0e",
    "server_nic": "#d62728",
    "server_cpu": "#9467bd",
    "stragglers": "#7f7f7f",
}
_PLAIN = "#333333"
_MOST_LINES = 8
_LABEL_POINTS = 9.0  # height of a label and the space below it


def plot_whatif(
    rates: Any,
    workers: Any,
    servers: Any,
    ratios: Any,
    breakdown: StepBreakdown,
    names: Any,
    path: Path,
    *,
    title: str,
) -> None:
    """Draw steps per second of all workers, a line for each bandwidth, servers and compression.

    Args:
        rates: shape [n], bytes/s of each point's links.
        workers: shape [n].
        servers: shape [n].
        ratios: shape [n], share of gradients not sent.
        breakdown: iteration times.
        names: shape [n], what holds each point back; None leaves that out.
        path: picture to write.
        title: of the picture.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import numpy as np
    from matplotlib.lines import Line2D

    from driple.analytic.advice import BOTTLENECKS

    plt = pyplot()
    kinds = np.stack([rates, servers, ratios], axis=1)
    lines = np.unique(kinds, axis=0)
    drawn = lines[np.unique(np.linspace(0, len(lines) - 1, _MOST_LINES).astype(int))]
    figure, axis = plt.subplots(figsize=(8, 4.5))
    ends: list[tuple[float, float, str]] = []
    for line in drawn:
        rows = (kinds == line).all(axis=1)
        x, y = workers[rows], workers[rows] / breakdown.total_s[rows]
        axis.plot(x, y, color="#cccccc", linewidth=1, zorder=1)
        colours = [_COLOURS[str(name)] for name in names[rows]] if names is not None else _PLAIN
        axis.scatter(x, y, c=colours, s=14, zorder=2)
        label = f"{format_rate(8 * line[0])}, {line[1]:.0f} ps"
        if line[2]:
            label += f", {100 * line[2]:.0f} % less"
        ends.append((float(x[-1]), float(y[-1]), label))
    if names is not None:
        axis.legend(
            handles=[
                Line2D([], [], marker="o", linestyle="", color=_COLOURS[name], label=words)
                for name, words in BOTTLENECKS.items()
                if (names == name).any()
            ],
            title="held back by",
            fontsize=8,
            title_fontsize=8,
            frameon=False,
        )
    axis.locator_params(axis="x", integer=True)
    axis.set_xlabel("workers")
    axis.set_ylabel("steps per second of all workers")
    axis.set_ylim(0, 1.15 * float((workers / breakdown.total_s).max()))
    axis.margins(x=0.12)
    axis.set_title(f"{title}: closed form, synchronous", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    _label_ends(axis, ends)
    save_picture(figure, path)


def _label_ends(axis: Axes, ends: Sequence[tuple[float, float, str]]) -> None:
    """Name each line at its end; labels of lines that end together stand above one another."""
    figure = axis.figure
    points_per_pixel = 72 / figure.dpi
    heights = [float(axis.transData.transform((x, y))[1]) * points_per_pixel for x, y, _ in ends]
    places = apart(heights, _LABEL_POINTS)
    for (x, y, label), height, place in zip(ends, heights, places, strict=True):
        moved = place - height
        axis.annotate(
            label,
            (x, y),
            fontsize=7,
            va="center",
            xytext=(10, moved),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": "#cccccc", "linewidth": 0.6, "shrinkB": 3},
        )


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """The heights, moved as little as groups allow, so that all are at least a gap apart.

    Those that are too close form a group around their mean, in order; groups that meet are joined.
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    groups: list[list[int]] = []
    centres: list[float] = []
    for i in order:
        group, centre = [i], heights[i]
        while groups and centres[-1] + gap * len(groups[-1]) / 2 > centre - gap * len(group) / 2:
            group = [*groups.pop(), *group]
            centres.pop()
            centre = sum(heights[j] for j in group) / len(group)
        groups.append(group)
        centres.append(centre)
    moved = [0.0] * len(heights)
    for group, centre in zip(groups, centres, strict=True):
        for place, i in enumerate(group):
            moved[i] = centre + gap * (place - (len(group) - 1) / 2)
    return moved
