"""Virtual NVML: what it shows of a device whose use is known."""

import numpy as np
import pytest

from driple.errors import SimulationError, TraceError
from driple.schemes.ps import Computing, WorkerRecord
from driple.simulate import counters
from driple.simulate.counters import lengthened, traces_of_worker

WINDOW_S = 1 / 6


def record(step_s: float, busy_s: float, steps: int) -> WorkerRecord:
    """A kernel runs at the begin of each step, and uses memory half of that time."""
    starts = [i * step_s for i in range(steps)]
    return WorkerRecord(
        computing=[Computing(at, at + busy_s, 1.0, 0.5) for at in starts],
        step_ends_s=[at + step_s for at in starts],
        tx=[(0.0, 0.0)],
        rx=[(0.0, 0.0)],
    )


def device_trace(worker: WorkerRecord, **more: float) -> np.ndarray:
    """Device utilisation from the end of the first step, in percent."""
    ends = worker.step_ends_s
    how = {"period_s": 0.002, "start_s": ends[0], "end_s": ends[-1], "window_s": WINDOW_S, **more}
    return traces_of_worker(worker, **how)["device_util"].amount  # type: ignore[arg-type]


def test_short_steps_show_their_mean_from_the_first_sample_on() -> None:
    """Steps of 20 ms, a kernel half of them: no window before the trace is taken for a gap."""
    shown = device_trace(record(0.02, 0.01, 100))
    assert shown == pytest.approx(np.full(len(shown), 50.0), abs=6)  # 8.3 steps in a window


def test_a_trace_within_a_window_shows_its_mean() -> None:
    shown = device_trace(record(0.02, 0.015, 6))
    assert shown == pytest.approx(np.full(len(shown), 75.0))


def test_long_steps_show_window_after_window() -> None:
    """Steps of two windows, the first of which is all kernel."""
    shown = device_trace(record(2 * WINDOW_S, WINDOW_S, 10), period_s=WINDOW_S / 4)
    assert np.round(shown[:12]).tolist() == [100.0] * 7 + [0.0] * 4 + [100.0]
    assert set(np.round(shown)) == {0.0, 100.0}


def test_without_a_window_each_sample_stands_for_itself() -> None:
    shown = device_trace(record(0.02, 0.01, 5), window_s=0.0)
    assert shown.reshape(-1, 10)[:, [0, 4, 5, 9]] == pytest.approx(np.array([[100, 100, 0, 0]] * 4))


def test_a_lengthened_record_goes_on_as_it_was() -> None:
    """Two steps and a half a second become twenty; use and bytes of a step stay."""
    short = record(0.25, 0.1, 3)
    short.tx[:] = [(0.0, 0.0), (0.25, 8.0), (0.3, 0.0), (0.5, 8.0), (0.55, 0.0)]
    long = lengthened(short, 5.0)
    assert long.step_ends_s == pytest.approx(0.25 + 0.25 * np.arange(21))
    assert long.iteration_time_s == pytest.approx(short.iteration_time_s)
    used = [one.end_s - one.start_s for one in long.computing]
    assert used == pytest.approx([0.1] * 20)
    traces = traces_of_worker(long, period_s=0.05, start_s=0.25, end_s=5.25, window_s=WINDOW_S)
    passed = traces["net_tx"].amount
    assert passed * 0.05 * 1e6 == pytest.approx(np.tile([0.4, 0, 0, 0, 0], 20), abs=1e-9)
    assert lengthened(short, 0.4) is short


def test_steps_too_short_or_too_long_for_counters_are_refused() -> None:
    """Before anything of their length is made: no division by zero, no terabytes."""
    for step_s in (0.0, 1e-9):
        with pytest.raises(TraceError, match="too short for the counters"):
            lengthened(record(step_s, step_s / 2, 100), 10.0)
    for step_s in (1e12, float("inf")):
        with pytest.raises(TraceError, match="at most 10000000 are taken"):
            device_trace(record(step_s, step_s / 2, 3))


