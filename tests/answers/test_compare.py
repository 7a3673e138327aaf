"""Methods contradict each other only where their ranges have nothing in common."""

import pytest

from driple.answers.compare import MethodTime, disagreements, p90_of


def made(method: str, seconds: float, p90: float | None) -> MethodTime:
    return MethodTime(method=method, iteration_time_s=seconds, p90=p90)


def test_range_of_an_estimate() -> None:
    """An estimate of 1 s, off by 25 % at most, is of something between 0.8 and 1.33 s."""
    assert made("a", 1.0, 0.25).interval_s == pytest.approx((0.8, 4 / 3))
    assert made("a", 1.0, 0.0).interval_s == (1.0, 1.0)
    assert made("a", 1.0, None).interval_s is None
    least, most = made("a", 1.0, 1.5).interval_s or (0, 0)
    assert (least, most) == (0.4, float("inf"))


def test_who_contradicts_whom() -> None:
    near, far = made("near", 1.1, 0.2), made("far", 3.0, 0.1)
    measured, guess = made("measured", 1.0, 0.0), made("guess", 50.0, None)
    pairs = disagreements([measured, near, far, guess])
    assert [(pair.one.method, pair.other.method) for pair in pairs] == [
        ("measured", "far"),
        ("near", "far"),
    ]
    assert pairs[0].factor == pytest.approx(3.0)
    assert disagreements([measured, near]) == []


def test_a_90th_percentile_from_what_is_known() -> None:
    assert p90_of({"p90_pct": 12.0, "mean_pct": 1.0}) == pytest.approx(0.12)
    assert p90_of({"mean_pct": 10.0}) == pytest.approx(0.206)
    assert p90_of({"median_pct": 10.0}) == pytest.approx(0.244)
    assert p90_of({}) is None
