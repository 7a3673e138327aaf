"""Samples/s against what is varied most."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple import JobOptions, sweep
from driple.analytic.whatif import GridOptions
from driple.errors import ConfigError
from driple.plot.sweep_devices import plot_devices
from tests.plot.looks import drawn, faults_of, words_of


@pytest.mark.parametrize(
    ("grid", "batch_sizes", "below"),
    [
        (GridOptions(workers=(1, 2, 4, 8)), (), "devices"),
        (GridOptions(workers=(16,), bandwidths_bits_per_s=(1e9, 1e10, 1e11)), (),
         "rate of the link, bit/s"),
        (GridOptions(workers=(8,)), (16, 32, 64), "samples per device"),
    ],
)  # fmt: skip
def test_the_axis_with_most_values_lies_below(
    tmp_path: Path, grid: GridOptions, batch_sizes: tuple[int, ...], below: str
) -> None:
    options = None if batch_sizes else JobOptions(batch_size=64)
    result = sweep("mobilenet_v2", "8xH100", grid=grid, batch_sizes=batch_sizes, options=options)
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_devices(result, path), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    assert axis.get_xlabel() == below
    assert ("perfect" in words_of(figure)) == (below == "devices")


def test_without_a_batch_size_there_is_nothing_to_draw(tmp_path: Path) -> None:
    result = sweep("mobilenet_v2", "8xH100", options=JobOptions(batch_size=8))
    result.estimates.pop("samples_per_s")
    with pytest.raises(ConfigError, match="batch size is not known"):
        plot_devices(result, tmp_path / "p.png")
