"""Repeats of a workload: by hand, and the law for normally distributed runs."""

from __future__ import annotations

import numpy as np
import pytest

from driple.trace.provenance import Repeatability
from driple.trace.repeatability import repeatability, smape_shares
from driple.trace.targets import TARGET_NAMES


def runs(*values: float) -> np.ndarray:
    """One run per value, all 12 targets equal to it."""
    return np.array([[value] * 12 for value in values])


def test_two_runs_by_hand() -> None:
    """1 and 3 differ by their mean, 2: 100 %; a workload that ran once does not count."""
    variation = repeatability(
        {"a": runs(1.0, 3.0), "b": runs(2.0, 2.0), "c": runs(5.0)},
        {"a": np.array([1.0, 1.0]), "b": np.array([1.0, 3.0]), "c": np.array([1.0])},
    )
    assert variation.workloads == 2
    assert [variation.smape_pct[name] for name in TARGET_NAMES] == [50.0] * 12
    assert variation.smape_pct["iteration_time"] == 50.0
    assert variation.smape_pct_by_workload == {"a": 100.0, "b": 0.0}
    # Deviations are sqrt(2) / 2 and 0; their median is half of the first.
    assert variation.median_cv[TARGET_NAMES[0]] == pytest.approx(np.sqrt(2) / 4, abs=1e-4)


def test_every_pair_of_runs_counts() -> None:
    """1, 1 and 3: one pair is equal, two differ by 100 %."""
    times_s = {"a": np.array([1.0, 1.0, 3.0])}
    variation = repeatability({"a": runs(1.0, 1.0, 3.0)}, times_s)
    assert variation.smape_pct_by_workload["a"] == pytest.approx(200 / 3, abs=0.01)


def test_nothing_ran_twice() -> None:
    """No spread is made up."""
    assert repeatability({"a": runs(1.0)}, {"a": np.array([1.0])}) == Repeatability()


def test_normal_runs_differ_by_a_known_multiple_of_their_deviation() -> None:
    """2 / sqrt(pi) times the coefficient of variation, as the module says."""
    variation = 0.03
    rows = 1 + variation * np.random.default_rng(0).standard_normal((400, 12))
    figures = repeatability({"a": rows}, {"a": rows[:, 0]})
    expected = 100 * variation * 2 / np.sqrt(np.pi)
    assert figures.smape_pct_by_workload["a"] == pytest.approx(expected, rel=0.03)


def test_zeros_are_equal() -> None:
    """0/0 counts as 0, and 0 against anything is the most."""
    assert smape_shares(np.array([0.0, 0.0]), np.array([0.0, 4.0])).tolist() == [0.0, 2.0]


def test_variation_is_that_of_its_definition_for_numbers_of_any_size() -> None:
    """A target that is always 0 varies by 0; a small one as a large one."""
    base = np.array([[1.0, 3.0] * 6, [3.0, 3.0] * 6])
    for factor in (1.0, 1e-12):
        rows = factor * base
        rows[:, 11] = 0.0
        variation = repeatability({"one": rows}, {"one": np.array([1.0, 1.0])})
        shares = list(variation.median_cv.values())
        assert shares[0] == pytest.approx(np.sqrt(2) / 2, abs=1e-4)
        assert shares[1] == shares[11] == 0.0


def test_figures_are_rounded_for_their_file() -> None:
    """Variations to four digits after the point, percentages to two."""
    rows = np.array([[1.0] * 12, [1.1] * 12])
    variation = repeatability({"one": rows}, {"one": np.array([1.0, 1.1])})
    assert set(variation.median_cv.values()) == {0.0673}  # 0.0707107 / 1.05
    assert set(variation.smape_pct.values()) == {9.52}  # 0.1 / 1.05
    assert variation.smape_pct_by_workload == {"one": 9.52}
