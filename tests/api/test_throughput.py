"""Samples per second: of all workers, and the slower the longer a step takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.api.throughput import Throughput, throughput_of
from driple.cluster.setting import Setting
from driple.estimate import Estimate, estimate


def throughput(
    step: Estimate,
    setting: str = "8xH100",
    *,
    records_s: list[float] | None = None,
    method: str = "simulator",
    **job: Any,
) -> Throughput | None:
    """Of an answer with this step time."""
    known = {"batch_size": 4, "grad_accumulation": 1, "seq_len": None, **job}
    records = [SimpleNamespace(iteration_time_s=seconds) for seconds in records_s or []]
    answer: Any = SimpleNamespace(
        job=SimpleNamespace(**known),
        setting=Setting.parse(setting),
        iteration_time_s=step,
        method=method,
        simulation=SimpleNamespace(records=records) if records else None,
    )
    return throughput_of(answer)


def known(rate: Throughput | None) -> Throughput:
    assert rate is not None
    return rate


def second(value: float = 1.0, ends: tuple[float, float] | None = None) -> Estimate:
    return estimate(value, "simulator", ends=ends, level=0.9)


@pytest.mark.parametrize(
    ("setting", "replicas"),
    [("1xH100", 1), ("8xH100", 8), ("8xH100@fsdp", 8), ("8xH100@tp2", 4), ("8xH100@tp2-pp4", 1),
     ("8xH100@cp4", 2)],
)  # fmt: skip
def test_devices_that_share_a_model_count_as_one(setting: str, replicas: int) -> None:
    """4 samples x 3 passes in 0.5 s, by each replica."""
    rate = known(throughput(second(0.5), setting, grad_accumulation=3, seq_len=100))
    assert rate.samples_per_s.value == pytest.approx(replicas * 24)
    assert rate.tokens_per_s is not None
    assert rate.tokens_per_s.value == pytest.approx(replicas * 2400)
    assert rate.samples_per_s.interval is None


def test_data_other_than_tokens_have_no_tokens() -> None:
    assert known(throughput(second())).tokens_per_s is None


def test_without_a_batch_or_a_time_nothing_is_known() -> None:
    assert throughput(second(), batch_size=None) is None
    assert throughput(second(0.0)) is None


@given(st.floats(1e-3, 1e3), st.floats(0.1, 1), st.floats(1, 10))
def test_the_longest_time_is_the_lowest_rate(value: float, low: float, high: float) -> None:
    rate = known(throughput(second(value, (low * value, high * value)))).samples_per_s
    assert rate.interval is not None and rate.interval.high is not None
    assert rate.interval.low == pytest.approx(rate.value / high)
    assert rate.interval.high == pytest.approx(rate.value / low)
    assert rate.interval.level == 0.9
    assert (rate.method, rate.source) == ("simulator", "simulated")


def test_ends_without_a_bound_leave_the_rate_without_one() -> None:
    slow = known(throughput(second(1.0, (0.5, float("inf"))))).samples_per_s
    assert slow.interval is not None
    assert (slow.interval.low, slow.interval.high) == (0.0, pytest.approx(64))
    fast = known(throughput(second(1.0, (0.0, 2.0)))).samples_per_s
    assert fast.interval is not None
    assert (fast.interval.low, fast.interval.high) == (pytest.approx(16), None)


def test_unlike_workers_count_with_their_own_times() -> None:
    """Two of 4 samples in 1 s, and two in 4 s: 10 samples/s; other methods know one time."""
    times = [1.0, 1.0, 4.0, 4.0]
    rate = known(throughput(second(4.0, (2.0, 8.0)), "4xH100", records_s=times))
    assert rate.samples_per_s.value == pytest.approx(10)
    assert rate.samples_per_s.interval is not None
    assert rate.samples_per_s.interval.low == pytest.approx(5)
    other = known(throughput(second(4.0), "4xH100", records_s=times, method="inspector"))
    assert other.samples_per_s.value == pytest.approx(4)
