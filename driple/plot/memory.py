"""Picture of a device's memory over one step: bytes by kind, stacked, with the peak marked."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.plot.canvas import pyplot
from driple.plot.pattern import check_picture, save_picture
from driple.render.memory_lines import peak_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from driple.api.inspecting_memory import InspectedMemory

__all__ = ["check_picture", "plot_memory"]

IntArray = npt.NDArray[np.int64]

_GIB, _MIB = 2.0**30, 2.0**20
_MOST_POINTS = 2000
_CLOSE = 3  # times the peak, up to which the device's memory is shown as a line
# Kept from step to step at the bottom; blue to green for the model, warm for what a step makes.
_COLOURS = {
    "parameters": "#1f4e79", "optimizer": "#4a90c2", "gradients": "#7fb77e", "input": "#b8b8b8",
    "communication": "#9467bd", "activations": "#f2a65a", "temporary": "#c8553d",
}  # fmt: skip
_UPDATE_SHARE = 0.02  # of the picture's width
_TEXT_FROM = 0.35  # of the picture's width, from either side, where the middle of a line of text is


def plot_memory(memory: InspectedMemory, path: Path, *, title: str) -> None:
    """Draw allocated bytes over the ops of a step, and save the picture.

    Raises:
        ConfigError: the picture cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    check_picture(path)

    plt = pyplot()
    line = memory.timeline
    unit, words = (_GIB, "GiB") if line.peak_bytes >= _GIB else (_MIB, "MiB")
    points = _shown_points(line.total_bytes)
    places = _places(points, len(line.nbytes))
    column = {kind: i for i, kind in enumerate(line.kinds)}
    kinds = [one for one in _COLOURS if one in column and line.nbytes[:, column[one]].any()]
    figure, axis = plt.subplots(figsize=(9, 5))
    axis.stackplot(
        places,
        [line.nbytes[[*points, points[-1]], column[one]] / unit for one in kinds],
        labels=kinds,
        colors=[_COLOURS[one] for one in kinds],
        step="post",
        linewidth=0,
    )
    axis.set_xlim(0, float(places[-1]))
    top = line.peak_bytes / unit
    _mark_phases(axis, memory, float(places[-1]))
    _mark_peak(axis, memory, unit, words)
    capacity = _capacity(memory)
    if capacity is not None and capacity <= _CLOSE * line.peak_bytes:
        axis.axhline(capacity / unit, color="#333333", linestyle="--", linewidth=1)
        axis.text(0, capacity / unit, f" device: {capacity / unit:.3g} {words}", fontsize=8,
                  va="bottom")  # fmt: skip
        top = max(top, capacity / unit)
    axis.set_ylim(0, 1.22 * top)
    axis.set_ylabel(f"allocated ({words})")
    axis.set_xlabel("ops of one step, in the order in which they run")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, fontsize=11, loc="left")
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="upper left",
                bbox_to_anchor=(1.01, 1))  # fmt: skip
    figure.tight_layout()
    save_picture(figure, path)


def _shown_points(total: IntArray) -> IntArray:
    """All nodes, or of each stretch of a long step the first and the one with the most."""
    if len(total) <= _MOST_POINTS:
        return np.arange(len(total))
    edges = np.linspace(0, len(total) - 1, _MOST_POINTS // 2 + 1).astype(np.int64)
    most = [a + int(total[a:b].argmax()) for a, b in pairwise(edges.tolist())]
    points: IntArray = np.unique(np.concatenate([edges, np.array(most), [int(total.argmax())]]))
    return points


def _places(points: IntArray, count: int) -> npt.NDArray[np.float64]:
    """Where each point is drawn: by its number, and the update with a width of its own."""
    return np.append(points, count - 1 + max(1.0, _UPDATE_SHARE * count)).astype(np.float64)


def _mark_phases(axis: Axes, memory: InspectedMemory, end: float) -> None:
    """Names and borders of the parts of the step; the backward pass follows the last forward op."""
    count = len(memory.phases)
    if not count:
        return
    forward = [i for i, name in enumerate(memory.phases) if name == memory.phases[0]]
    turn = (forward[-1] + 1) if memory.has_update else count
    parts = [(memory.phases[0], 0, turn), ("backward pass", turn, count)]
    for name, begin, stop in parts:
        if stop - begin > 5 * _UPDATE_SHARE * count:
            axis.text((begin + stop) / 2, 0.985, name, fontsize=8, ha="center", va="top",
                      transform=axis.get_xaxis_transform(), color="#555555")  # fmt: skip
        if 0 < stop < end:
            axis.axvline(stop, color="#999999", linewidth=0.6)
    if memory.has_update:
        axis.text((count + end) / 2, 0.985, "update", fontsize=8, ha="center", va="top",
                  rotation=90, transform=axis.get_xaxis_transform(), color="#555555")  # fmt: skip


def _mark_peak(axis: Axes, memory: InspectedMemory, unit: float, words: str) -> None:
    """A dot at the peak, with its size and what runs there."""
    line = memory.timeline
    height, at = line.peak_bytes / unit, float(line.peak_at)
    end = axis.get_xlim()[1]
    middle = min(max(at / end, _TEXT_FROM), 1 - _TEXT_FROM) * end
    axis.plot([at], [height], "o", color="black", markersize=4, clip_on=False)
    axis.annotate(
        f"peak {height:.3g} {words}: {peak_words(memory)}",
        (at, height),
        xytext=(middle, 1.06 * height),
        fontsize=8,
        ha="center",
        va="bottom",
    )


def _capacity(memory: InspectedMemory) -> float | None:
    beside = memory.beside
    return None if beside is None or beside.estimate is None else beside.estimate.capacity_bytes
