"""Pictures of page.md: error by method and setting, by family, predicted against label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import pyplot as plt

from driple.targets import FIGURES, RESOURCES, TARGET_NAMES, UNITS
from driple.training.arena import ArenaResult, SplitKind
from driple.training.breakdown import break_down
from scripts.studies.kit.pictures import plain, save

if TYPE_CHECKING:
    from scripts.studies.accuracy.compared import Compared

COLOURS = {
    "mean": "#b9b9b9",
    "knn": "#8fb8de",
    "trees": "#3b6ea8",
    "forest": "#1f3d63",
    "simulator": "#c9a227",
    "paper": "#d98b6a",
    "default": "#b5362d",
    "transferred": "#6d1b16",
}
_OTHER = "#5a8a4f"
SHIPPED = "shipped"


def by_setting(found: Sequence[Compared], methods: Sequence[str], path: Path) -> None:
    """SMAPE over all targets: a group of dots per setting, both splits, the floor as a line.

    Each method over all the seeds that it has.
    """
    splits: tuple[SplitKind, ...] = ("random", "family")
    figure, axes = plt.subplots(
        1, 2, figsize=(11, 0.52 * len(found) + 1.6), sharey=True, sharex=True
    )
    for axis, split in zip(axes, splits, strict=True):
        for place, item in enumerate(reversed(found)):
            axis.axhline(place, color="#eeeeee", linewidth=6, zorder=0)
            if item.floor_pct is not None:
                axis.plot([item.floor_pct] * 2, [place - 0.35, place + 0.35], color="black",
                          linewidth=1.4, label="two runs of one workload")  # fmt: skip
            for number, method in enumerate(methods):
                error = item.smape(split, method)
                if error is None:
                    continue
                shift = 0.22 * (number - (len(methods) - 1) / 2) / max(len(methods) - 1, 1)
                axis.errorbar(error.mean, place - shift, xerr=error.std, fmt="o", markersize=5,
                              color=COLOURS.get(method, _OTHER), elinewidth=1,
                              label=method)  # fmt: skip
        axis.set_title(f"{split} split", fontsize=10)
        axis.set_xlabel("SMAPE over the 12 targets (%)", fontsize=9)
        axis.set_xlim(left=0)
        plain(axis)
    axes[0].set_yticks(range(len(found)), [item.setting for item in reversed(found)], fontsize=8)
    _legend(figure, axes[0], methods)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    save(figure, path)


def _legend(figure: plt.Figure, axis: plt.Axes, methods: Sequence[str]) -> None:
    """Each name once, below."""
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    names = [name for name in (*methods, "two runs of one workload") if name in handles]
    figure.legend([handles[name] for name in names], names, loc="lower center", ncol=len(names),
                  fontsize=8, frameon=False)  # fmt: skip


def by_family(found: Sequence[Compared], path: Path) -> None:
    """Family split: SMAPE of each method on each family, mean over the measured settings.

    One row is of the shipped inspectors, whichever method that is on a setting. Methods that lack
    folds on one of the settings are left out, as their means would be of others; on each setting
    all are over the seeds that they share.
    """
    shown_by = [
        {**{name: name for name in item.results["family"].methods}, SHIPPED: item.shipped}
        for item in found
    ]
    methods = [
        name
        for name in (*found[0].results["family"].methods, SHIPPED)
        if name != "simulator"  # off the scale
        and all(names.get(name) in item.results["family"].methods
                for names, item in zip(shown_by, found, strict=True))
    ]  # fmt: skip
    errors: dict[str, dict[str, list[float]]] = {}
    for names, item in zip(shown_by, found, strict=True):
        seeds = item.seeds("family", [names[method] for method in methods])
        if not seeds:
            raise SystemExit(
                f"{item.setting}: {', '.join(methods)} share no seed; make their folds"
            )
        result = item.results["family"].of_seeds(seeds)
        for method in methods:
            broken = break_down(result, names[method])
            for i, family in enumerate(broken.families):
                errors.setdefault(method, {}).setdefault(family, []).append(broken.by_family[-1, i])
    families = sorted({family for rows in errors.values() for family in rows})
    values = np.array(
        [[np.mean(errors[method].get(family, np.nan)) for family in families] for method in methods]
    )
    figure, axis = plt.subplots(figsize=(10, 0.5 * len(methods) + 1.7))
    shown = axis.imshow(values, cmap="YlOrRd", aspect="auto", vmin=0)
    for (row, column), value in np.ndenumerate(values):
        dark = value > 0.6 * np.nanmax(values)
        axis.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8,
                  color="white" if dark else "black")  # fmt: skip
    names = {SHIPPED: "shipped:\n" + " or ".join(dict.fromkeys(item.shipped for item in found)),
             "default": "default,\nits setting alone"}  # fmt: skip
    labels = [names.get(method, method) for method in methods]
    axis.set_yticks(range(len(methods)), labels, fontsize=8)
    axis.set_xticks(range(len(families)), families, fontsize=8, rotation=30, ha="right")
    axis.set_title("family held out: SMAPE over the 12 targets (%), mean of the measured settings",
                   fontsize=10)  # fmt: skip
    figure.colorbar(shown, ax=axis, pad=0.01)
    figure.tight_layout()
    save(figure, path)


def predicted_against_label(result: ArenaResult, method: str, path: Path) -> None:
    """Every test workload of the method's first seed, one panel per target."""
    fold = result.folds_of(method)[0]
    true = {item.workload: item.targets.flat for item in result.dataset.examples}
    names = list(fold.predictions)
    families = {item.workload: item.family for item in result.dataset.examples}
    shown = sorted(set(families.values()))
    colours = dict(zip(shown, plt.get_cmap("tab20").colors, strict=False))
    figure, axes = plt.subplots(len(FIGURES), len(RESOURCES), figsize=(12, 9))
    for i, target in enumerate(TARGET_NAMES):
        resource, figure_name = target.split(".")
        axis = axes[FIGURES.index(figure_name), RESOURCES.index(resource)]
        for family in shown:
            mine = [name for name in names if families[name] == family]
            axis.scatter(
                [true[name][i] for name in mine],
                [fold.predictions[name][i] for name in mine],
                s=16, color=colours[family], label=family,
            )  # fmt: skip
        both = np.array([[true[n][i], fold.predictions[n][i]] for n in names])
        low, high = both.min() * 0.9, both.max() * 1.05
        axis.plot([low, high], [low, high], color="#888888", linewidth=0.8)
        unit = UNITS[resource] if figure_name == "burst_amount" else "s"
        axis.set_title(f"{resource}\n{figure_name.replace('_', ' ')} ({unit})", fontsize=9)
        plain(axis)
    figure.supxlabel("label")
    figure.supylabel(f"predicted ({method})")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(shown), fontsize=8, frameon=False,
                  bbox_to_anchor=(0.5, 0.02))  # fmt: skip
    figure.tight_layout(rect=(0.01, 0.05, 1, 1))
    save(figure, path)
