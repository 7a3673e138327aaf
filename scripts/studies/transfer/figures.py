"""Pictures of the page: learning curves, and bars that compare choices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.results import Row, mean_and_std, pick
from scripts.studies.transfer.run import MOVED, SIZES

COLOURS = {"anew": "#999999", "transferred": "#3b6ea8"}


def curves(results: list[Row], targets: list[str], labels: dict[str, int], path: Path) -> None:
    """Figures 15 and 16: error and seconds against labels, a thin line for each setting."""
    presets = [preset for preset in ("paper", "default") if pick(results, preset=preset)]
    drawn, axes = plt.subplots(
        len(presets), 2, figsize=(9, 0.7 + 2.9 * len(presets)), sharex=True, squeeze=False
    )
    for row, preset in zip(axes, presets, strict=True):
        for axis, name, words in (
            (row[0], "nrmse", "average NRMSE"),
            (row[1], "seconds_to_best", "seconds to the best epoch"),
        ):
            for way, fields in (("anew", {"layers": ()}), ("transferred", MOVED[preset])):
                lines = []
                for target in targets:
                    points = [
                        (size or labels[target], mean_and_std(rows, name)[0])
                        for size in (*SIZES, 0)
                        if (
                            rows := pick(results, target=target, preset=preset, size=size, **fields)
                        )
                    ]
                    if points:
                        axis.plot(*zip(*points, strict=True), color=COLOURS[way], linewidth=0.7,
                                  alpha=0.6)  # fmt: skip
                        lines.append(points)
                if lines and len({len(points) for points in lines}) == 1:
                    middle = np.array(lines, dtype=float).mean(axis=0)
                    axis.plot(middle[:, 0], middle[:, 1], color=COLOURS[way], linewidth=2.2,
                              marker="o", markersize=4)  # fmt: skip
            axis.set_ylabel(f"{preset}: {words}", fontsize=8)
            plain(axis)
        row[0].set_ylim(bottom=0)
        row[1].set_yscale("log")
    for axis in axes[-1]:
        axis.set_xlabel("labels of the new setting", fontsize=8)
    names = [Line2D([], [], color=colour, label=way) for way, colour in COLOURS.items()]
    axes[0, 0].legend(handles=names, fontsize=8, frameon=False, loc="lower left")
    drawn.suptitle("mean over settings (thick), each setting (thin)", fontsize=9)
    drawn.tight_layout()
    save(drawn, path)


def bars(groups: dict[str, list[Row]], targets: list[str], title: str, path: Path) -> bool:
    """NRMSE and seconds of a few choices, side by side; whether any seed has all of them.

    A bar is the mean over settings and seeds, its whisker the deviation over seeds of the mean over
    settings. Seeds that lack a choice on a setting are left out, so that bars compare.
    """
    by_group = [{(row["seed"], row["target"]): row for row in rows} for rows in groups.values()]
    seeds = [
        seed
        for seed in sorted({seed for rows in by_group for seed, _ in rows})
        if all((seed, target) in rows for rows in by_group for target in targets)
    ]
    if not seeds:
        return False
    drawn, axes = plt.subplots(1, 2, figsize=(10, 1.0 + 0.4 * len(groups)))
    for axis, name, unit in (
        (axes[0], "nrmse", "average NRMSE"),
        (axes[1], "seconds_to_best", "seconds to the best epoch"),
    ):
        means = np.array(
            [
                [np.mean([rows[seed, target][name] for target in targets]) for seed in seeds]
                for rows in by_group
            ]
        )
        spread = means.std(axis=1, ddof=1) if len(seeds) > 1 else None
        drawn_bars = axis.barh(
            range(len(groups)),
            means.mean(axis=1),
            xerr=spread,
            color=COLOURS["transferred"],
            height=0.6,
            error_kw={"linewidth": 0.8},
        )
        axis.bar_label(drawn_bars, fmt="%.3g", fontsize=7, padding=3)
        axis.set_xmargin(0.12)
        axis.set_yticks(range(len(groups)), list(groups), fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel(unit, fontsize=8)
        plain(axis)
    axes[1].set_yticklabels([])
    whiskers = (
        f"whiskers: standard deviation of it over {len(seeds)} seeds"
        if len(seeds) > 1
        else "one seed"
    )
    drawn.suptitle(f"{title}\nmean over {len(targets)} settings; {whiskers}", fontsize=9)
    drawn.tight_layout()
    save(drawn, path)
    return True
