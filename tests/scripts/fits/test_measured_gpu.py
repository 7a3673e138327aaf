"""What we measured on a GPU: the table, and estimates of memory that were not fitted on it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.memory.calibration import shipped_memory_calibration
from scripts.fits.measured_gpu import (
    MEASURED_FILE,
    ProfiledRun,
    read_profiled_runs,
    write_profiled_runs,
)
from scripts.pages.memory_measured import FOLDERS, Checked, checked

# Rows of each device that ran out of memory, and forward passes that it has more of.
WITHOUT_MEMORY = {"H100": 7, "H200": 1}
FORWARD_PASSES = {"H100": 70, "H200": 60}


@pytest.fixture(scope="module", params=FOLDERS)
def device(request: pytest.FixtureRequest) -> str:
    """One that we measured."""
    return str(request.param)


@pytest.fixture(scope="module")
def rows(device: str) -> list[ProfiledRun]:
    """The table that ships."""
    return read_profiled_runs(FOLDERS[device] / MEASURED_FILE)


@pytest.fixture(scope="module")
def pairs(device: str) -> list[Checked]:
    """Rows that have a step, with their estimates."""
    return checked(shipped_memory_calibration(), device)[0]


def test_rows_are_whole(device: str, rows: list[ProfiledRun]) -> None:
    """Names are unique, the device holds what PyTorch reserved, and that what was allocated."""
    assert len({row.key for row in rows}) == len(rows) > 100
    total = json.loads((FOLDERS[device] / "machine.json").read_text())["total_bytes"]
    for row in (one for one in rows if one.ran):
        assert row.step_s and row.step_p10_s and row.step_p90_s and row.host_s
        assert row.step_p10_s <= row.step_s <= row.step_p90_s
        assert row.kept_bytes and row.allocated_bytes and row.reserved_bytes and row.device_bytes
        assert row.kept_bytes < row.allocated_bytes <= row.reserved_bytes
        assert row.reserved_bytes < row.device_bytes < total
    assert sum(not row.ran for row in rows) == WITHOUT_MEMORY[device]


def test_the_table_is_read_as_written(device: str, rows: list[ProfiledRun], tmp_path: Path) -> None:
    """The same rows give the same bytes; a damaged table is refused."""
    file = tmp_path / "rows.csv.gz"
    write_profiled_runs(file, rows)
    assert file.read_bytes() == (FOLDERS[device] / MEASURED_FILE).read_bytes()
    file.write_bytes(b"no table")
    with pytest.raises(ConfigError, match="cannot read"):
        read_profiled_runs(file)


def test_a_row_that_ran_states_its_memory(rows: list[ProfiledRun]) -> None:
    """Only a job that ran out of memory has none."""
    row = next(one for one in rows if one.ran)
    with pytest.raises(ConfigError, match="states its allocated memory"):
        replace(row, allocated_bytes=None)


def _errors(pairs: list[Checked], task: str) -> np.ndarray:
    """Of allocated memory, of steps that ran and were not compiled."""
    return np.abs([
        one.error("allocated", "allocated_bytes")
        for one in pairs if one.row.ran and not one.row.compiled and one.row.task == task
    ])  # fmt: skip


def test_allocated_memory_is_that_of_pytorch(pairs: list[Checked]) -> None:
    """Of steps that train: the model of lifetimes has no constant but workspaces."""
    errors = _errors(pairs, "train")
    assert len(errors) > 150
    assert np.median(errors) < 0.003
    assert np.quantile(errors, 0.9) < 0.03
    assert errors.max() < 0.15


def test_forward_passes_need_workspaces_beside_few_tensors(
    device: str, pairs: list[Checked]
) -> None:
    """What a grouped convolution takes for itself shows where nothing is kept for a gradient."""
    errors = _errors(pairs, "forward")
    assert len(errors) > FORWARD_PASSES[device]
    assert np.median(errors) < 0.01
    assert np.quantile(errors, 0.9) < 0.1
    assert (errors > 0.2).sum() <= 2


def test_device_memory_of_steps_that_nothing_was_fitted_on(pairs: list[Checked]) -> None:
    """Median within 8 %, nine in ten within 20 %."""
    errors = np.abs([
        one.error("device_total", "device_bytes")
        for one in pairs if one.row.ran and not one.row.compiled
    ])  # fmt: skip
    assert np.median(errors) < 0.08
    assert np.quantile(errors, 0.9) < 0.2


def test_what_ran_out_of_memory_does_not_fit(pairs: list[Checked]) -> None:
    """And what ran fits, unless it is compiled, which needs less than is estimated."""
    for pair in pairs:
        if not pair.row.compiled:
            assert pair.estimate.fits == ("yes" if pair.row.ran else "no"), pair.row.key
