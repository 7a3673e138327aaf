"""Launches that others disturb are made again, and the least disturbed is kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from driple.measure.counters.machine import BusyTime
from driple.profiler import steps_runner as profiler
from driple.profiler.steps import Plan
from driple.profiler.steps_runner import profile_script

PLAN = Plan(processes=1, iterations=2, warmup=3, repeats=1, tries=3, timeout_s=100)
COMMAND = ["-m", "driple.profiler.train", "bert-tiny", "--length", "8", "--batch-size", "2"]


def stolen(monkeypatch: pytest.MonkeyPatch, launches_s: Sequence[float]) -> None:
    """The hypervisor takes so many seconds in each launch; the clock is read before and after."""
    reads = [part for i, _ in enumerate(launches_s) for part in (sum(launches_s[:i]),
             sum(launches_s[: i + 1]))]  # fmt: skip
    steal_s = iter(reads)
    monkeypatch.setattr(
        profiler, "busy_time", lambda: BusyTime(busy_s=0.0, steal_s=float(next(steal_s)))
    )


def run(folder: Path, tries: int) -> tuple[float, list[str]]:
    """Cores that were stolen in the launch that is kept, and what was told."""
    reports: list[str] = []
    profile = profile_script(
        COMMAND, replace(PLAN, tries=tries), folder, steps=[2],
        progress=lambda what, *_: reports.append(what),
    )  # fmt: skip
    launch = profile.launches[2, 0]
    assert launch.wall_s is not None
    return launch.stolen_cores * launch.wall_s, reports


def test_a_disturbed_launch_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stolen(monkeypatch, [500, 0, 500])
    kept_s, messages = run(tmp_path, 3)
    assert kept_s == pytest.approx(0)
    assert [", disturbed: again" in words for words in messages] == [False, True, False]


def test_the_least_disturbed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stolen(monkeypatch, [500, 200])
    kept_s, _ = run(tmp_path, 2)
    assert kept_s == pytest.approx(200)
