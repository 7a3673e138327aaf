"""Ops of many steps as arrays: parts, sums, and some of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.simulate.prepared_job import OpKinds, PreparedJob
from scripts.fits.fit_table import FitTable, StepRow, fit_table
from tests.simulate.jobs import net

JOBS = [PreparedJob(net(batch, channels=channels)) for batch in (4, 64) for channels in (32, 64)]


def row(job: PreparedJob, seconds: float) -> StepRow:
    """A row of a job on a V100."""
    return StepRow(
        device=DEVICES["V100"],
        runtime=job.runtime,
        update=job.graph.update,
        source="one",
        seconds=seconds,
    )


@pytest.fixture(scope="module")
def table() -> FitTable:
    """A step of each job."""
    return fit_table((job.kinds, row(job, 1.0 + i)) for i, job in enumerate(JOBS))


def test_some_rows_of_a_table_are_a_table_of_these_rows(table: FitTable) -> None:
    """In the order that was asked for."""
    some = table.take([3, 1])
    assert [one.seconds for one in some.rows] == [4.0, 2.0]
    assert set(some.row_of.tolist()) == {0, 1}
    whole = table.compute_s[table.row_of == 1]
    assert some.compute_s[some.row_of == 1].tolist() == whole.tolist()


def test_parts_of_a_step_sum_to_the_step(table: FitTable) -> None:
    """Whatever is timed by itself, nothing is counted twice or lost."""
    job = JOBS[0]
    first = np.arange(len(job.kinds.executions)) % 2 == 0

    def part(chosen: np.ndarray) -> OpKinds:
        return replace(job.kinds, executions=np.where(chosen, job.kinds.executions, 0))

    parts = fit_table((part(chosen), row(job, 1.0)) for chosen in (first, ~first))
    for name in ("runs", "launches", "compute_s", "memory_s"):
        whole = getattr(table, name)[table.row_of == 0].sum()
        assert getattr(parts, name).sum() == pytest.approx(whole), name


def test_rows_of_one_job_share_the_inputs_of_the_network(table: FitTable) -> None:
    """Distinct inputs are held once."""
    twice = fit_table((job.kinds, row(job, 1.0)) for job in JOBS for _ in range(2))
    assert twice.inputs.tolist() == table.inputs.tolist()
    assert len(twice.row_of) == 2 * len(table.row_of)
