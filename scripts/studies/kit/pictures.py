"""Style of the pictures of studies, and writing them."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from driple.files import atomic_replace

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#3b6ea8", "#b5542d", "#5a8a4f", "#8a6fb0", "#999999")


def plain(axis: Axes) -> None:
    """Small ticks, no box."""
    axis.tick_params(labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write a picture; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replace(path) as (part,):
        figure.savefig(part, dpi=110, format="png")
    plt.close(figure)
