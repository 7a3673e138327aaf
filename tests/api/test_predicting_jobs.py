"""`predict_jobs`: rows in the order of lines, the same whoever answers and wherever it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from driple.api import predicting_jobs as module
from driple.api.predicting_jobs import predict_jobs
from driple.api.predicting_lines import COLUMNS, MOST_LINE_BYTES
from driple.engine.local import LocalEngine
from driple.errors import ConfigError
from tests.cli.test_main import ROOT

SMALL = str(ROOT / "datasets/examples/resnet20.pbtxt")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    lines = [
        json.dumps({"job": SMALL, "setting": f"{count}x{device}"})
        for device in ("A100", "V100", "None")
        for count in (1, 2, 4)
    ]
    file = tmp_path / "jobs.jsonl"
    file.write_text("\n".join([*lines, "{", "", "x" * (MOST_LINE_BYTES + 9), lines[0]]))
    return file


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINES", 2)


def test_rows_are_those_of_the_lines_with_any_workers_and_as_parquet(
    jobs: Path, tmp_path: Path
) -> None:
    seen = []
    single = predict_jobs(
        jobs,
        tmp_path / "one.jsonl",
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert (single.lines, single.answers, single.errors, single.resumed_at) == (13, 12, 5, 0)
    assert seen[0] == (0, 13)
    assert seen[-1] == (13, 13)
    two = predict_jobs(jobs, tmp_path / "two.parquet", workers=2)
    assert two.to_dict() | {"output": ""} == single.to_dict() | {"output": ""}
    rows = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [*range(1, 11), 12, 13]
    assert [row["status"] for row in rows][-3:] == [400, 413, 200]
    table = pyarrow.parquet.read_table(tmp_path / "two.parquet")
    assert table.column_names == list(COLUMNS)
    assert table.to_pylist() == rows
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"jobs.jsonl", "one.jsonl", "two.parquet"}


class _StopError(Exception):
    pass


def interrupted(
    jobs: Path, output: Path, monkeypatch: pytest.MonkeyPatch, after: int, stored: float
) -> None:
    """A run that ends after some blocks, as if it were killed."""
    stream = LocalEngine.stream

    def ends(self: LocalEngine, task: Any, shared: Any, items: Iterable[Any]) -> Iterator[Any]:
        for number, result in enumerate(stream(self, task, shared, items)):
            if number == after:
                raise _StopError
            yield result

    with monkeypatch.context() as patched:
        patched.setattr(LocalEngine, "stream", ends)
        patched.setattr(module, "_STORED_S", stored)
        with pytest.raises(_StopError):
            predict_jobs(jobs, output, workers=1)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("stored", [-1.0, 1e9])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, stored: float
) -> None:
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    predict_jobs(jobs, whole, workers=1)
    interrupted(jobs, output, monkeypatch, after=3, stored=stored)
    part = tmp_path / f"out{suffix}.part"
    with part.open("ab") as file:
        file.write(b'{"line": 7, "jo' * 5000)  # rows of which the state knows nothing yet
    result = predict_jobs(jobs, output, workers=1)
    assert result.resumed_at == (6 if stored < 0 else 0)
    assert output.read_bytes() == whole.read_bytes()
    assert (result.answers, result.errors) == (12, 5)
    assert not part.exists()
    assert not part.with_name(f"{part.name}.json").exists()


def test_an_interrupted_run_of_other_lines_is_refused(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    interrupted(jobs, output, monkeypatch, after=3, stored=-1.0)
    jobs.write_text(jobs.read_text().replace("2xA100", "8xA100"))
    with pytest.raises(ConfigError, match=r"is of an interrupted run of other lines .* delete"):
        predict_jobs(jobs, output, workers=1)
    (tmp_path / "out.jsonl.part").unlink()
    assert predict_jobs(jobs, output, workers=1).resumed_at == 0


def test_a_damaged_state_is_refused(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    interrupted(jobs, output, monkeypatch, after=3, stored=-1.0)
    (tmp_path / "out.jsonl.part.json").write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        predict_jobs(jobs, output, workers=1)


def test_what_cannot_be_read_or_written_is_refused(jobs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs a name that ends with \.jsonl or \.parquet"):
        predict_jobs(jobs, tmp_path / "out.csv")
    with pytest.raises(ConfigError, match=r"cannot read .*none\.jsonl"):
        predict_jobs(tmp_path / "none.jsonl", tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="cannot read"):
        predict_jobs(tmp_path, tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="cannot write"):
        predict_jobs(jobs, tmp_path / "none" / "out.jsonl")


def test_two_runs_of_one_output_are_refused(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(done: int, total: int) -> None:
        if done == 0:
            with pytest.raises(ConfigError, match="another run"):
                predict_jobs(jobs, tmp_path / "out.jsonl", workers=1)

    assert predict_jobs(jobs, tmp_path / "out.jsonl", workers=1, progress=second).answers == 12
