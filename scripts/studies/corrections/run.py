"""Errors of corrections of simulated step times, learned from published steps, on unseen jobs.

    python -m scripts.studies.corrections.run

What `driple evaluate --dataset published-gpu --set seeds=3` prints, kept in results.jsonl: minutes.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from driple.api.evaluating_published import evaluate_published
from scripts.studies.kit.results import add_result

SEEDS = 3
RESULTS = Path(__file__).parent / "results.jsonl"
PUBLISHED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "published"


def main() -> None:
    """Evaluate, then write the results in place of those that are there."""
    found = evaluate_published(PUBLISHED, seeds=SEEDS)
    RESULTS.unlink(missing_ok=True)
    for score in found.scores:
        row = asdict(score)
        row |= {name: round(row[name], 2) for name in ("median_pct", "p90_pct")}
        add_result(RESULTS, row)


if __name__ == "__main__":
    main()
