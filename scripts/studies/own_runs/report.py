"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.own_runs.run import DRAWS, RESULTS, SIZES

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


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    return {
        "tuned": table(rows, "tuned"),
        "scaled": table(rows, "scaled"),
        "draws": str(DRAWS),
    }
