"""The period of counters: exact for even steps, a count of uneven ones, none in noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from driple.trace.period import Period, find_period

GRID_S = 0.01
FloatArray = npt.NDArray[np.float64]


def _sent(steps_s: FloatArray, width_s: float = 0.03, lead_s: float = 0.0) -> FloatArray:
    """A counter of bytes that grows by 1 MB in a burst at the end of every step, shape [1, n]."""
    ends = lead_s + np.cumsum(steps_s)
    time_s = np.arange(0, ends[-1] + width_s + GRID_S, GRID_S)
    counter = np.zeros(len(time_s))
    for end in ends:
        counter += 1e6 * np.clip((time_s - end) / width_s, 0, 1)
    return counter[None]


def _period(exact: FloatArray, others: FloatArray | None = None) -> Period:
    none = np.empty((0, exact.shape[1]))
    period = find_period(exact, none if others is None else others, GRID_S)
    assert period is not None
    return period


@pytest.mark.parametrize("step_s", [0.05, 0.083, 0.2, 0.517, 1.3])
@pytest.mark.parametrize("is_exact", [True, False])
def test_even_steps_are_found_to_half_a_percent(step_s: float, is_exact: bool) -> None:
    """By counters that are the same in each step, and by time."""
    sent = _sent(np.full(round(40 / step_s), step_s))
    none = np.empty((0, sent.shape[1]))
    period = find_period(sent, none, GRID_S) if is_exact else find_period(none, sent, GRID_S)
    assert period is not None
    assert period.period_s == pytest.approx(step_s, rel=0.005)
    assert period.low_s <= step_s * 1.005
    assert period.high_s >= step_s * 0.995


@pytest.mark.parametrize("seed", range(5))
def test_steps_that_vary_by_a_quarter_are_counted(seed: int) -> None:
    """Steps of a busy machine that slow down by a third half-way: their mean is within 1 %."""
    draw = np.random.default_rng(seed)
    steps = 0.15 * draw.normal(1, 0.25, 300).clip(0.5)
    steps[150:] *= 1.33
    period = _period(_sent(steps))
    own = steps[np.cumsum(steps) > period.start_s]
    assert period.period_s == pytest.approx(own.mean(), rel=0.01)


@pytest.mark.parametrize("strong", [0.9, 0.3])
def test_of_two_axes_the_one_that_tells_steps_from_pairs_counts(
    monkeypatch: pytest.MonkeyPatch, strong: float
) -> None:
    """Records of 2026-11-29: bytes of loopback repeated by pairs of steps, allocated ones by each.

    Whichever axis repeats better, the step is the shorter period, and the longer one a doubt.
    """
    pair = _period(_sent(np.full(200, 0.12)))
    single = replace(pair, period_s=pair.period_s / 2.01, num_steps=400, strength=0.4)
    answers = iter([replace(pair, strength=strong), single])
    monkeypatch.setattr("driple.trace.period._on_axis", lambda *_: next(answers))
    period = _period(np.concatenate([_sent(np.full(200, 0.12))] * 2))
    assert period.period_s == single.period_s
    assert period.ambiguous_s == (pair.period_s,)


def test_units_and_offsets_do_not_matter_and_a_still_counter_says_nothing() -> None:
    """The period is a property of time alone."""
    sent = _sent(np.full(200, 0.12))
    among = np.concatenate([1e3 * sent + 7e8, np.full_like(sent, 5)])
    assert _period(among).period_s == pytest.approx(_period(sent).period_s, rel=1e-6)


def test_a_silent_start_and_a_pause_are_no_steps() -> None:
    """Ten seconds of imports before the first step, and a checkpoint of 3 s."""
    steps = np.full(200, 0.15)
    steps[100] = 3.0
    period = _period(_sent(steps, lead_s=10.0))
    assert period.period_s == pytest.approx(0.15, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_period(seed: int) -> None:
    """White noise and a rate that drifts are refused."""
    draw = np.random.default_rng(seed)
    none = np.empty((0, 4000))
    assert find_period(draw.random((2, 4000)).cumsum(axis=1), none, GRID_S) is None
    drift = np.abs(draw.normal(size=(1, 4000)).cumsum(axis=1)).cumsum(axis=1)
    assert find_period(drift, none, GRID_S) is None


def test_two_unlike_bursts_in_a_step_are_one_period() -> None:
    """A gradient and a smaller message half a step later repeat together."""
    step = np.zeros(20)
    step[:4], step[10:12] = 1.0, 0.3
    assert _period(np.tile(step, 100).cumsum()[None]).period_s == pytest.approx(0.2, rel=0.01)


def test_a_step_of_two_like_bursts_is_doubtful() -> None:
    """One of the lengths is given, and the other named."""
    step = np.zeros(20)
    step[:4], step[10:14] = 1.0, 0.7
    period = _period(np.tile(step, 100).cumsum()[None])
    assert any(abs(value / 0.2 - 1) < 0.02 for value in (period.period_s, *period.ambiguous_s))
