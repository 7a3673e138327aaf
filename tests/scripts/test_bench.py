"""The benchmarks can be imported, and the clock takes the median."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from scripts.bench import timing
from scripts.bench.all import PARTS

BENCH = Path(__file__).parents[2] / "scripts/bench"
NAMES = sorted(file.stem for file in BENCH.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    """Nothing runs before `main`, and every part of the whole is there."""
    module = import_module(f"scripts.bench.{name}")
    assert name == "timing" or callable(module.main)
    assert set(PARTS) <= set(NAMES)


def test_the_median_leaves_out_warm_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of 100 s, 1 s, 5 s and 2 s, of which the first is a warm-up."""
    ends = iter((0.0, 1.0, 1.0, 6.0, 6.0, 8.0))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ends))
    calls = []
    assert timing.median_s(lambda: calls.append(1), 3) == 2.0
    assert len(calls) == 4
