"""Tables of jobs: the rows of `predict_jobs`, also batch by batch on Ray Data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from driple.api import answer_table, predict_jobs
from driple.api.answering_tables import row_schema
from driple.errors import ConfigError

JOBS: list[dict[str, Any]] = [
    {"job": "resnet50", "setting": ["1xA100", "8xH100"], "batch_size": 32},
    {"job": "no such job", "setting": ["1xA100"], "batch_size": None},
    {"job": "resnet50", "setting": ["4xV100"], "batch_size": None},
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same jobs as lines."""
    place = tmp_path_factory.mktemp("jobs") / "jobs.jsonl"
    lines = ({name: value for name, value in job.items() if value is not None} for job in JOBS)
    place.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return place


@pytest.fixture(scope="module")
def rows(file: Path) -> list[dict[str, Any]]:
    """The answers of `predict_jobs`."""
    out = file.with_name("rows.jsonl")
    predict_jobs(file, out, workers=1)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_rows_are_those_of_a_file_of_lines(rows: list[dict[str, Any]]) -> None:
    """A null is a field that is left out; a job without an answer has its reason."""
    table = answer_table(pyarrow.Table.from_pylist(JOBS))
    assert table.schema == row_schema()
    assert table.to_pylist() == rows
    assert [row["status"] for row in rows] == [200, 200, 422, 200]


def test_batches_on_ray_data_give_the_same_answers(rows: list[dict[str, Any]], file: Path) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        jobs = ray.data.from_items(JOBS)
        answers = jobs.map_batches(answer_table, batch_format="pyarrow", batch_size=2).take_all()
    finally:
        ray.shutdown()

    def without_line(some: list[dict[str, Any]]) -> list[str]:
        """`line` counts within a batch."""
        return sorted(json.dumps({**row, "line": 0}, sort_keys=True) for row in some)

    assert without_line(answers) == without_line(rows)


def test_another_kind_of_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"got dict; give batch_format='pyarrow'"):
        answer_table({"job": ["resnet50"]})
