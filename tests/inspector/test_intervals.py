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


def test_graphs_unlike_the_known_ones_get_wide_intervals() -> None:
    """The same numbers, nearer and further than the threshold."""
    known = intervals()
    numbers = np.full(NUM_NUMBERS, 2.0)
    near, far = (known.around(numbers, known.distance(np.full(4, x))) for x in (0.5, 3.0))
    np.testing.assert_allclose(near[:, 1], 2 * np.exp(0.1))
    np.testing.assert_allclose(far[:, 0], 2 / np.exp(0.5))
    assert (far[:, 1] > near[:, 1]).all()


def test_without_far_ones_the_near_ones_serve() -> None:
    """A data set of one family tells nothing of others."""
    known = intervals(far=None)
    np.testing.assert_array_equal(known.half_widths(100.0), known.near)


def test_distance_is_to_the_nearest() -> None:
    """Root mean square over the entries; 0 where there are none."""
    found = nearest_distances(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 2.0]]))
    assert found == pytest.approx([np.sqrt(2.0)])
    assert nearest_distances(np.zeros((2, 0)), np.zeros((5, 0))).tolist() == [0.0, 0.0]


def test_intervals_survive_the_checkpoint() -> None:
    """All but the known graphs, which are an array beside."""
    known = intervals()
    again = Intervals.from_dict(known.to_dict(), known.known)
    np.testing.assert_array_equal(again.far, known.far)
    assert (again.level, again.threshold) == (0.9, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("near", None), ("near", [0.1]), ("far", [-1.0] * 13), ("level", 2), ("threshold", "1")],
)
def test_odd_fields_are_refused(name: str, value: object) -> None:
    """By our own error."""
    known = intervals()
    with pytest.raises(ConfigError):
        Intervals.from_dict({**known.to_dict(), name: value}, known.known)
