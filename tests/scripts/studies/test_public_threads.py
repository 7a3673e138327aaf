"""Study public_threads: what counts as right, by hand, and what its files must hold."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.studies.public_threads.report import figures, outcome, rows
from scripts.studies.public_threads.run import HOME, main

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


def test_all_results_before_the_last_one_taken_are_listed() -> None:
    """Those taken and those passed over of each query are one sequence from its first."""
    queries = json.loads((HOME / "queries.json").read_text(encoding="utf-8"))
    with (HOME / "passed.csv").open(encoding="utf-8") as file:
        listed = [(int(row["query"]), int(row["rank"])) for row in csv.DictReader(file)]
    threads = [thread for thread, _ in rows()]
    listed += [(thread["query"], thread["rank"]) for thread in threads]
    assert [thread["ten"] for thread in threads] == [1] * 10 + [2] * 10
    for query in range(1, len(queries) + 1):
        ranks = sorted(rank for asked, rank in listed if asked == query)
        assert ranks == list(range(1, len(ranks) + 1))


def test_first_answers_stay_what_they_were() -> None:
    """Today's answers change; the blind ones of the second ten are counted as they were noted."""
    blind, today = (line.split(" | ")[1:5] for line in figures()[3:5])
    assert [int(count.strip(" |")) for count in blind] == [3, 3, 4, 0]
    assert sum(int(count.strip(" |")) for count in today) == 10


def test_a_folder_without_clones_is_refused_with_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nanogpt").mkdir()
    with pytest.raises(SystemExit) as refused:
        main([str(tmp_path)])
    words = capsys.readouterr().err
    assert refused.value.code == 2
    assert "git clone https://github.com/ueoo/SoCo soco && git -C soco checkout" in words
    assert "nanoGPT" not in words


def test_jobs_read_only_clones_that_are_listed() -> None:
    """The folders that a job puts on its path, and those that it reads."""
    with (HOME / "clones.csv").open(encoding="utf-8") as file:
        clones = {row["folder"] for row in csv.DictReader(file)}
    named = set()
    for job in (HOME / "jobs").glob("*.py"):
        named |= set(re.findall(r"beside \./(\w+)", job.read_text(encoding="utf-8")))
    assert named and named <= clones
