"""A command that goes on where it was killed passes; one that loses something does not."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_what_a_killed_run_leaves_behind_is_a_fault() -> None:
    """A process with the run's token that is still there, and what must not be left."""
    command = kills.Command(lambda out: (), left=lambda out: ["a namespace"])
    ends = iter([True, False, True])
    with (
        mock.patch.object(kills, "_ended", lambda *arguments: next(ends)),
        mock.patch.object(kills, "_ENDS_S", 0.0),
        mock.patch.object(kills, "_processes", lambda token: [4711]),
    ):
        outcome = kills.outcome_of(command, 1, seed=0)
    assert outcome.faults == ["cycle 0: 4711 runs on", "cycle 0: a namespace"]


def test_processes_are_known_by_the_token_in_their_environment(tmp_path: Path) -> None:
    token = str(tmp_path)
    running = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        stdin=subprocess.PIPE,
        env=os.environ | {"DRIPLE_KILLED_RUN": token},
    )
    assert kills._processes(token) == [running.pid]
    running.communicate(b"\n")
    assert kills._processes(token) == []


def test_a_killed_record_of_over_a_second_must_be_readable(tmp_path: Path) -> None:
    samples = tmp_path / "record" / "samples.bin"
    assert kills._unreadable(tmp_path) == []
    samples.parent.mkdir()
    samples.write_bytes(b"short")
    assert kills._unreadable(tmp_path) == []
    samples.write_bytes(bytes(30_000))
    assert len(kills._unreadable(tmp_path)) == 1
