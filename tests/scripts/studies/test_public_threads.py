"""Study public_threads: what counts as right, by hand, and what its files must hold."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from scripts.studies.public_threads.report import outcome, rows
from scripts.studies.public_threads.run import HOME

TIMED = {"published": {"what": "step", "value": 0.5}}
FULL = {"published": {"what": "out of memory"}}


@pytest.mark.parametrize(
    ("thread", "answer", "words"),
    [
        (TIMED, {"step_s": [0.6, 0.3, 1.2]}, "right"),
        (TIMED, {"step_s": [0.6, 0.2, 1.2]}, "inside, too wide"),
        (TIMED, {"step_s": [0.6, 0.51, 1.2]}, "outside"),
        (TIMED, {"refused": "no such device"}, "no answer"),
        (FULL, {"memory_gib": [50.0, 40.0, 60.0], "fits": "no"}, "right"),
        (FULL, {"memory_gib": [20.0, 18.0, 30.0], "fits": "yes"}, "outside"),
        (FULL, {"step_s": [0.6, 0.3, 1.2], "fits": None}, "no answer"),
    ],
)
def test_outcomes(thread: dict[str, Any], answer: dict[str, Any], words: str) -> None:
    assert outcome(thread, answer) == words


def test_results_before_the_one_taken_are_all_listed() -> None:
    """From each query the first that satisfies the rule: those before it were passed over."""
    queries = json.loads((HOME / "queries.json").read_text(encoding="utf-8"))
    with (HOME / "passed.csv").open(encoding="utf-8") as file:
        passed = [(int(row["query"]), int(row["rank"])) for row in csv.DictReader(file)]
    taken = {thread["query"]: thread["rank"] for thread, _ in rows()}
    assert len(taken) == 10
    for query in range(1, len(queries) + 1):
        ranks = [rank for asked, rank in passed if asked == query]
        assert ranks == list(range(1, len(ranks) + 1))
        assert query not in taken or taken[query] == len(ranks) + 1
