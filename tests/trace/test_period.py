"""The period of traces: exact for waves, independent of scale and offset, none in noise."""

from __future__ import annotations

import numpy as np
import pytest

from driple.trace.period import find_period

GRID_S = 0.01


def _pulses(steps_s: np.ndarray, width_s: float = 0.03, lead_s: float = 0.0) -> np.ndarray:
    """A trace with a burst of traffic at the end of every step."""
    ends = lead_s + np.cumsum(steps_s)
    trace = np.zeros(int((ends[-1] + width_s) / GRID_S) + 1)
    for end in ends:
        trace[int(end / GRID_S) : int((end + width_s) / GRID_S) + 1] += 1
    return trace


@pytest.mark.parametrize("step_s", [0.05, 0.083, 0.2, 0.517, 1.3])
def test_even_steps_are_found_to_a_fraction_of_a_sample(step_s: float) -> None:
    """Half a percent for pulses at a fixed distance, whatever it is."""
    period = find_period(_pulses(np.full(round(40 / step_s), step_s))[None], GRID_S)
    assert period is not None
    assert period.period_s == pytest.approx(step_s, rel=0.005)
    assert period.low_s <= step_s * 1.005
    assert period.high_s >= step_s * 0.995


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_of_uneven_steps_is_within_two_percent(seed: int) -> None:
    """Steps that differ by 10 % and slow down by a third half-way, as on a shared machine."""
    draw = np.random.default_rng(seed)
    steps = 0.15 * draw.normal(1, 0.1, 300).clip(0.5)
    steps[150:] *= 1.33
    period = find_period(_pulses(steps)[None], GRID_S)
    assert period is not None
    assert period.period_s == pytest.approx(steps.mean(), rel=0.02)


def test_units_and_offsets_do_not_matter_and_silent_traces_say_nothing() -> None:
    """The period is a property of time alone."""
    wave = _pulses(np.full(200, 0.12))
    alone = find_period(wave[None], GRID_S)
    among = find_period(np.array([1e9 * wave + 7e8, np.zeros_like(wave)]), GRID_S)
    assert alone is not None
    assert among is not None
    assert among.period_s == pytest.approx(alone.period_s, rel=1e-6)


def test_a_silent_start_is_left_out_of_the_window() -> None:
    """Ten seconds of imports before the first step are no steps."""
    period = find_period(_pulses(np.full(200, 0.15), lead_s=10.0)[None], GRID_S)
    assert period is not None
    assert 600 <= period.start <= 1100
    assert period.period_s == pytest.approx(0.15, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_period(seed: int) -> None:
    """White noise and a slow drift are refused."""
    draw = np.random.default_rng(seed)
    assert find_period(draw.normal(size=(2, 4000)), GRID_S) is None
    assert find_period(np.cumsum(draw.normal(size=(1, 4000)), axis=1), GRID_S) is None


def test_two_unlike_bursts_in_a_step_are_one_period() -> None:
    """A gradient and a smaller message half a step later repeat together."""
    step = np.zeros(20)
    step[:4], step[10:12] = 1.0, 0.3
    period = find_period(np.tile(step, 100)[None], GRID_S)
    assert period is not None
    assert period.period_s == pytest.approx(0.2, rel=0.01)


def test_a_step_of_two_like_bursts_is_doubtful() -> None:
    """The shorter period is given, and the longer one named."""
    step = np.zeros(20)
    step[:4], step[10:14] = 1.0, 0.7
    period = find_period(np.tile(step, 100)[None], GRID_S)
    assert period is not None
    assert any(abs(value / 0.2 - 1) < 0.02 for value in (period.period_s, *period.ambiguous_s))
