"""Page from results.jsonl."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from scripts.studies.clusters.run import RESULTS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown

__all__ = ["parts"]

_LEAST = 4  # rows of a line of its own


def parts() -> Parts:
    """Tables and numbers."""
    known = read_results(RESULTS)
    series, rows, mlperf = (pick(known, kind=kind) for kind in ("series", "rows", "mlperf"))
    pytorch = pick(series, program="PyTorch")
    later = pick(rows, source="MLPerf Training v5.1")
    return {
        "pairs": str(len(series)),
        "series": _series(series),
        "scales": _scales([row for row in pytorch if row["source"] != "MLPerf Training"]),
        "mlperf": _mlperf(mlperf),
        "mlperf_rows": str(len(mlperf)),
        "rows": _rows(rows),
        "later_rows": str(len(later)),
        "later": _errors([row["fused_s"] / row["published_s"] for row in later]),
        "primus": _primus(pick(rows, source="AMD Primus")),
    }


def _errors(ratios: Sequence[float]) -> str:
    """Median and 90th percentile of the errors, percent."""
    median, ninth = np.quantile(100 * np.abs(np.array(ratios) - 1), [0.5, 0.9])
    return f"{median:.0f} ; {ninth:.0f}"


def _series(series: Sequence[Row]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in series:
        where = "machines" if row["machines"] > 1 else "one machine"
        groups[row["source"], row["program"], f"{where}, {row['network']}"].append(row)
    lines = [
        [
            *key,
            str(len(some)),
            _errors([row["start"] for row in some]),
            _errors([row["start"] * row["predicted"] / row["published"] for row in some]),
            _errors([row["predicted"] / row["published"] for row in some]),
            f"{np.median([row['published'] for row in some]):.2f}",
            f"{np.median([row['predicted'] for row in some]):.2f}",
        ]
        for key, some in sorted(groups.items())
        if len(some) >= _LEAST
    ]
    head = ["source", "framework", "network", "rows", "smallest, %", "larger, %",
            "relative, %", "published", "predicted"]  # fmt: skip
    return markdown(head, lines)


def _scales(series: Sequence[Row]) -> list[str]:
    """By number of machines: how much longer than predicted a larger member takes."""
    bins = ((1, 1), (2, 2), (3, 8), (9, 16), (17, 64))
    lines = []
    for low, high in bins:
        some = [row for row in series if low <= row["machines"] <= high]
        ratio = np.array([row["published"] / row["predicted"] for row in some])
        quarters = np.quantile(ratio, [0.25, 0.5, 0.75])
        name = f"{low}" if low == high else f"{low} to {high}"
        lines.append([name, str(len(some)), *(f"{one:.3f}" for one in quarters)])
    return markdown(["machines", "rows", "first quarter", "median", "third quarter"], lines)


def _mlperf(rows: Sequence[Row]) -> list[str]:
    families = sorted({row["family"] for row in rows})
    kinds = ("eager", "fused", "replayed")
    lines = []
    for family in [*families, "all"]:
        some = [row for row in rows if family in ("all", row["family"])]
        errors = [_errors([row[kind] for row in some]) for kind in kinds]
        lines.append([family, str(len(some)), *errors])
    return markdown(["family", "rows", *kinds], lines)


def _rows(rows: Sequence[Row]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        device = row["setting"].split("/")[0].rpartition("x")[2]
        groups[row["source"], row["model"], device].append(row)
    lines = []
    for key, some in sorted(groups.items()):
        eager = [row["eager_s"] / row["published_s"] for row in some if row["eager_s"]]
        fused = [row["fused_s"] / row["published_s"] for row in some if row["fused_s"]]
        lines.append([
            *key, str(len(some)), *(f"{np.median(one):.2f}" if one else "-"
                                    for one in (eager, fused)),
        ])  # fmt: skip
    head = ["source", "model", "device", "rows", "eager / published", "fused / published"]
    return markdown(head, lines)


def _primus(rows: Sequence[Row]) -> list[str]:
    lines = [
        [
            row["model"],
            row["precision"],
            row["setting"].split("@")[1],
            f"{row['published_s']:.2f}",
            f"{row['eager_s']:.2f} ({100 * (row['eager_s'] / row['published_s'] - 1):+.0f} %)",
            f"{row['fused_s']:.2f} ({100 * (row['fused_s'] / row['published_s'] - 1):+.0f} %)",
        ]
        for row in rows
    ]
    return markdown(["model", "precision", "scheme", "published, s", "eager", "fused"], lines)
