"""Pictures of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from driple.plot.stalls import COLOURS
from driple.profiler.linkfit import LinkFit
from driple.profiler.stall_profile import StallProfile
from scripts.studies.kit.pictures import plain
from scripts.studies.stalls.models import MICRO
from scripts.studies.stalls.run import MODELS, RATES, Run

__all__ = ["macro_picture", "micro_picture", "model_picture"]

FAMILY_COLOURS = {"resnet": "#3b6ea8", "vgg": "#b5542d"}


def macro_picture(profiles: Mapping[Run, StallProfile]) -> Figure:
    """Stalls of an iteration of every model."""
    models = [model for model in MODELS if any(run.model == model for run in profiles)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 1 + 0.4 * len(models)), sharey=True)
    for row, model in enumerate(models):
        mine = {run.rate: profile for run, profile in profiles.items() if run.model == model}
        first = mine.get(RATES[0]) or next(iter(mine.values()))
        base = float(np.mean([*first.times[1].values()]))
        left = 0.0
        for name in ("interconnect", "prep", "fetch"):
            stall = first.stalls().get(name)
            wide = 100 * max(stall.seconds, 0.0) / base if stall else 0.0
            axes[0].barh(row, wide, left=left, color=COLOURS[name], height=0.7,
                         label=name if row == 0 else None)  # fmt: skip
            left += wide
        for place, rate in enumerate(RATES):
            stall = mine[rate].stalls().get("network") if rate in mine else None
            if stall is not None and (stall.pct > 0 or row == 0):
                high = 0.8 / len(RATES)
                axes[1].barh(row - 0.4 + (place + 0.5) * high, stall.pct, height=high,
                             color=COLOURS["network"], alpha=1 - 0.3 * place,
                             label=f"{rate}bit/s" if row == 0 else None)  # fmt: skip
    axes[0].set_yticks(range(len(models)), models, fontsize=8)
    axes[0].invert_yaxis()
    axes[0].set_xlabel("stalls of one machine, % of one device's time", fontsize=8)
    axes[1].set_xlabel("network stall, % of one machine's time", fontsize=8)
    axes[1].set_xscale("log")
    for axis in axes:
        axis.legend(fontsize=7, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
        plain(axis)
    figure.tight_layout()
    return figure


def micro_picture(profiles: Mapping[Run, StallProfile]) -> Figure:
    """Figure 16: stalls of ResNets and VGGs of growing depth, and without some of their parts."""
    shown = [
        (run.model, profile)
        for model in MICRO
        for run, profile in profiles.items()
        if run.model == model and run.rate == RATES[0] and profile.gradients is not None
    ]
    names = []
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.2 + 0.3 * len(shown)), sharey=True)
    for row, (model, profile) in enumerate(shown):
        gradients = profile.gradients
        sizes = [] if gradients is None else gradients.nbytes
        names.append(f"{model}: {len(sizes)} gradients, {sum(sizes) / 1e6:.0f} MB")
        colour = next(c for family, c in FAMILY_COLOURS.items() if model.startswith(family))
        for axis, name in zip(axes, ("interconnect", "network"), strict=True):
            stall = profile.stalls().get(name)
            if stall is None:
                continue
            axis.barh(row, 1e3 * stall.seconds, color=colour, alpha=0.55 if "-" in model else 1.0)
            if stall.interval_s is not None:
                ends = [1e3 * bound for bound in stall.interval_s]
                axis.plot(ends, [row, row], color="black", linewidth=1)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    titles = ("interconnect stall", f"network stall, {RATES[0]}bit/s")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xlabel(f"{title}: ms of an iteration", fontsize=8)
        plain(axis)
    figure.tight_layout()
    return figure


def model_picture(fits: Sequence[LinkFit]) -> Figure:
    """Measured stalls against those that fits without the model predict."""
    figure, axis = plt.subplots(figsize=(5, 4.5))
    values: list[float] = []
    for i, fit in enumerate(fits):
        pairs = [pair for pair in fit.left_out.values() if min(pair) > 0]
        for true, predicted in pairs:
            axis.plot(1e3 * true, 1e3 * predicted, "osD^v"[i % 5], color=f"C{i}", fillstyle="none")
            values += [1e3 * true, 1e3 * predicted]
        axis.plot([], [], "osD^v"[i % 5], color=f"C{i}", fillstyle="none", label=fit.channel.name)
    if values:
        ends = [min(values), max(values)]
        axis.plot(ends, ends, color="#888888", linewidth=0.8)
        axis.set_xscale("log")
        axis.set_yscale("log")
    axis.set_xlabel("measured stall, ms", fontsize=8)
    axis.set_ylabel("predicted by a fit without the model, ms", fontsize=8)
    axis.legend(fontsize=8, frameon=False)
    plain(axis)
    figure.tight_layout()
    return figure
