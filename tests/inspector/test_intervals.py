"""Intervals: they hold as many values as they say, and are wider for graphs unlike the known."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.inspector.intervals import (
    NUM_NUMBERS,
    Intervals,
    conformal_quantile,
    nearest_distances,
)


def intervals(**changed: object) -> Intervals:
    """Near ones of 10 %, far ones of 50 %, one known graph at the origin."""
    fields: dict[str, object] = {
        "level": 0.9,
        "near": np.full(NUM_NUMBERS, 0.1),
        "far": np.full(NUM_NUMBERS, 0.5),
        "threshold": 1.0,
        "reach": 4.0,
        "known": np.zeros((1, 4), dtype=np.float32),
    }
    return Intervals(**(fields | changed))  # type: ignore[arg-type]


def test_nine_of_ten_new_errors_are_within() -> None:
    """Over many draws: the quantile of n errors holds a new one nine times of ten or more."""
    generator = np.random.default_rng(0)
    for n in (9, 24, 67):
        held = []
        for _ in range(400):
            errors = np.abs(generator.standard_t(3, size=(n + 20, 1)))
            widest = conformal_quantile(errors[:n])
            assert widest is not None
            held.append((errors[n:, 0] <= widest[0]).mean())
        assert 0.885 <= np.mean(held) <= 0.915 + 1 / (n + 1)


def test_too_few_errors_tell_no_interval() -> None:
    """Eight errors cannot say where nine of ten lie."""
    assert conformal_quantile(np.ones((8, 3))) is None


@pytest.mark.parametrize(
    ("away", "warned", "half"),
    [(0.5, False, 0.1), (0.5, True, 0.5), (3.0, False, 0.5), (8.0, True, 1.0), (40.0, True, 5.0)],
)
def test_graphs_unlike_the_known_ones_get_wide_intervals(
    away: float, warned: bool, half: float
) -> None:
    """Usual; out of range; far; twice and ten times as far as all that was calibrated."""
    known = intervals()
    ends = known.around(np.full(NUM_NUMBERS, 2.0), known.distance(np.full(4, away)), warned=warned)
    np.testing.assert_allclose(ends[:, 0], 2 / np.exp(half))
    np.testing.assert_allclose(ends[:, 1], 2 * np.exp(half))
    assert known.is_beyond(away) == (away > 4)


def test_without_far_ones_the_near_ones_serve() -> None:
    """A data set of one family tells nothing of others, and of distances as little."""
    known = intervals(far=None)
    numbers = np.ones(NUM_NUMBERS)
    np.testing.assert_allclose(known.around(numbers, 2.0, warned=True)[:, 1], np.exp(known.near))
    np.testing.assert_allclose(
        known.around(numbers, 40.0, warned=True)[:, 1], np.exp(10 * known.near)
    )


def test_families_count_the_same_however_many_workloads_they_have() -> None:
    """One of five families errs ten times as much, with few workloads: it is a fifth of all."""
    errors = np.concatenate([np.full((20, 1), 0.1)] * 4 + [np.full((3, 1), 1.0)])
    families = [name for name in "abcd" for _ in range(20)] + ["e"] * 3
    pooled = conformal_quantile(errors)
    apart = conformal_quantile(errors, families=families)
    assert pooled is not None
    assert apart is not None
    assert (pooled[0], apart[0]) == (0.1, 1.0)
    assert conformal_quantile(errors, 0.8, families=families) == pytest.approx([0.1])


def test_over_families_nine_of_ten_are_within() -> None:
    """Over many draws: families differ, and the next one is held as often as the level says."""
    generator = np.random.default_rng(1)
    held = []
    for _ in range(400):
        scales = np.exp(generator.normal(0, 0.7, size=41))
        errors = np.abs(generator.normal(size=(41, 30)) * scales[:, None])
        families = [str(i) for i in range(40) for _ in range(30)]
        widest = conformal_quantile(errors[:40].reshape(-1, 1), families=families)
        assert widest is not None
        held.append((errors[40] <= widest[0]).mean())
    assert 0.86 < np.mean(held) < 0.94


def test_distance_is_to_the_nearest() -> None:
    """Root mean square over the entries; 0 where there are none."""
    distances = nearest_distances(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 2.0]]))
    assert distances == pytest.approx([np.sqrt(2.0)])
    assert nearest_distances(np.zeros((2, 0)), np.zeros((5, 0))).tolist() == [0.0, 0.0]


def test_intervals_survive_the_checkpoint() -> None:
    """All but the known graphs, which are an array beside."""
    known = intervals()
    again = Intervals.from_dict(known.to_dict(), known.known)
    np.testing.assert_array_equal(again.far, known.far)
    assert (again.level, again.threshold, again.reach) == (0.9, 1.0, 4.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("near", None),
        ("near", [0.1]),
        ("far", [-1.0] * 13),
        ("level", 2),
        ("threshold", "1"),
        ("reach", 0.5),
    ],  # nearer than the threshold
)
def test_odd_fields_are_refused(name: str, value: object) -> None:
    """By our own error."""
    known = intervals()
    with pytest.raises(ConfigError):
        Intervals.from_dict({**known.to_dict(), name: value}, known.known)
