"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.studies.kernels.run import RESULTS, WAYS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown


def cell(rows: Sequence[Row]) -> str:
    """Median and 90th percentile of the errors, and the median with its sign, percent."""
    logs = np.concatenate([np.array(row["logs"]) for row in rows])
    sizes = np.abs(np.expm1(logs))
    signed = float(np.expm1(np.median(logs)))
    middle, far = np.median(sizes), np.quantile(sizes, 0.9)
    return f"{100 * middle:.1f}; {100 * far:.0f} ({100 * signed:+.0f})"


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    lines = []
    for what in sorted({row["what"] for row in rows}):
        mine = pick(rows, what=what)
        count = sum(len(row["logs"]) for row in pick(mine, way=WAYS[0]))
        better = sum(
            np.median(np.abs(pick(mine, way=WAYS[1], fold=fold)[0]["logs"]))
            < np.median(np.abs(pick(mine, way=WAYS[0], fold=fold)[0]["logs"]))
            for fold in {row["fold"] for row in mine}
        )
        folds = len({row["fold"] for row in mine})
        cells = [cell(pick(mine, way=way)) for way in WAYS]
        lines.append([what, str(count), *cells, f"{better} of {folds}"])
    head = ["steps of unseen families", "steps", *WAYS, "folds that are better with kernels"]
    return {"errors": markdown(head, lines, right=True)}
