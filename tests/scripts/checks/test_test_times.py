"""Budgets of folders of tests: what is over is named; times are the processor's."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.checks.test_times import (
    ALLOWED_S,
    BUDGET,
    BY_BUDGET,
    ROOT,
    budget_text,
    budgets_of,
    main,
    over_budget,
)

BUSY = """
import subprocess, sys, time

def test_in_a_process():
    code = "import time\\nwhile time.process_time() < 0.6: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

def test_that_waits():
    time.sleep(0.6)
"""


def test_a_folder_over_its_budget_is_named() -> None:
    lines = over_budget({"tests/a": 5.0, "tests/b": 7.0, "tests/new": 1.0}, {
        "tests/a": 5, "tests/b": 6, "tests/not run": 1,
    })  # fmt: skip
    assert lines == [
        "tests/b: 7 s of processor time, 6 s allowed",
        "tests/new: 1 s of processor time, and no budget",
    ]


def test_every_folder_of_tests_has_a_budget() -> None:
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["processor_s"]
    folders = {
        "/".join(file.relative_to(ROOT).parent.parts[:2])
        for file in (ROOT / "tests").rglob("test_*.py")
    }
    assert folders - {"tests/data"} == set(budget)


def test_a_budget_is_twice_what_the_pace_of_the_machine_makes_of_it() -> None:
    before = {"tests/a": 10.0, "tests/b": 20.0, "tests/c": 100.0, "tests/not run": 5.0}
    times = {"tests/a": 15.0, "tests/b": 30.0, "tests/c": 900.0, "tests/new": 1.0}
    assert budgets_of(times, before) == {
        name: BY_BUDGET * 1.5 * before[name] + ALLOWED_S
        for name in ("tests/a", "tests/b", "tests/c")
    }
    assert budgets_of({"tests/new": 1.0}, before) == {}


def test_the_file_is_what_the_program_writes() -> None:
    text = BUDGET.read_text(encoding="utf-8")
    assert budget_text(tomllib.loads(text)["processor_s"]) == text


def test_a_slow_machine_is_over_no_budget_and_a_slow_folder_is(tmp_path: Path) -> None:
    before = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["processor_s"]
    times = {name: 3 * seconds for name, seconds in before.items()}
    (tmp_path / "a.json").write_text(json.dumps(times))
    assert main(["--times", str(tmp_path)]) == 0
    times["tests/cli"] *= 2.5
    (tmp_path / "a.json").write_text(json.dumps(times))
    assert main(["--times", str(tmp_path)]) == 1


def test_runs_are_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run, seconds in (("first", 1.5), ("second", 1e6)):
        times = {"tests/memory": seconds, "tests/jobs": 1.0, "tests/cli": 1.0}
        (tmp_path / f"{run}.json").write_text(json.dumps(times))
    assert main(["--times", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "1000001.5" in captured.out
    assert captured.err.startswith("tests/memory: 1000002 s of processor time")


def test_no_times_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--times", str(tmp_path)])
    assert caught.value.code == 2
    assert "run scripts/test first" in capsys.readouterr().err


def test_a_process_counts_and_a_wait_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "a"
    folder.mkdir(parents=True)
    (folder / "test_busy.py").write_text(BUSY)
    (tmp_path / "tests" / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    times = tmp_path / "out" / "times.json"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--times", str(times)],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    assert 0.6 <= json.loads(times.read_text())["tests/a"] < 1.1
