"""Gaps by hand: their causes, places and lengths add up to what is not busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.measure.kineto.columns import read_trace
from driple.measure.kineto.use import use_of_columns
from tests.measure.kineto.traces import event, gpu_steps, write


def test_gaps_of_a_gpu_by_cause(tmp_path: Path) -> None:
    """From 0 to 10 and 50 to 70 it waits for the host, from 20 to 30 not, to 100 for the next."""
    use = use_of_columns(read_trace(write(tmp_path / "t.json", gpu_steps(3))))
    gaps = {(gap.cause, gap.place): gap for gap in use.gaps}
    assert use.busy_s == pytest.approx(35e-6)
    assert gaps["host", "Optimizer.step#SGD.step"].seconds == pytest.approx(20e-6)
    assert gaps["launched", "backward"].seconds == pytest.approx(10e-6)
    assert gaps["host", "forward"].seconds == pytest.approx(35e-6)  # 75 to 100, and 0 to 10
    assert gaps["host", "forward"].longest_s == pytest.approx(25e-6)
    assert gaps["host", "forward"].before == "cudaLaunchKernel"
    total = sum(gap.seconds for gap in use.gaps) + use.busy_s
    assert total == pytest.approx(use.step_s)


def test_gaps_of_the_host_are_times_without_an_op(tmp_path: Path) -> None:
    events = [
        event("user_annotation", "ProfilerStep#1", 0, 100),
        event("cpu_op", "aten::mm", 10, 20),
        event("cpu_op", "aten::empty", 12, 2),
        event("user_annotation", "enumerate(DataLoader)#_X.__next__", 40, 30),
        event("cpu_op", "aten::stack", 60, 10),
    ]
    use = use_of_columns(read_trace(write(tmp_path / "t.json", events)))
    assert {(gap.cause, gap.place, round(gap.seconds * 1e6)) for gap in use.gaps} == {
        ("no_op", "forward", 10),
        ("no_op", "enumerate(DataLoader)#_X.__next__", 30),
        ("no_op", "end of the step", 30),
    }
