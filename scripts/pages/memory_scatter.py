"""Pictures of device memory on published runs: estimated and measured, and runs that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

__all__ = ["plot_memory", "plot_need"]

_COLOURS = ("#3b6ea8", "#c8612c", "#5b9e5b", "#7a5195", "#e0b050", "#4aa5a5", "#a03c50")
_WITHIN = 1.2


def plot_memory(
    points: Sequence[tuple[float, float, str]], path: Path, *, title: str, what: str
) -> None:
    """Draw estimated over measured memory, a dot per run, and 20 % to either side.

    Args:
        points: measured and estimated GiB, and the source.
        path: of the picture.
        title: above it.
        what: number that is shown, for the axes.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6, 5))
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    names = [name for name, _ in Counter(group for *_, group in points).most_common()]
    for name, colour in zip(names, _COLOURS, strict=False):
        some = [one for one in points if one[2] == name]
        axis.scatter(
            [one[0] for one in some], [one[1] for one in some], s=9, c=colour, label=name,
            linewidths=0, alpha=0.6, rasterized=True,
        )  # fmt: skip
    ends = [min(min(one[:2]) for one in points) / 1.1, max(max(one[:2]) for one in points) * 1.1]
    for factor, style in ((1.0, "-"), (_WITHIN, ":"), (1 / _WITHIN, ":")):
        axis.plot(ends, [factor * one for one in ends], color="black", linewidth=0.7,
                  linestyle=style)  # fmt: skip
    for scale, ruler in ((axis.set_xscale, axis.xaxis), (axis.set_yscale, axis.yaxis)):
        scale("log")
        ruler.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ruler.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ruler.set_minor_formatter(NullFormatter())
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_xlabel(f"measured {what} (GiB)")
    axis.set_ylabel("estimated (GiB)")
    axis.legend(fontsize=8, frameon=False, loc="upper left")
    figure.tight_layout()
    save_picture(figure, path)


def plot_need(
    ran: Sequence[float], failed: Sequence[float], path: Path, *, title: str, below: float
) -> None:
    """Draw how much of the usable memory runs need, those that ran beside those that did not.

    Args:
        ran: shares of the usable memory, of runs that ran.
        failed: likewise, of runs that ran out of memory.
        path: of the picture.
        title: above it.
        below: share up to which a job is said to fit.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import numpy as np

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 3.2))
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    edges = np.arange(0.0, 2.05, 0.05)
    for shares, colour, name in (
        (ran, _COLOURS[0], "ran"), (failed, _COLOURS[1], "ran out of memory"),
    ):  # fmt: skip
        shown = np.minimum(np.array(shares), edges[-1] - 1e-6)
        axis.hist(
            shown, bins=edges.tolist(), color=colour, alpha=0.6, label=f"{name} ({len(shown)})"
        )
    axis.axvline(below, color="black", linewidth=0.9, linestyle=":", label=f"fits: below {below:g}")
    axis.set_xlabel("tensors and context, as a share of the usable memory (2 and more: at the end)")
    axis.set_ylabel("runs")
    axis.legend(fontsize=8, frameon=False, loc="upper left")
    figure.tight_layout()
    save_picture(figure, path)
