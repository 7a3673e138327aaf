"""Labels of traces with known answers."""

import numpy as np
import pytest

from driple.errors import TraceError
from driple.trace import Label, Trace, label_trace, targets_of
from driple.trace.targets import RESOURCES


def trace_of(amount: object, *, period_s: float = 0.1, unit: str = "%") -> Trace:
    """A trace of device utilisation."""
    values = np.asarray(amount, dtype=np.float64)
    return Trace(resource="device_util", unit=unit, amount=values, period_s=period_s)


def test_square_wave_gives_its_own_periods() -> None:
    """Three high and two low samples at 10 Hz are a 0.3 s burst and a 0.2 s gap."""
    label = label_trace(trace_of([5, 5, 90, 90, 90] * 4), 0.5)
    assert (label.burst_duration_s, label.idle_duration_s) == pytest.approx((0.3, 0.2))
    assert (label.burst_amount, label.idle_amount) == pytest.approx((90.0, 5.0))
    assert (label.num_bursts, label.pattern) == (3, "BIB")


def test_durations_are_means_over_unlike_bursts() -> None:
    """Bursts of one and three samples last two on average."""
    label = label_trace(trace_of([0, 9, 0, 0, 9, 9, 9, 0, 0, 9, 0, 9, 9, 9, 0], period_s=1.0), 4.0)
    assert label.burst_duration_s == pytest.approx(2.0)
    assert label.idle_duration_s == pytest.approx(5 / 3)


def label_of_link(heights: list[float], resource: str = "net_rx") -> Label:
    """A burst of two samples of each height, three idle samples after each."""
    amount = np.array([[height, height, 0, 0, 0] for height in heights] * 6, dtype=np.float64)
    unit = "MB/s" if resource.startswith("net") else "%"
    return label_trace(
        Trace(resource=resource, unit=unit, amount=amount.ravel(), period_s=0.1), 0.5
    )


def test_low_bursts_of_a_shared_link_count() -> None:
    """Two of three iterations move their bytes while others use the link."""
    label = label_of_link([120, 30, 20])
    assert (label.burst_duration_s, label.idle_duration_s) == pytest.approx((0.2, 0.3))
    assert label.burst_amount == pytest.approx(np.mean([120, 30, 20]), rel=0.05)


def test_small_talk_is_no_burst() -> None:
    """What moves less than a hundredth of a burst is none, though every third iteration has one."""
    label = label_of_link([120, 0.5, 0.5])
    assert label.burst_amount == pytest.approx(120)
    assert label.burst_duration_s + label.idle_duration_s == pytest.approx(1.5)


def test_devices_have_the_bursts_that_they_have() -> None:
    """A device that works in one of three iterations does not work in all."""
    label = label_of_link([100, 30, 20], "device_util")
    assert label.burst_duration_s + label.idle_duration_s == pytest.approx(1.5)


def test_slower_clock_stretches_durations_only() -> None:
    """Time scale: ten times the period is ten times the durations, amounts stay."""
    wave = [1, 1, 8, 8, 8, 1, 8, 8, 1, 1, 8]
    fast, slow = label_trace(trace_of(wave), 0.4), label_trace(trace_of(wave, period_s=1.0), 4.0)
    assert slow.burst_duration_s == pytest.approx(10 * fast.burst_duration_s)
    assert slow.idle_duration_s == pytest.approx(10 * fast.idle_duration_s)
    assert slow.burst_amount == fast.burst_amount


def test_flat_traces_are_all_burst_or_all_idle() -> None:
    """The patterns B and I of the paper's Table 3; however long they were recorded."""
    for samples in (5, 500):
        busy = label_trace(trace_of([30.0] * samples), 0.02)
        idle = label_trace(trace_of([0.4] * samples), 0.02)
        assert (busy.pattern, busy.burst_amount, busy.idle_duration_s) == ("B", 30.0, 0.0)
        assert (idle.pattern, idle.burst_amount, idle.burst_duration_s) == ("I", 0.0, 0.0)
        assert busy.burst_duration_s == idle.idle_duration_s == pytest.approx(0.02)


def test_ripple_on_a_busy_trace_is_no_gap() -> None:
    """Two levels that differ by less than a hundredth are one; NVML's 99 and 100 are two."""
    assert label_trace(trace_of([99.2, 99.6, 100.0] * 5), 1.0).pattern == "B"
    assert label_trace(trace_of([99.0, 100.0] * 5), 1.0).pattern == "BIB"


