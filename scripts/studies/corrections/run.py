"""Errors of corrections of simulated step times, learned from published steps, on unseen jobs.

    python -m scripts.studies.corrections.run [--split SPLIT] [--against NAMES] [--seeds N]

Without options all is evaluated and kept in results.jsonl: minutes. With one or more, the scores
are printed as JSON lines in place of that.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from driple.errors import DatasetError
from driple.extras import require_torch
from driple.runs.validation.baselines import require_trees
from driple.runs.validation.shipped import read_shipped
from driple.simulate.calibration import shipped_calibration
from scripts.studies.corrections.scoring import METHODS, SPLITS, score_corrections
from scripts.studies.kit.results import add_result

SEEDS = 3
RESULTS = Path(__file__).parent / "results.jsonl"
PUBLISHED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "published"


def evaluate(
    splits: Sequence[str] = SPLITS, methods: Sequence[str] = tuple(METHODS), seeds: int = SEEDS
) -> list[dict[str, Any]]:
    """Scores of the simulator and of corrections, one row per split, task and method.

    Raises:
        DatasetError: the checkout holds no published steps.
        MissingExtraError: a method needs a package that is not installed.
    """
    if "trees" in methods:
        require_trees()
    if "network" in methods:
        require_torch("a network that corrects the simulator", extra="calibration")
    shipped = read_shipped(PUBLISHED, forward=True)
    if shipped is None:
        raise DatasetError(f"{PUBLISHED} holds no published steps")
    scores = score_corrections(
        shipped, shipped_calibration(), splits=splits, methods=methods, seeds=seeds
    )
    rows = [asdict(score) for score in scores]
    return [row | {name: round(row[name], 2) for name in ("median_pct", "p90_pct")} for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate; print what was asked for, or write all in place of the results that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=SPLITS)
    parser.add_argument("--against", nargs="+", choices=tuple(METHODS))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args(arguments)
    rows = evaluate(
        SPLITS if options.split is None else (options.split,),
        options.against or tuple(METHODS),
        options.seeds or SEEDS,
    )
    if (options.split, options.against, options.seeds) != (None, None, None):
        for row in rows:
            print(json.dumps(row))
        return
    RESULTS.unlink(missing_ok=True)
    for row in rows:
        add_result(RESULTS, row)


if __name__ == "__main__":
    main()
