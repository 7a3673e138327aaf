"""Timed steps beside an answer, and the table that `driple transfer --from gpu` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.api.tuning import tune_device
from driple.cluster.setting import parse_setting
from driple.errors import ConfigError
from driple.integrations.step_watch import TABLE_COLUMNS, WARM_UP_STEPS, StepWatch, with_options
from driple.jobs.load import JobOptions
from driple.runs.users_table import COLUMNS, read_runs
from tests.planning.gpt import write_gpt

OPTIONS = JobOptions(batch_size=4, seq_len=64, precision="amp-bf16", optimizer="adamw")


class Clock:
    """Steps of a given length; the first are slow."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _trained(job: str, step_s: float, table: Path | None, *, steps: int = 20) -> StepWatch:
    clock = Clock()
    watch = StepWatch(job, "1xH100", options=OPTIONS, table=table, clock=clock)
    watch.begin()
    for number in range(steps):
        clock.now_s += step_s if number > WARM_UP_STEPS else 50 * step_s
        watch.step_done()
    return watch


def test_warm_up_and_pauses_are_no_steps(tmp_path: Path) -> None:
    clock = Clock()
    watch = StepWatch(write_gpt(tmp_path), "1xH100", options=OPTIONS, clock=clock)
    assert watch.begin().setting.name == "1xH100"
    assert watch.numbers() == {}
    assert "none was timed" in watch.line()
    for number in range(WARM_UP_STEPS + 1):
        clock.now_s += 9.0
        watch.step_done()
        assert watch.num_steps == 0, number
    clock.now_s += 0.5
    watch.step_done()
    watch.pause()  # an evaluation of a minute
    clock.now_s += 60.0
    watch.step_done()
    clock.now_s += 0.7
    watch.step_done()
    assert (watch.num_steps, watch.step_s) == (2, pytest.approx(0.6))


def test_both_numbers_are_logged_and_printed(tmp_path: Path) -> None:
    watch = _trained(write_gpt(tmp_path), 0.25, None)
    watch.memory_bytes = 2**30
    assert watch.answer is not None
    predicted_s = watch.answer.iteration_time_s.value
    numbers = watch.numbers()
    assert numbers["driple/step_s_measured"] == pytest.approx(0.25)
    assert numbers["driple/step_s_predicted"] == predicted_s
    assert numbers["driple/step_measured_over_predicted"] == pytest.approx(0.25 / predicted_s)
    assert numbers["driple/memory_gib_measured"] == 1.0
    assert 0 < numbers["driple/memory_gib_predicted"] < 1
    assert "step 250 ms measured (14 steps), " in watch.line()
    assert "memory 1 GiB allocated, " in watch.line()
    assert watch.append() is False, "there is no table"


def test_rows_are_read_back_as_they_were_trained(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    job = write_gpt(tmp_path)
    for step_s in (0.25, 0.5):
        assert _trained(job, step_s, table).append()
    assert set(TABLE_COLUMNS) <= set(COLUMNS)
    remarks: list[object] = []
    first, second = read_runs(table, remarks.append)
    assert remarks == [], "no column is ignored"
    assert (first.step_s, second.step_s) == pytest.approx((0.25, 0.5))
    assert (first.job, first.setting, first.batch_size, first.seq_len) == (job, "1xH100", 4, 64)
    assert (first.precision, first.optimizer) == ("amp-bf16", "adamw")
    assert not first.compiled
    assert table.read_text().count("seconds") == 1


def test_transfer_takes_the_table(tmp_path: Path) -> None:
    """Five networks, each 1.3 times its predicted step."""
    table = tmp_path / "runs.csv"
    for number, width in enumerate((64, 128, 256, 512, 768)):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = write_gpt(folder, width=width, layers=2 + number)
        predicted = StepWatch(job, "1xH100", options=OPTIONS).begin().iteration_time_s.value
        assert _trained(job, 1.3 * predicted, table).append()
    result = tune_device(table, parse_setting("1xH100"))
    assert len(result.runs) == 5
    assert all(run.step_s > 0 for run in result.runs)


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("job,setting,seconds\n")
    with pytest.raises(ConfigError, match="give another file"):
        StepWatch("resnet50", "1xH100", table=table)
    table.write_text("")
    StepWatch("resnet50", "1xH100", table=table)


def test_what_the_user_gave_counts() -> None:
    read = with_options(JobOptions(batch_size=4), batch_size=8, precision="amp-bf16", seq_len=None)
    assert (read.batch_size, read.precision, read.seq_len) == (4, "amp-bf16", None)
