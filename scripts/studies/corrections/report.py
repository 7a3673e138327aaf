"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.studies.corrections.run import RESULTS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import least, markdown


def table(rows: Sequence[Row], split: str) -> list[str]:
    """Median and 90th percentile by task and method; bold is the lowest median of a task."""
    mine = pick(rows, split=split)
    methods = list(dict.fromkeys(row["method"] for row in mine))
    lines = []
    for task in dict.fromkeys(row["task"] for row in mine):
        by_method = {row["method"]: row for row in pick(mine, task=task)}
        best = least({name: row["median_pct"] for name, row in by_method.items()})
        cells = [task, str(by_method[methods[0]]["rows"])]
        for name in methods:
            text = f"{by_method[name]['median_pct']:.1f}; {by_method[name]['p90_pct']:.0f}"
            cells.append(f"**{text}**" if name == best else text)
        lines.append(cells)
    return markdown(["steps on one device", "rows", *methods], lines, right=True)


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    return {"by_family": table(rows, "family"), "by_device": table(rows, "device")}
