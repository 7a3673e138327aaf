"""The submit filter in a real Lua interpreter: empty fields are filled, others stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lupa
import pytest

from driple.render.emit.slurm import SUBMIT_FILTER, answer_line
from tests.render.emit.trainings import training

NO_VAL, NO_VAL16, NO_VAL64 = 0xFFFFFFFE, 0xFFFE, 0xFFFFFFFFFFFFFFFE
# A job as sbatch sends it with --job-name alone; numbers that nobody gave are NO_VAL.
UNSET = {"name": "driple-gpt2", "time_limit": NO_VAL, "time_min": 0, "min_nodes": NO_VAL,
         "max_nodes": NO_VAL}  # fmt: skip


@pytest.fixture
def submitted(tmp_path: Path) -> Any:
    """A function from fields of a job to those that the filter leaves."""
    answers = tmp_path / "answers.tsv"
    answers.write_text(answer_line(training(training_s=60.0)) + answer_line(training()))
    lua = lupa.LuaRuntime()
    lua.globals().DRIPLE_ANSWERS = str(answers)
    lua.globals().slurm = lua.table_from(
        {"SUCCESS": 0, "NO_VAL": NO_VAL, "NO_VAL16": NO_VAL16, "NO_VAL64": float(NO_VAL64)}
    )
    lua.execute(SUBMIT_FILTER.read_text())

    def submit(file: Path | None = None, **fields: object) -> dict[str, object]:
        lua.globals().DRIPLE_ANSWERS = str(file or answers)
        job = lua.table_from({**UNSET, **fields})
        assert lua.globals().slurm_job_submit(job, lua.table(), 1000) == 0
        return dict(job.items())

    return submit


def test_empty_fields_are_filled_by_the_last_answer(submitted: Any) -> None:
    job = submitted()
    assert job["time_limit"] == 200
    assert job["time_min"] == 90
    assert job["min_nodes"] == job["max_nodes"] == 2
    assert job["tres_per_node"] == "gres/gpu:8"
    assert job["min_mem_per_node"] == 1_036_800


@pytest.mark.parametrize(
    "field",
    [
        {"time_limit": 30},
        {"min_mem_per_cpu": 4000},
        {"min_mem_per_node": 64_000},
        {"mem_per_tres": "gres/gpu:64000"},
        {"tres_per_node": "gres/gpu:h100:8"},
        {"tres_per_node": "gres:gpu:8"},
        {"min_nodes": 2},
    ],
)
def test_what_a_user_asked_for_stays(submitted: Any, field: dict[str, object]) -> None:
    job = submitted(**field)
    ((name, value),) = field.items()
    assert job[name] == value
    if name == "time_limit":
        assert job["time_min"] == 0, "a limit of the user's own gets no lowest limit of ours"
        assert job["tres_per_node"] == "gres/gpu:8"
    else:
        assert job["time_limit"] == 200
    if "mem" in name:
        other = {"min_mem_per_cpu": "min_mem_per_node", "min_mem_per_node": "min_mem_per_cpu"}
        assert job.get(other.get(name, "min_mem_per_node")) is None


@pytest.mark.parametrize(
    "field",
    [
        {"name": "another"},
        {"name": None},
        {"min_nodes": 4},
        {"tres_per_node": "gres/gpu:4"},
        {"tres_per_node": "gres/gpu"},
        {"tres_per_job": "gres/gpu:16"},
        {"tres_per_task": "gres/gpu:1"},
    ],
)
def test_other_jobs_and_other_machines_are_left_alone(
    submitted: Any, field: dict[str, object]
) -> None:
    """A time on two machines of eight says nothing of other machines."""
    wanted = {key: value for key, value in {**UNSET, **field}.items() if value is not None}
    assert submitted(**field) == wanted


def test_a_file_that_is_not_there_or_is_damaged_changes_nothing(
    submitted: Any, tmp_path: Path
) -> None:
    assert submitted(file=tmp_path / "none.tsv") == UNSET
    damaged = tmp_path / "damaged.tsv"
    damaged.write_text("driple-gpt2\t2\n\n\t\t\t\n# driple-gpt2\t2\t8\t200\t90\t1\n")
    assert submitted(file=damaged) == UNSET
    odd = tmp_path / "odd.tsv"
    odd.write_text("driple-gpt2\tx\tx\tx\tx\tx\n")
    assert submitted(file=odd) == UNSET
