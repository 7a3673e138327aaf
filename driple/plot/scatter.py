"""Scatter plots of the simulator's errors: how far off, by the distance of the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from driple.plot.pattern import save_picture

__all__ = ["plot_scatter"]

_COLOURS = ("#3b6ea8", "#c8612c", "#5b9e5b", "#7a5195", "#e0b050")
_OTHERS = "#bbbbbb"


def plot_scatter(points: Sequence[tuple[float, float, str]], path: Path, *, title: str) -> None:
    """Draw simulated over published time against the distance of the job, a dot per run.

    Args:
        points: ln(simulated / published), distance of the job, model family.
        path: of the picture.
        title: above it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "driple"  # the same bytes for the same points
    import numpy as np
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    figure, axis = plt.subplots(figsize=(7, 4))
    named = [name for name, _ in Counter(family for *_, family in points).most_common(5)]
    for name, colour in [("", _OTHERS), *zip(named, _COLOURS, strict=False)]:
        some = [one for one in points if (one[2] == name if name else one[2] not in named)]
        if some:
            axis.scatter(
                [one[1] for one in some], np.exp([one[0] for one in some]), s=7, c=colour,
                label=name or "others", linewidths=0, alpha=0.7, rasterized=True,
            )  # fmt: skip
    for ratio, style in ((1.0, "-"), (1.22, ":"), (1 / 1.22, ":")):
        axis.axhline(ratio, color="black", linewidth=0.7, linestyle=style)
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(FixedLocator([0.125, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 8]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("distance of the job's mix of ops from the nearest one that the fit had seen")
    axis.set_ylabel("simulated / published time")
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, frameon=False, loc="upper right")
    figure.tight_layout()
    save_picture(figure, path)
