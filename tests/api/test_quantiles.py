"""Quantiles of step time: what follows from an interval, by hand and on random times."""

import numpy as np
import pytest

from driple.api.quantiles import Quantiles, quantiles_of
from driple.estimate import estimate


def test_the_ends_of_an_interval_of_eighty_percent_are_the_quantiles() -> None:
    """One of ten is below its lower end, and nine of ten are below its upper end."""
    quantiles = quantiles_of(estimate(1.0, "simulator", ends=(0.5, 3.0), level=0.8))
    assert quantiles is not None
    assert (quantiles.p10, quantiles.p50) == (0.5, 1.0)
    assert quantiles.p90 == pytest.approx(3.0)


def test_laplace_errors_of_the_logarithm_have_these_quantiles() -> None:
    """Of 200,000 times with Laplace logarithms, the 90 % interval gives p10 and p90."""
    generator = np.random.default_rng(0)
    times = 0.02 * np.exp(generator.laplace(0.0, 0.2, 200_000))
    low, high = np.quantile(times, [0.05, 0.95])
    quantiles = quantiles_of(estimate(0.02, "simulator", ends=(low, high), level=0.9))
    assert quantiles is not None
    assert quantiles.p90 is not None
    expected = np.quantile(times, [0.1, 0.9])
    assert (quantiles.p10, quantiles.p90) == pytest.approx(expected, rel=0.01)


def test_an_error_without_an_upper_bound_has_no_p90() -> None:
    """The lower quantile is known all the same."""
    quantiles = quantiles_of(estimate(2.0, "simulator", ends=(1.0, np.inf), level=0.9))
    assert quantiles == Quantiles(
        p10=pytest.approx(2.0 * 0.5**0.69897, rel=1e-4), p50=2.0, p90=None
    )


@pytest.mark.parametrize("ends", [None, (0.0, 2.0)])
def test_without_an_interval_there_are_none(ends: tuple[float, float] | None) -> None:
    """Neither where the error is unknown, nor where it says that nothing is ruled out."""
    assert quantiles_of(estimate(1.0, "simulator", ends=ends, level=0.9)) is None
    assert quantiles_of(estimate(1.0, "simulator", ends=(0.5, 2.0))) is None
    assert quantiles_of(None) is None
