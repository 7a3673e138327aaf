"""Picture of `driple whatif`: examples/s against workers, and what holds each point back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.cli.plot import save_picture

if TYPE_CHECKING:
    from driple.perfmodel.sweep import Breakdown

__all__ = ["plot_whatif"]

_COLOURS = {
    "compute": "#1f77b4",
    "worker_nic": "#ff7f0e",
    "server_nic": "#d62728",
    "server_cpu": "#9467bd",
    "stragglers": "#7f7f7f",
}
_MOST_LINES = 8


def plot_whatif(
    rates: Any,
    workers: Any,
    servers: Any,
    ratios: Any,
    found: Breakdown,
    names: Any,
    path: Path,
    *,
    title: str,
) -> None:
    """Draw steps per second of all workers, a line for each bandwidth, servers and compression.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    from driple.perfmodel.advice import BOTTLENECKS

    kinds = np.stack([rates, servers, ratios], axis=1)
    lines = np.unique(kinds, axis=0)
    drawn = lines[np.unique(np.linspace(0, len(lines) - 1, _MOST_LINES).astype(int))]
    figure, axis = plt.subplots(figsize=(8, 4.5))
    for line in drawn:
        rows = (kinds == line).all(axis=1)
        x, y = workers[rows], workers[rows] / found.total_s[rows]
        axis.plot(x, y, color="#cccccc", linewidth=1, zorder=1)
        colours = [_COLOURS[str(name)] for name in names[rows]]
        axis.scatter(x, y, c=colours, s=14, zorder=2)
        label = f"{8 * line[0] / 1e9:g}G, {line[1]:.0f} ps"
        if line[2]:
            label += f", {100 * line[2]:.0f} % less"
        axis.annotate(label, (x[-1], y[-1]), fontsize=7, xytext=(4, -2),
                      textcoords="offset points")  # fmt: skip
    held = [name for name in BOTTLENECKS if (names == name).any()]
    axis.legend(
        handles=[
            Line2D([], [], marker="o", linestyle="", color=_COLOURS[name], label=BOTTLENECKS[name])
            for name in held
        ],
        title="held back by",
        fontsize=8,
        title_fontsize=8,
        frameon=False,
    )
    axis.locator_params(axis="x", integer=True)
    axis.set_xlabel("workers")
    axis.set_ylabel("steps per second of all workers")
    axis.set_ylim(bottom=0)
    axis.margins(x=0.12)
    axis.set_title(f"{title}: closed form, synchronous", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)
