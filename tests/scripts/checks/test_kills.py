"""A command that goes on where it was killed passes; one that loses something does not."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from scripts.checks import kills
from scripts.checks.chaos import write_jobs

JOBS = kills.Command(
    lambda out: ("predict", "--jobs", out / "jobs.jsonl", "-o", out / "rows.jsonl"),
    lambda folder: write_jobs(folder / "jobs.jsonl", lines=60),
)


def test_killed_predictions_end_as_without() -> None:
    outcome = kills.outcome_of(JOBS, 2, seed=1)
    assert outcome.kills == 2
    assert outcome.cycles >= 1
    assert outcome.faults == []


@pytest.mark.parametrize("spoil", ["left over", "differs"])
def test_a_run_that_ends_otherwise_is_a_fault(spoil: str) -> None:
    starts = iter(range(100))

    def ended(command: kills.Command, folder: Path, after_s: float | None) -> bool:
        """The first run is whole, the second is killed once and then ends badly."""
        start = next(starts)
        (folder / "rows").write_text("other" if start and spoil == "differs" else "rows")
        if start and spoil == "left over":
            (folder / "rows.part").write_text("")
        return start != 1

    with mock.patch.object(kills, "_ended", ended):
        outcome = kills.outcome_of(kills.Command(lambda out: ()), 1, seed=0)
    assert outcome.faults
