"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import COLOURS, plain, save
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.own_runs.run import DRAWS, RESULTS, SIZES

_WAYS = {
    "tuned": "simulator, five factors",
    "scaled": "simulator, one factor",
    "anew": "learned anew",
}
_TASKS = {
    "train": "training",
    "forward": "forward pass",
    "both": "training and forward",
    "busy": "the same where the GPU is the limit",
}


def places(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Device, task and source, in the order of the rows."""
    return list(dict.fromkeys((row["device"], row["task"], row["source"]) for row in rows))


def cell(rows: Sequence[Row]) -> str:
    """Median and 90th percentile, each the mean over draws; a dash without any."""
    if not rows:
        return "-"
    values = [np.mean([row[name] for row in rows]) for name in ("median_pct", "p90_pct")]
    return "; ".join(f"{value:.1f}" for value in values)


def table(rows: Sequence[Row], way: str) -> list[str]:
    """One line per device and task."""
    lines = []
    for device, task, source in places(rows):
        mine = pick(rows, device=device, task=task, source=source)
        untuned = pick(mine, way="untuned")
        lines.append(
            [
                f"{device}, {_TASKS[task]}",
                "measured by us" if source == "ours" else source,
                str(untuned[0]["steps"]),
                cell(untuned),
                *(cell(pick(mine, way=way, runs=size)) for size in SIZES),
            ]
        )
    head = ["device", "source", "steps", "untuned", *(f"{size} runs" for size in SIZES)]
    return markdown(head, lines, right=True)


def pictures() -> None:
    """Median error by the number of runs, for the devices that we measured and two others."""
    rows = read_results(RESULTS)
    shown = [place for place in places(rows) if place[1] == "both" or place[0] == "3090"]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 3.2), sharey=True)
    for axis, (device, task, source) in zip(axes, shown, strict=True):
        mine = pick(rows, device=device, task=task, source=source)
        (untuned,) = (row["median_pct"] for row in pick(mine, way="untuned"))
        axis.axhline(untuned, color="#999999", linewidth=1, linestyle=":", label="untuned")
        for (way, words), colour in zip(_WAYS.items(), COLOURS, strict=False):
            medians = [
                np.mean([row["median_pct"] for row in pick(mine, way=way, runs=size)])
                for size in SIZES
            ]
            axis.plot(SIZES, medians, color=colour, marker="o", markersize=3, label=words)
        axis.set_xscale("log", base=2)
        axis.set_xticks(SIZES, [str(size) for size in SIZES])
        axis.set_title(f"{device}, {_TASKS[task]}", fontsize=9)
        axis.set_xlabel("runs on the device", fontsize=8)
        plain(axis)
    axes[0].set_ylim(0, 60)
    axes[0].set_ylabel("median error of other models (%)", fontsize=8)
    axes[-1].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    save(figure, Path(__file__).parent / "learning.png")


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    return {
        "tuned": table(rows, "tuned"),
        "scaled": table(rows, "scaled"),
        "anew": table(rows, "anew"),
        "draws": str(DRAWS),
    }
