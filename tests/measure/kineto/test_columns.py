"""Columns keep the events that count; odd values of others neither stop nor enter them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driple.errors import TraceError
from driple.measure.kineto import columns as module
from driple.measure.kineto.columns import EventKind, read_trace
from tests.measure.kineto.traces import event, gpu_step, write


def test_columns_hold_what_counts(tmp_path: Path) -> None:
    events = [
        *gpu_step(),
        event("python_function", "train.py(3): main", 0, 100),
        {"ph": "M", "name": "process_name", "args": {}},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "ts": 3},
    ]
    trace = read_trace(write(tmp_path / "t.json", events, "NVIDIA H100"))
    assert len(trace.kind) == 15
    assert trace.num_events == 18
    assert trace.devices == {0: "NVIDIA H100"}
    kernels = trace.kind == EventKind.KERNEL
    assert trace.length_us[kernels].tolist() == [10, 20, 5]
    assert trace.key[kernels].tolist() == [1, 2, 3]
    assert "Conv2d_0" in trace.names


def test_annotations_with_a_modules_path_are_modules(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [event("user_annotation", "layer1.0", 0, 5)])
    assert read_trace(path).kind.tolist() == [EventKind.ANNOTATION]
    assert read_trace(path, frozenset({"layer1.0"})).kind.tolist() == [EventKind.MODULE]


@pytest.mark.parametrize(
    "change",
    [
        {"ts": "12"}, {"ts": None}, {"dur": -1}, {"dur": float("nan")}, {"ts": float("inf")},
        {"name": 3}, {"cat": None}, {"ph": "B"}, {"dur": True}, {"ts": 10**400},
    ],
)  # fmt: skip
def test_odd_events_are_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    odd = {**event("cpu_op", "aten::odd", 0, 1), **change}
    trace = read_trace(write(tmp_path / "t.json", [odd, event("cpu_op", "aten::mm", 0, 1)]))
    assert trace.names == ("aten::mm",)


def test_odd_keys_and_names_are_no_error(tmp_path: Path) -> None:
    odd = event("kernel", "\ud800" + "k" * 1000, 0, 1, correlation=2**80, device="x")
    trace = read_trace(write(tmp_path / "t.json", [odd, {**odd, "args": None}]))
    assert trace.key.tolist() == [-1, -1]
    assert len(trace.names[0]) == 200
    trace.names[0].encode()


def test_traces_without_ops_and_with_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TraceError, match="none of its 1 events"):
        read_trace(write(tmp_path / "t.json", [{"ph": "M", "name": "x"}]))
    monkeypatch.setattr(module, "_MOST_EVENTS", 10)
    with pytest.raises(TraceError, match="over 10 events"):
        read_trace(write(tmp_path / "t.json", gpu_step()))
