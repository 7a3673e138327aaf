"""Kernels of measured steps by parts, as labels of the fit."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.simulate.prepared_job import OpKinds
from scripts.fits.fit_table import StepRow
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import (
    KERNELS_FILE,
    PARTS,
    UPDATE,
    KernelTime,
    kernel_steps,
    read_kernel_times,
    write_kernel_times,
)

FOLDER = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "measured-h100"
Step = tuple[str, float, OpKinds, StepRow]  # family, work of a sample, ops, label


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """All parts that ship."""
    return list(kernel_steps(FOLDER, 2.0))


def test_kernels_of_a_row_last_about_as_long_as_it_is_busy() -> None:
    """A little longer: kernels of several streams run at once."""
    rows = {row.key: row for row in read_profiled_runs(FOLDER / MEASURED_FILE)}
    sums: dict[str, float] = defaultdict(float)
    for kernel in read_kernel_times(FOLDER / KERNELS_FILE):
        sums[kernel.key] += kernel.seconds
    assert len(sums) > 200
    ratios = np.array([seconds / (rows[key].busy_s or np.nan) for key, seconds in sums.items()])
    assert np.quantile(ratios, 0.05) > 0.99
    assert np.median(ratios) < 1.02


def test_weights_sum_to_what_is_asked_for(steps: list[Step]) -> None:
    """Less what parts without ops, and very short ones, would have weighed."""
    total = sum(step.weight for *_, step in steps)
    assert 1.5 < total <= 2.0
    doubled = sum(step.weight for *_, step in kernel_steps(FOLDER, 4.0))
    assert doubled == pytest.approx(2 * total)


def test_parts_are_of_single_kernels(steps: list[Step]) -> None:
    """No host delays them, each has ops, and no op is in two parts of a step."""
    assert all(step.alone and step.seconds > 0 and step.weight > 0 for *_, step in steps)
    runs: dict[int, np.ndarray] = {}
    for _, _, kinds, _ in steps:
        assert kinds.executions.any()
        before = runs.get(id(kinds.table))
        if before is not None:
            assert not (before & (kinds.executions > 0)).any()
        runs[id(kinds.table)] = (kinds.executions > 0) | (False if before is None else before)


def test_the_update_counts_once_with_the_rest(steps: list[Step]) -> None:
    """Of a step that trains; other parts have none."""
    updates: dict[int, int] = defaultdict(int)
    for _, _, kinds, step in steps:
        updates[id(kinds.table)] += step.update.num_kernels > 0
    assert set(updates.values()) == {0, 1}


def test_the_table_is_read_as_written(tmp_path: Path) -> None:
    """The same rows give the same bytes."""
    times = read_kernel_times(FOLDER / KERNELS_FILE)
    file = tmp_path / KERNELS_FILE
    write_kernel_times(file, times)
    assert file.read_bytes() == (FOLDER / KERNELS_FILE).read_bytes()
    assert {one.part for one in times} <= {*PARTS, ""}
    assert any(one.part == UPDATE for one in times)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ConfigError, match="part"):
        KernelTime(key="a", part="glue", kernels=1, seconds=1.0)
    with pytest.raises(ConfigError, match="seconds"):
        KernelTime(key="a", part="norm", kernels=1, seconds=-1.0)
