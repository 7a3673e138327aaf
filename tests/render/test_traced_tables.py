"""The tables of `inspect --measured` say which of many numbers are those of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

import driple
from driple.render.traced_tables import GAP_WORDS, print_traced, step_words
from tests.measure.kineto.traces import gpu_steps, write

ROOT = Path(__file__).resolve().parents[2]


def test_rows_beyond_the_top_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "t.json", gpu_steps(3))
    result = driple.inspect(
        str(ROOT / "datasets/examples/resnet20.pbtxt"), "1xV100", measured=trace
    )
    assert result.traced is not None
    print_traced(result, result.traced, 1)
    shown = capsys.readouterr().out
    assert f"and {len(result.traced.kinds) - 1} more with less time" in shown
    assert shown.count(GAP_WORDS["host"]) == 1
    words = dict(step_words(result, result.traced))
    assert words["trace"] == "45 events on a GPU; median of 3 steps"
    assert "35 us (35 %)" in words["measured"]
    longest = max(map(len, shown.splitlines()))
    assert longest <= 100, shown
