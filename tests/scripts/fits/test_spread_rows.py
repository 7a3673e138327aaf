"""What a step on several devices takes without its exchange."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.graph.step_facts import OptimizerUpdate
from driple.runs.measured_run import MeasuredRun
from driple.runs.users_table import read_runs
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.spread_rows import computing_of, telling_rows, update_on_one
from tests.simulate.jobs import net

UPDATE = OptimizerUpdate(optimizer="adamw", state_bytes=800, moved_bytes=3200, num_kernels=4)


class Nets:
    """A step that takes long beside its exchange."""

    def lacks(self, row: MeasuredRun) -> str:
        """Nothing is lacking."""
        return ""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        """The same step for all rows."""
        return PreparedJob(net(256, depth=6))


@pytest.fixture
def row(tmp_path: Path) -> MeasuredRun:
    """Eight devices with fast links."""
    file = tmp_path / "rows.csv"
    file.write_text("job,setting,seconds,library\nown:net,8xA100/NVLink,0.5,torch2\n")
    return read_runs(file)[0]


def test_computing_is_less_than_the_step_and_most_of_it(row: MeasuredRun) -> None:
    (computing,) = computing_of([row], Nets(), shipped_calibration())
    assert 0.8 * row.step_s <= computing.step_s <= row.step_s


def test_a_step_that_waits_for_its_exchange_tells_nothing(row: MeasuredRun) -> None:
    slow = replace(row, setting="8x8xA100/NVLink+1G")
    assert computing_of([slow], Nets(), shipped_calibration()) == []


def test_jobs_that_one_such_device_ran_are_known_already(row: MeasuredRun) -> None:
    alone = replace(row, setting="1xA100")
    assert telling_rows([row]) == [row]
    assert telling_rows([row, alone]) == []
    assert telling_rows([row, replace(alone, job="own:other")]) == [row]
    assert telling_rows([replace(row, library="")]) == []


@pytest.mark.parametrize(
    ("setting", "shards"),
    [("8xA100@ddp", 1), ("8xA100@zero1", 8), ("8xA100@fsdp", 8), ("2x8xA100/NVLink+100G@hsdp", 8)],
)
def test_devices_that_share_the_parameters_out_update_a_shard(
    row: MeasuredRun, setting: str, shards: int
) -> None:
    update = update_on_one(replace(row, setting=setting), UPDATE)
    assert update == replace(UPDATE, moved_bytes=UPDATE.moved_bytes // shards)
