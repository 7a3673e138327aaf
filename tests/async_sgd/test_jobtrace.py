"""Traces survive their file, and what makes no sense is refused in one line."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.async_sgd import jobtrace
from driple.async_sgd.jobtrace import JobTrace, read_job_trace, write_job_trace
from driple.async_sgd.origin import TraceOrigin
from driple.errors import TraceError
from tests.async_sgd.jobs import job_of, trace_of


def a_trace(steps: int = 2) -> JobTrace:
    job = job_of([(2, [4e6] * steps, []), (0, [0.3] * steps, [0]), (3, [1e6] * steps, [1])])
    return trace_of(job, [{0: (0.0, 0.04), 1: (0.04, 0.34), 2: (0.34, 0.35)}] * steps)


def test_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    trace = replace(a_trace(3), about=TraceOrigin(workload="resnet50", others={"ps": [1]}))
    write_job_trace(trace, tmp_path / "job.npz")
    read = read_job_trace(tmp_path / "job.npz")
    for name in JobTrace.__dataclass_fields__:
        value, other = getattr(read, name), getattr(trace, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype
            assert value == pytest.approx(other, abs=1e-6)
        else:
            assert value == other


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edges": np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)}, "3 ops wait .* circle"),
        ({"edges": np.array([[0, 7]], dtype=np.int32)}, "edges"),
        ({"bytes_per_s": 0.0}, "bandwidth"),
        ({"batch_size": 0}, "batch size"),
        ({"end_s": np.full((2, 3), np.nan)}, "op0 of step 0"),
        ({"end_s": np.zeros((2, 3))}, "op1 of step 0"),
        ({"start_s": np.full((2, 3), -1.0)}, "op0 of step 0"),
        ({"step_s": np.zeros(2)}, "no time"),
        ({"step_s": np.ones(1)}, "shape"),
        ({"resources": np.full(3, 9, dtype=np.int8)}, "unknown resource"),
        ({"sizes": np.full(3, -1)}, "bytes"),
    ],
)
def test_traces_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        replace(a_trace(), **fields)


def test_one_step_is_too_few() -> None:
    with pytest.raises(TraceError, match="1 step"):
        a_trace(1)


def test_damaged_other_and_swollen_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "job.npz"
    with pytest.raises(TraceError, match="no job trace"):
        read_job_trace(file)
    file.write_bytes(b"PK no zip")
    with pytest.raises(TraceError, match="driple trace run"):
        read_job_trace(file)
    write_job_trace(a_trace(), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="no job trace"):
        read_job_trace(file)
    monkeypatch.setattr(jobtrace, "FORMAT", 99)
    write_job_trace(a_trace(), file)
    monkeypatch.undo()
    with pytest.raises(TraceError, match="format 99"):
        read_job_trace(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("names.npy", bytes(600 * 2**20))
    with pytest.raises(TraceError, match="600 MiB"):
        read_job_trace(file)


def test_objects_in_a_file_are_not_run(tmp_path: Path) -> None:
    file = tmp_path / "job.npz"
    np.savez(file, about=np.array([{"a": 1}], dtype=object))
    with pytest.raises(TraceError, match="no job trace"):
        read_job_trace(file)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_us", np.full((2, 1), 350_000)),
        ("resources", np.array([300, 0, 3])),
        ("servers", np.array([0, 40_000, 0])),
        ("sizes", np.array([2**62, 0, 0])),
        ("sizes", np.array([0.5, 0.0, 0.0])),
        ("edges", np.array([[0, 2**40]])),
        ("start_us", np.full((2, 3), "x")),
        ("names", np.frombuffer(b"\n" * 300_000, dtype=np.uint8)),
        ("about", np.frombuffer(b"[]", dtype=np.uint8)),
    ],
)
def test_arrays_that_cannot_be_are_refused(
    tmp_path: Path, name: str, value: np.ndarray[Any, Any]
) -> None:
    """Numbers that their type cannot hold are not wrapped round; nothing of any length is made."""
    file = tmp_path / "job.npz"
    write_job_trace(a_trace(), file)
    with np.load(file) as stored:
        arrays = {key: stored[key] for key in stored}
    np.savez(file, **(arrays | {name: value}))
    with pytest.raises(TraceError, match=r"job\.npz"):
        read_job_trace(file)


@pytest.mark.parametrize(
    "change",
    [
        {"bytes_per_s": 10**400},
        {"batch_size": 1.5},
        {"batch_size": 2**40},
        {"about": {"overhead": []}},
        {"about": {"overhead": 3}},
        {"about": {"overhead": {"s": "x"}}},
        {"about": {"left_out_steps": -1}},
        {"about": 3},
    ],
)
def test_facts_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """The line names the file."""
    file = tmp_path / "job.npz"
    write_job_trace(a_trace(), file)
    with np.load(file) as stored:
        arrays = {key: stored[key] for key in stored}
    about = json.loads(arrays["about"].tobytes()) | change
    np.savez(file, **(arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}))
    with pytest.raises(TraceError, match=r"job\.npz"):
        read_job_trace(file)
