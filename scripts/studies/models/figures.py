"""Pictures of page.md: figures 5 and 6 of Zhang et al., and repaired against measured.

Profiles of three models on a V100 -> speed-up, communication / computation, compression
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

from driple.analytic.advice import communication_ratio
from driple.analytic.sweep import (
    Compression,
    ExchangeGranularity,
    JobProfile,
    Points,
    iteration_seconds,
)
from scripts.studies.kit.pictures import plain, save
from scripts.studies.models.advice import BestCompression, best_compression, speed_up
from scripts.studies.models.checks import Halves

COLOURS = {"vgg16": "#3b6ea8", "resnet50": "#c8612c", "alexnet": "#5b9e5b"}
NAMES = {"vgg16": "VGG-16", "resnet50": "ResNet-50", "alexnet": "AlexNet"}
# The cluster of both figures: one server, two workers, a V100 each.
WORKERS, GBIT, FAST_GBIT = 2, 10, 100
COST = Compression(s_per_byte=0.5e-9)  # half a second for a GB to a half
LINES: dict[ExchangeGranularity, str] = {"step": "-", "layer": "--"}
CASES = ((1, 2), (10, 2), (100, 2), (10, 8))  # Gbit/s, workers


def cluster(gbit: float = GBIT, workers: float = WORKERS) -> Points:
    """One server, links of this rate, nothing else that costs."""
    rate = gbit * 1e9 / 8
    return Points(workers=workers, servers=1, worker_bytes_per_s=rate, server_bytes_per_s=rate)


def scalability(profiles: Mapping[str, JobProfile], path: Path) -> None:
    """Figure 5: speed-up and communication / computation over bandwidth, compute and workers."""
    gbits, factors = np.geomspace(0.5, 200, 60), np.geomspace(0.125, 8, 60)
    counts = np.arange(1, 33)
    rates = gbits * 1e9 / 8
    sweeps = (
        ("bandwidth (Gbit/s)", gbits,
         replace(cluster(), worker_bytes_per_s=rates, server_bytes_per_s=rates)),
        ("speed of the device (V100 = 1)", factors, replace(cluster(), compute_rate=factors)),
        (f"workers, {FAST_GBIT} Gbit/s", counts, replace(cluster(FAST_GBIT), workers=counts)),
    )  # fmt: skip
    drawn, axes = plt.subplots(2, 3, figsize=(11, 6), sharex="col")
    for column, (words, x, points) in enumerate(sweeps):
        for name, profile in profiles.items():
            for exchange, line in LINES.items():
                axes[0, column].plot(
                    x, speed_up(profile, points, exchange), line, color=COLOURS[name],
                    label=NAMES[name] if exchange == "step" else None,
                )  # fmt: skip
            breakdown = iteration_seconds(profile, points, exchange="layer")
            axes[1, column].plot(x, communication_ratio(breakdown), color=COLOURS[name])
        axes[1, column].axhline(1, color="#999999", linewidth=0.8)
        axes[1, column].set_yscale("log")
        axes[1, column].set_xlabel(words, fontsize=9)
        if x is not counts:
            axes[1, column].set_xscale("log")
            ticks = (0.5, 2, 10, 50, 200) if x is gbits else (0.125, 0.5, 1, 2, 8)
            axes[1, column].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes[1, column].xaxis.set_minor_locator(NullLocator())
            axes[0, column].set_ylim(0, WORKERS * 1.05)
        for axis in axes[:, column]:
            plain(axis)
    axes[0, 2].plot(counts, counts, color="#999999", linewidth=0.8)
    axes[0, 2].set_ylim(0, 12)
    axes[0, 0].set_ylabel("speed-up", fontsize=9)
    axes[1, 0].set_ylabel("communication / computation", fontsize=9)
    axes[0, 0].legend(fontsize=8, frameon=False)
    axes[0, 1].set_title(
        f"one server, {WORKERS} workers, {GBIT} Gbit/s, batch 32, where not varied; solid: "
        "parameters at the next step, dashed: layer by layer",
        fontsize=9,
    )
    drawn.tight_layout()
    save(drawn, path)


def compression(
    profiles: Mapping[str, JobProfile], path: Path
) -> dict[tuple[str, int, int], BestCompression]:
    """Figure 6: iteration over the share of gradients that is not sent; and the best share."""
    ratios = np.linspace(0, 0.95, 96)
    drawn, axes = plt.subplots(1, len(CASES), figsize=(12, 3.6))
    best_of = {}
    for axis, (gbit, workers) in zip(axes, CASES, strict=True):
        for name, profile in profiles.items():
            point = cluster(gbit, workers)
            total_s = iteration_seconds(
                profile, replace(point, compression=ratios), COST, "layer"
            ).total_s
            best = best_compression(profile, point, COST, "layer")
            axis.plot(ratios, total_s / total_s[0], color=COLOURS[name], label=NAMES[name])
            axis.plot(best.ratio, best.total_s / total_s[0], "o", color=COLOURS[name])
            best_of[name, gbit, workers] = best
        axis.set_ylim(0, 1.6)
        axis.axhline(1, color="#999999", linewidth=0.8)
        axis.set_title(f"{gbit} Gbit/s, {workers} workers", fontsize=9)
        axis.set_xlabel("share of gradients not sent", fontsize=8)
        plain(axis)
    axes[0].set_ylabel("iteration / without compression", fontsize=8)
    axes[-1].legend(fontsize=8, frameon=False)
    drawn.tight_layout()
    save(drawn, path)
    return best_of


def halves_picture(halves: Sequence[Halves], path: Path) -> None:
    """Predicted over measured of held-out rows, published and repaired, by platform."""
    platforms = list(dict.fromkeys(run.platform for half in halves for run in half.runs))
    drawn, axis = plt.subplots(figsize=(9, 3.6))
    for place, platform in enumerate(platforms):
        for shift, what, colour in ((-0.17, "published", "#bbbbbb"), (0.17, "repaired", "#c8612c")):
            errors = [
                100 * float(value)
                for half in halves
                for run, value in zip(half.runs, getattr(half, what), strict=True)
                if run.platform == platform
            ]
            spread = np.linspace(-0.12, 0.12, len(errors))
            axis.scatter(place + shift + spread, errors, s=8, color=colour, linewidths=0)
            axis.hlines(np.mean(errors), place + shift - 0.14, place + shift + 0.14, color="black",
                        linewidth=1.2)  # fmt: skip
    words = [name.replace("-gpu", "\ngpu").replace("-cpu", "\ncpu") for name in platforms]
    axis.set_xticks(range(len(platforms)), words, fontsize=8)
    axis.set_ylabel("error (%), line: mean", fontsize=8)
    axis.set_title("Zeng et al.: published (grey) and repaired (held-out rows)", fontsize=9)
    axis.set_ylim(bottom=0)
    plain(axis)
    drawn.tight_layout()
    save(drawn, path)