@pytest.mark.parametrize(("share", "largest"), [(1.01, "101 %"), (-0.5, "-50 %"), (6.62, "662 %")])
@pytest.mark.parametrize("window_s", [0.0, WINDOW_S])
def test_no_sample_above_100_pct_is_shown(share: float, largest: str, window_s: float) -> None:
    """Neither cut off nor shown: a device in use for more than all of the time is a fault."""
    odd = record(1.0, 1.0, 5)
    odd.computing[:] = [Computing(one.start_s, one.end_s, 1.0, share) for one in odd.computing]
    with pytest.raises(
        SimulationError, match=f"device_mem_util of {largest}, needed is 0 to 100 %"
    ):
        device_trace(odd, window_s=window_s)


def test_the_bound_counts_all_that_a_longer_record_would_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3 segments, 5 and 7 changes of rates, four times: 60, and one more is too many."""
    worker = record(1.0, 0.5, 3)
    worker.step_ends_s = [1.0, 1.5, 2.0]
    worker.tx[:] = [(0.1 * i, 0.0) for i in range(5)]
    worker.rx[:] = [(0.1 * i, 0.0) for i in range(7)]
    monkeypatch.setattr(counters, "MOST_SEGMENTS", 60)
    assert lengthened(worker, 4.0).step_ends_s[-1] == pytest.approx(5.0)
    monkeypatch.setattr(counters, "MOST_SEGMENTS", 59)
    with pytest.raises(TraceError, match=r"^2 simulated steps of 1 s in all, too short"):
        lengthened(worker, 4.0)


def test_a_record_is_lengthened_from_its_first_step_on_to_its_last() -> None:
    """What begins with the end of the last step belongs to the next, which is not repeated."""
    short = record(0.25, 0.1, 3)
    short.computing.append(Computing(0.75, 0.85, 1.0, 0.5))
    short.tx[:] = [(0.0, 0.0), (0.25, 8.0), (0.5, 0.0), (0.75, 9.0)]
    long = lengthened(short, 0.75)
    assert long.step_ends_s == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.25])
    assert [one.start_s for one in long.computing] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert long.tx == [(0.25, 8.0), (0.5, 0.0), (0.75, 8.0), (1.0, 0.0)]
    assert lengthened(short, 0.5) is short


def test_traces_say_how_they_were_taken() -> None:
    """NVML's counters have windows, those of a network interface have not."""
    traces = traces_of_worker(
        record(1.0, 0.5, 4), period_s=0.25, start_s=1.0, end_s=4.0, window_s=WINDOW_S
    )
    for name, trace in traces.items():
        assert len(trace.amount) == 12
        assert (trace.period_s, trace.start_s) == (0.25, 1.0)
        assert trace.counter_period_s == (0.0 if name.startswith("net") else WINDOW_S)


def test_as_many_samples_as_are_allowed_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = record(1.0, 0.5, 4)
    monkeypatch.setattr(counters, "MOST_SAMPLES", 12)
    assert len(device_trace(worker, period_s=0.25)) == 12
    monkeypatch.setattr(counters, "MOST_SAMPLES", 11)
    with pytest.raises(TraceError, match=r"last 3 s in all, 12 samples of 0.25 s, at most 11 are"):
        device_trace(worker, period_s=0.25)


def test_the_first_sample_above_100_pct_is_named() -> None:
    odd = record(1.0, 1.0, 5)
    for number, share in ((3, 1.5), (4, 2.0)):
        segment = odd.computing[number]
        odd.computing[number] = Computing(segment.start_s, segment.end_s, share, 0.5)
        with pytest.raises(SimulationError, match="simulated device_util of 150 %"):
            device_trace(odd, window_s=0.0, period_s=1.0)


def test_a_device_that_does_nothing_shows_nothing_as_long_as_the_trace() -> None:
    idle = record(1.0, 0.5, 4)
    idle.computing[:] = []
    traces = traces_of_worker(idle, period_s=0.25, start_s=1.0, end_s=4.0, window_s=WINDOW_S)
    assert all(trace.amount.tolist() == [0.0] * 12 for trace in traces.values())


def test_a_trace_may_end_before_the_rates_do() -> None:
    """4 MB/s from 1 s to 9 s, of which 4 s are shown."""
    worker = record(1.0, 0.5, 12)
    worker.tx[:] = [(0.0, 0.0), (1.0, 4e6), (9.0, 0.0), (10.0, 7e6), (11.0, 0.0)]
    traces = traces_of_worker(worker, period_s=1.0, start_s=0.0, end_s=5.0, window_s=WINDOW_S)
    assert traces["net_tx"].amount == pytest.approx([0, 4, 4, 4, 4])
