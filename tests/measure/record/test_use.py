"""Labels of a record: hand-computed squares, means over hosts, and what is missing is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driple.errors import TraceError
from driple.measure.record.hosts import runs_of
from driple.measure.record.steps import steps_of
from driple.measure.record.store import HostRecord, read_record
from driple.measure.record.use import run_use
from driple.render.remarks import sentence
from tests.measure.record.records import WALL_AHEAD_NS, square, write_record

NUM = 3000  # rows of 10 ms
STEP = 50  # rows: half a second


def _host(folder: Path, scale: float = 1.0, **options: object) -> HostRecord:
    """Two busy cores of two for 0.3 s and none for 0.2 s; traffic in the 0.2 s."""
    marks = np.arange(0, NUM / 100, STEP / 100).tolist()
    rates = {
        "cpu_ns": square(NUM, STEP, 2e9 * scale, width=30),
        "net_tx": [100e6 * scale - rate for rate in square(NUM, STEP, 100e6 * scale, width=30)],
        "net_rx": [50e6 * scale - rate for rate in square(NUM, STEP, 50e6 * scale, width=30)],
        "loopback_bytes": [0.0] * NUM,
        "allocated_bytes": square(NUM, STEP, 5e9, width=30),
    }
    options = {"marks_s": [marks], **options}
    return read_record(write_record(folder, rates, **options))  # type: ignore[arg-type]


def test_the_twelve_numbers_of_a_square_are_its_own(tmp_path: Path) -> None:
    """100 % of two cores; half of a core's write bandwidth; 100 and 50 MB/s in the gaps."""
    use = run_use([_host(tmp_path / "r")])
    assert use.steps.step_s == pytest.approx(0.5)
    assert use.steps.source == "marked"
    expected = [[100, 0.3, 0.2], [50, 0.3, 0.2], [100, 0.2, 0.3], [50, 0.2, 0.3]]
    np.testing.assert_allclose(use.targets().values, expected, rtol=0.02)
    assert use.means["device_util"] == pytest.approx(60, rel=0.02)


def test_a_record_without_marks_has_the_same_numbers_by_its_period(tmp_path: Path) -> None:
    """The window of a period cuts bursts elsewhere: 6 % in amounts on a grid of 50 ms."""
    marked, unmarked = _host(tmp_path / "a"), _host(tmp_path / "b", marks_s=[])
    use = run_use([unmarked])
    assert use.steps.source == "period"
    np.testing.assert_allclose(
        use.targets().values, run_use([marked]).targets().values, rtol=0.06, atol=0.01
    )


def test_a_record_without_steps_is_refused(tmp_path: Path) -> None:
    """No marks, and counters that grow evenly."""
    rates = {"cpu_ns": [1e9] * 1000, "net_tx": [1e6] * 1000}
    record = read_record(write_record(tmp_path / "r", rates))
    with pytest.raises(TraceError, match=r"no marked steps.*call driple\.mark_step\(\)"):
        steps_of(record)


@pytest.mark.parametrize(
    ("num", "words"), [(200, "too few for a period, which needs 300"), (1000, "--set period_ms")]
)
def test_a_record_without_a_period_is_told_what_would_give_one(
    tmp_path: Path, num: int, words: str
) -> None:
    """A record that is too short was taken for one that does not repeat."""
    rates = {"cpu_ns": [1e9] * num, "net_tx": [1e6] * num}
    with pytest.raises(TraceError, match=words):
        steps_of(read_record(write_record(tmp_path / "r", rates)))


def test_marks_that_are_too_few_are_not_called_none(tmp_path: Path) -> None:
    rates = {"cpu_ns": [1e9] * 1000, "net_tx": [1e6] * 1000}
    record = read_record(write_record(tmp_path / "r", rates, marks_s=[[1.0, 2.0]]))
    with pytest.raises(TraceError, match="only 2 marks, needed are 4"):
        steps_of(record)


def test_warm_up_and_pauses_are_no_steps(tmp_path: Path) -> None:
    """A slow first step and a checkpoint do not move the mean."""
    marks = [0.0, 2.0, *np.arange(2.5, 15, 0.5), *np.arange(25.0, 29, 0.5)]
    steps = steps_of(_host(tmp_path / "r", marks_s=[marks]))
    assert steps.step_s == pytest.approx(0.5)
    assert steps.num_pauses == 1