def test_one_sample_is_refused() -> None:
    """A label needs two samples."""
    with pytest.raises(TraceError, match="1 sample"):
        label_trace(trace_of([1.0]), 1.0)


def test_targets_come_in_order_and_need_all_resources() -> None:
    """Row i of the targets is resource i."""
    labels = {
        resource: label_trace(trace_of([0, 0, 10 * (i + 1), 10 * (i + 1)] * 4), 0.4)
        for i, resource in enumerate(RESOURCES)
    }
    assert targets_of(labels).values[:, 0].tolist() == [10, 20, 30, 40]
    del labels["net_rx"]
    with pytest.raises(TraceError, match="net_rx"):
        targets_of(labels)


@pytest.mark.parametrize("iteration_time_s", [0.0, -1.0, float("nan"), float("inf")])
def test_an_iteration_without_a_time_is_refused(iteration_time_s: float) -> None:
    """No logarithm of 0, no burst of no length."""
    with pytest.raises(TraceError, match="a label needs its time, above 0 and finite"):
        label_trace(trace_of([0, 0, 9, 9] * 4), iteration_time_s)


def test_traces_in_unknown_units_or_without_a_period_are_refused() -> None:
    with pytest.raises(TraceError, match="is in 'GB/s'; it must be in % or MB/s"):
        trace_of([1.0, 2.0], unit="GB/s")
    for period_s in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="must be above 0 and finite"):
            trace_of([1.0, 2.0], period_s=period_s)


@pytest.mark.parametrize("unit", ["%", "MB/s"])
def test_a_flat_trace_is_busy_from_one_unit_on(unit: str) -> None:
    """A whole percent is the least that NVML shows; a MB/s is more than heartbeats pass."""
    for level, pattern in ((0.99, "I"), (1.0, "B"), (1.5, "B")):
        label = label_trace(trace_of([level] * 4, unit=unit), 0.4)
        assert label.pattern == pattern
        figures = (label.burst_amount, label.idle_amount, label.num_bursts)
        assert figures == ((level, 0.0, 1) if pattern == "B" else (0.0, pytest.approx(level), 0))


def test_two_samples_are_enough() -> None:
    label = label_trace(trace_of([0.0, 90.0]), 0.2)
    assert (label.burst_amount, label.burst_duration_s, label.idle_duration_s) == (90.0, 0.1, 0.1)


@pytest.mark.parametrize("period_s", [0.1, 10.0])
def test_a_ripple_between_bursts_of_each_iteration_is_no_burst(period_s: float) -> None:
    """With a burst in each iteration nothing is split again, however slow the clock."""
    amount = np.array([100.0, 100, 0, 0, 20, 0] * 8)
    trace = Trace(resource="net_tx", unit="MB/s", amount=amount, period_s=period_s)
    label = label_trace(trace, 6 * period_s)
    assert label.burst_amount == pytest.approx(100.0)
    assert label.burst_duration_s == pytest.approx(2 * period_s)
    assert label.idle_duration_s == pytest.approx(4 * period_s)


def network_label(cycle: list[float], iteration: float) -> Label:
    """Six times these samples of a second each, with so many in an iteration."""
    amount = np.array(cycle * 6, dtype=np.float64)
    trace = Trace(resource="net_rx", unit="MB/s", amount=amount, period_s=1.0)
    return label_trace(trace, iteration)


def test_low_bursts_are_sought_where_a_cycle_takes_more_than_2_2_iterations() -> None:
    """11 samples are 2.2 iterations of 5, and more than 2.2 of 4.9."""
    cycle = [100, 100, 0, 0, 0, 20, 20, 0, 0, 0, 0]
    assert network_label(cycle, 5.0).burst_amount == pytest.approx(100)
    split = network_label(cycle, 4.9)
    assert split.burst_amount == pytest.approx(60, rel=0.05)
    assert split.idle_amount == 0.0


def test_a_burst_of_a_hundredth_of_the_highest_is_one() -> None:
    label = label_of_link([100, 1.0, 1.0])
    assert (label.burst_duration_s, label.idle_duration_s) == pytest.approx((0.2, 0.3))


def test_the_split_is_taken_that_comes_nearest_to_a_burst_in_each_iteration() -> None:
    """Bursts of three heights and a ripple between: neither the highest alone, nor the ripple."""
    cycle = [sample for high in (120, 35, 30) for sample in (high, high, 0, 0, 0, 5, 5, 0, 0, 0)]
    label = network_label([float(sample) for sample in cycle], 10.0)
    assert label.burst_duration_s == pytest.approx(2.0)
    assert label.idle_duration_s == pytest.approx(8.0)
