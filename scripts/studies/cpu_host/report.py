"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.studies.cpu_host.run import GROUPS, RESULTS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown

_GROUP_WORDS = {"twelve": "twelve of `datasets/other-hosts`", "families": "ten new families"}
_COMPUTING = "a factor on computing"


def errors_pct(rows: Sequence[Row]) -> np.ndarray:
    """Error of each step time."""
    return np.array([100 * abs(row["predicted_s"] / row["measured_s"] - 1) for row in rows])


def summary(rows: Sequence[Row]) -> list[str]:
    """A line for each machine, way and group."""
    lines = []
    pairs = dict.fromkeys((row["machine"], row["way"]) for row in rows)
    for machine, way in pairs:
        for group in (*GROUPS, None):
            mine = [
                row for row in pick(rows, way=way, machine=machine) if group in (None, row["group"])
            ]
            errors = errors_pct(mine)
            inside = [row["low_s"] <= row["measured_s"] <= row["high_s"] for row in mine]
            width = np.median([row["high_s"] / row["low_s"] for row in mine])
            lines.append(
                [
                    machine,
                    way,
                    "both" if group is None else _GROUP_WORDS[group],
                    f"{np.median(errors):.1f} %",
                    f"{np.percentile(errors, 90):.0f} %",
                    f"{np.mean([row['smape_pct'] for row in mine]):.1f} %",
                    f"{sum(inside)} of {len(inside)}",
                    f"{width:.2f}",
                ]
            )
    head = ["machine of", "way", "workloads", "step, median", "90th percentile",
            "twelve numbers, SMAPE", "inside", "width"]  # fmt: skip
    return markdown(head, lines, right=True)


def each(rows: Sequence[Row]) -> list[str]:
    """A line for each workload."""
    lines = [
        [
            row["machine"],
            row["workload"],
            f"{row['measured_s']:.3f} s",
            f"{row['predicted_s']:.3f} s",
            f"{100 * (row['predicted_s'] / row['measured_s'] - 1):+.0f} %",
            f"{row['low_s']:.3f} to {row['high_s']:.3f} s",
        ]
        for row in pick(rows, way=_COMPUTING)
    ]
    return markdown(
        ["machine of", "workload", "measured", "predicted", "off", "interval"], lines, right=True
    )


def _factors(rows: Sequence[Row], name: str) -> str:
    """A factor of each machine, in words."""
    return " and ".join(f"{value:.2f}" for value in dict.fromkeys(row[name] for row in rows))


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    return {
        "summary": summary(rows),
        "each": each(rows),
        "computing": _factors(rows, "computing_factor"),
        "whole": _factors(rows, "whole_factor"),
    }
