"""Pictures of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from driple.async_sgd.origin import PlatformRecord
from driple.codec import from_json
from driple.plot.throughput import plot_overhead
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.results import Row

__all__ = ["draw_curves", "draw_errors", "draw_overhead"]

COLOURS = ("#1f4e79", "#6baed6", "#d95f02", "#e6ab02", "#7570b3", "#999999")
COLUMNS = 4


def draw_curves(points: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Measured and predicted throughput against workers, a panel per case."""
    names = list(dict.fromkeys(point["case"] for point in points))
    rows = -(-len(names) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(12, 2.3 * rows), squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis, name in zip(axes.flat, names, strict=False):
        mine = [point for point in points if point["case"] == name]
        workers = [point["workers"] for point in mine]
        for method, colour in zip(methods, COLOURS, strict=True):
            if method == methods[1]:  # lies on the first where no parameter is above the window
                continue
            values = [point["predicted"][method] for point in mine]
            axis.plot(workers, values, color=colour, linewidth=1.8 if method == methods[0] else 0.9)
        measured = [point["measured"] for point in mine]
        spread = [point["measured"] * point["spread"] for point in mine]
        axis.errorbar(workers, measured, yerr=spread, fmt="o", color="black", markersize=3.5)
        axis.set_title(name, fontsize=7)
        axis.set_ylim(0, 1.25 * max(*measured, *(p["predicted"][methods[0]] for p in mine)))
        axis.set_xticks(workers)
        plain(axis)
    for axis in axes[-1]:
        axis.set_xlabel("workers", fontsize=7)
    for axis in axes[:, 0]:
        axis.set_ylabel("examples/s", fontsize=7)
    handles = [
        Line2D([], [], color="black", marker="o", linestyle="", markersize=3.5),
        *(
            Line2D([], [], color=colour)
            for method, colour in zip(methods, COLOURS, strict=True)
            if method != methods[1]
        ),
    ]
    labels = ["measured", *(method for method in methods if method != methods[1])]
    figure.legend(handles, labels, ncols=len(labels), fontsize=8, frameon=False, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / (2.3 * rows)))
    save(figure, path)


def draw_errors(points: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Share of the predictions by error."""
    figure, axis = plt.subplots(figsize=(6, 3.4))
    for method, colour in zip(methods, COLOURS, strict=True):
        errors = np.sort(
            [100 * abs(point["predicted"][method] / point["measured"] - 1) for point in points]
        )
        share = np.arange(1, len(errors) + 1) / len(errors)
        axis.step(errors, share, where="post", color=colour, label=method,
                  linewidth=1.8 if method == methods[0] else 1.0)  # fmt: skip
    for mark in (5, 15):
        axis.axvline(mark, color="#cccccc", linewidth=0.8, zorder=0)
    axis.set_xlim(0, 60)
    axis.set_ylim(0, 1)
    axis.set_xlabel("error of the predicted throughput (%)", fontsize=8)
    axis.set_ylabel("share of predictions", fontsize=8)
    axis.legend(fontsize=7, frameon=False, loc="lower right")
    plain(axis)
    figure.tight_layout()
    save(figure, path)


def draw_overhead(platforms: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Time that receiving takes on the fastest link."""
    rate = sorted(platforms)[-1]
    plot_overhead(from_json(PlatformRecord, platforms[rate], where="platform"), path)
