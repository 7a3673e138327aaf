"""Memory over the ops of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple import JobOptions, inspect
from driple.plot.memory import plot_memory
from tests.plot.looks import drawn, faults_of, words_of


@pytest.mark.parametrize(("batch_size", "unit"), [(1, "MiB"), (64, "GiB")])
def test_kinds_are_stacked_up_to_the_peak_that_is_named(
    tmp_path: Path, batch_size: int, unit: str
) -> None:
    options = JobOptions(batch_size=batch_size)
    memory = inspect("mobilenet_v2", "1xH100", options=options, memory=True).memory
    assert memory is not None
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_memory(memory, path, title="mobilenet_v2"), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    words = words_of(figure)
    assert axis.get_ylabel() == f"allocated ({unit})"
    assert {"parameters", "gradients", "activations"} <= set(words)
    peak = memory.timeline.peak_bytes / {"MiB": 2**20, "GiB": 2**30}[unit]
    assert any(text.startswith(f"peak {peak:.3g} {unit}: ") for text in words)
    assert max(area.get_paths()[0].vertices[:, 1].max() for area in axis.collections) == (
        pytest.approx(peak)
    )
