"""A record beside an answer: rows by resource, and what differs in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import driple
from driple.api.measured_beside import MeasuredRecord
from driple.errors import TraceError
from driple.render.remarks import sentences
from tests.measure.record.records import WALL_AHEAD_NS, square, write_record

GRAPH = Path(__file__).parents[2] / "datasets/examples/resnet50.pbtxt"
NUM = 3000


def _gpu_record(
    folder: Path, step_s: float, busy_pct: int, tx: float, gpu: str, **options: object
) -> Path:
    """A GPU that is evenly busy, and a network that is evenly used."""
    rates = {
        "cpu_ns": [1e9] * NUM,
        "net_tx": square(NUM, 10, 2e6 * tx),
        "net_rx": square(NUM, 10, 2e6 * tx),
    }
    readings = [(0.1 * i, busy_pct) for i in range(1, 290)]
    gauges = {
        "gpu0.device_util": readings,
        "gpu0.device_mem_util": readings,
        "gpu0.memory_bytes": [(1.0, 90 * 2**30)],
        "gpu0.own": [(1.0, 1)],
    }
    marks = np.arange(0, 29, step_s).tolist()
    return write_record(folder, rates, marks_s=[marks], gauges=gauges, gpus=[gpu], **options)  # type: ignore[arg-type]


def _beside(folder: Path | list[Path], setting: str) -> MeasuredRecord:
    answer = driple.predict(GRAPH, setting, measured=folder).answers[0]
    assert answer.measured is not None
    return answer.measured


def test_each_resource_has_its_row_and_the_differences_are_in_words(tmp_path: Path) -> None:
    """A step of a second on a GPU that waits: it is said, with the interval."""
    record = _gpu_record(tmp_path / "r", 1.0, 10, 0.0, "NVIDIA A100-SXM4-40GB")
    beside = _beside(record, "1xA100")
    rows = {row.resource: row for row in beside.rows}
    assert list(rows) == ["step", "memory", "device_util", "device_mem_util", "net_tx", "net_rx"]
    assert rows["step"].measured == pytest.approx(1.0)
    assert rows["device_util"].measured == pytest.approx(10)
    assert rows["memory"].measured == 90 * 2**30
    words = " | ".join(sentences(beside.differences))
    assert "times as long as predicted, outside the interval" in words
    assert "the device is busy 10 % of the time" in words
    assert "it waits" in words
    assert "the device shows 90 GiB in use" in words


def test_a_busy_device_that_takes_longer_is_slower_itself(tmp_path: Path) -> None:
    """No word of waiting where the device is as busy as predicted."""
    record = _gpu_record(tmp_path / "r", 1.0, 100, 0.0, "NVIDIA A100-SXM4-40GB")
    words = " | ".join(sentences(_beside(record, "1xA100").differences))
    assert "its own work takes longer" in words
    assert "waits" not in words


def test_a_record_of_another_device_is_named_and_nothing_is_concluded(tmp_path: Path) -> None:
    """An H100 beside an A100, and CPUs beside a GPU."""
    record = _gpu_record(tmp_path / "r", 1.0, 100, 0.0, "NVIDIA H100 80GB HBM3")
    words = sentences(_beside(record, "1xA100").differences)
    assert words == (
        "the record is of NVIDIA H100 80GB HBM3, the answer of A100: give the --setting that was "
        "recorded",
    )
    words = sentences(_beside(record, "4xH100").differences)
    assert words[0].startswith("the record is of 1 device, the answer of 4")


def test_the_json_has_rows_and_the_twelve_numbers(tmp_path: Path) -> None:
    """The same numbers as in the table."""
    record = _gpu_record(tmp_path / "r", 0.5, 50, 10.0, "NVIDIA A100")
    value = driple.predict(GRAPH, "1xA100", measured=[record]).to_dict()
    measured = value["answers"][0]["measured"]  # type: ignore[index, call-overload]
    assert measured["num_steps"] == 57  # type: ignore[index, call-overload]
    assert measured["targets"]["device_util"]["burst_amount"]["value"] == 50  # type: ignore[index, call-overload]


def test_records_of_two_runs_are_refused(tmp_path: Path) -> None:
    """Repeats are for data label; --measured takes the hosts of one run."""
    record = _gpu_record(tmp_path / "a", 0.5, 50, 1.0, "A100")
    later = [WALL_AHEAD_NS + 10**12]
    other = _gpu_record(tmp_path / "b", 0.5, 50, 1.0, "A100", wall_ahead_ns=later)
    with pytest.raises(TraceError, match="has records of 2 runs"):
        _beside([record, other], "1xA100")
    with pytest.raises(TraceError, match="is no record"):
        _beside(tmp_path, "1xA100")
