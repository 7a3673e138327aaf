"""`driple predict --jobs` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple

SMALL = str(ROOT / "datasets/examples/resnet20.pbtxt")
ONE = ("--set", "processes=1")


def test_a_file_of_jobs_is_answered(tmp_path: Path) -> None:
    jobs, output = tmp_path / "jobs.jsonl", tmp_path / "out.jsonl"
    jobs.write_text(json.dumps({"job": SMALL, "setting": ["1xA100", "no"]}))
    done = driple("predict", "--jobs", jobs, "-o", output, *ONE, "--json")
    assert done.returncode == 0, done.stderr
    answered = json.loads(done.stdout)
    assert errors_of(answered) == []
    assert (answered["rows"], answered["errors"]) == (2, 1)
    assert f"wrote {output}: 2 rows, 1 error" in done.stderr
    assert len(output.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (("--jobs", "j.jsonl"), "--jobs needs -o"),
        (("--jobs", "j.jsonl", "-o", "o.jsonl", "--setting", "1xA100"), "--setting is stated by"),
        (("resnet50", "--jobs", "j.jsonl", "-o", "o.jsonl"), "JOB is stated by each line"),
        (("--jobs", "j.jsonl", "-o", "o.jsonl", "--set", "seed=3"), "--set seed is stated by"),
        (("--jobs", "j.jsonl", "-o", "o.jsonl", "--engine", "dask"), "--engine must be one of"),
        (("--jobs", "j.jsonl", "-o", "j.jsonl"), "would be lost"),
        (("resnet50", "-o", "o.jsonl"), "-o is for --jobs"),
        ((), "give a JOB"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    tmp_path: Path, typed: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "j.jsonl").write_text("{}\n")
    paths = [str(tmp_path / word) if word.endswith(".jsonl") else word for word in typed]
    done = driple("predict", *paths)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