def test_labels_of_hosts_are_means_over_them(tmp_path: Path) -> None:
    """Two machines with clocks of their own; the second sends half as much."""
    first = _host(tmp_path / "a")
    other = _host(tmp_path / "b", 0.5, boot_id="b", rank=1)
    assert runs_of([other, first]) == [[first, other]] or runs_of([other, first]) == [
        [other, first]
    ]
    use = run_use([first, other])
    assert use.labels["net_tx"].burst_amount == pytest.approx(75, rel=0.02)
    assert use.labels["device_util"].burst_amount == pytest.approx(75, rel=0.02)
    assert use.remarks == ()


def test_a_clock_that_is_off_is_corrected_by_the_marks(tmp_path: Path) -> None:
    """1.7 s between the wall clocks: the window of the second host moves by as much."""
    first = _host(tmp_path / "a")
    other = _host(
        tmp_path / "b", boot_id="b", rank=1, wall_ahead_ns=[WALL_AHEAD_NS + 1_700_000_000]
    )
    use = run_use([first, other])
    assert "is +1.7 s from that of" in sentence(use.remarks[0])
    np.testing.assert_allclose(
        use.targets().values, run_use([first]).targets().values, rtol=1e-6, atol=1e-9
    )


def test_hosts_whose_clocks_are_hours_apart_are_not_taken_for_repeats(tmp_path: Path) -> None:
    """Different ranks that do not overlap in time are refused."""
    hour = WALL_AHEAD_NS + 3_600_000_000_000
    first, other = (
        _host(tmp_path / name, boot_id=name, rank=rank, wall_ahead_ns=[ahead])
        for name, rank, ahead in (("a", 0, WALL_AHEAD_NS), ("b", 1, hour))
    )
    with pytest.raises(TraceError, match="set the clocks"):
        runs_of([first, other])
    again = _host(tmp_path / "c", wall_ahead_ns=[hour])
    assert len(runs_of([first, again])) == 2
    with pytest.raises(TraceError, match="is given twice"):
        runs_of([first, first])


def test_a_resource_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    """Three resources have numbers; the twelve are refused, with what to do."""
    rates = {"cpu_ns": square(NUM, STEP, 1e9), "net_tx": [1e6] * NUM, "net_rx": [1e6] * NUM}
    marks = np.arange(0, 30, 0.5).tolist()
    use = run_use([read_record(write_record(tmp_path / "r", rates, marks_s=[marks]))])
    assert set(use.labels) == {"device_util", "net_tx", "net_rx"}
    with pytest.raises(TraceError, match=r"device_mem_util: .* C compiler"):
        use.targets()


def test_the_gpus_of_the_job_count_and_idle_ones_do_not(tmp_path: Path) -> None:
    """NVML's samples of the GPU with the job's processes; memory is the most of them."""
    util = [(0.1 * i, 90 if i % 10 < 6 else 0) for i in range(290)]
    gauges = {
        "gpu0.device_util": util,
        "gpu0.device_mem_util": [(at, value // 2) for at, value in util],
        "gpu0.memory_bytes": [(1.0, 5 * 2**30)],
        "gpu0.own": [(1.0, 1)],
        "gpu1.device_util": [(0.1 * i, 100) for i in range(290)],
        "gpu1.device_mem_util": [(0.1 * i, 100) for i in range(290)],
        "gpu1.memory_bytes": [(1.0, 70 * 2**30)],
        "gpu1.own": [(1.0, 0)],
    }
    use = run_use([_host(tmp_path / "r", gauges=gauges, gpus=["A", "B"])])
    label = use.labels["device_util"]
    assert (label.burst_amount, use.labels["device_mem_util"].burst_amount) == (90, 45)
    assert (label.burst_duration_s, label.idle_duration_s) == pytest.approx((0.6, 0.4), rel=0.1)
    assert use.device_bytes == 5 * 2**30
    assert use.gpus == ("A",)
    assert use.num_devices == 1
