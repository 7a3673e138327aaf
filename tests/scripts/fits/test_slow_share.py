"""The two numbers that say which kernels follow a faster memory are those of the measured pair."""

from __future__ import annotations

import numpy as np

from driple.simulate.gpu_kernels import SLOW_POWER, SLOW_SHARE
from scripts.fits.slow_share import errors, mean_errors, parts_of_both


def test_the_numbers_that_ship_have_the_least_error_within_a_hundredth_of_it() -> None:
    """And explain most of what kernels of an H200 take longer than its memory alone says.

    Shares of 0.5 and 0.6 are alike: 3.42 and 3.41 % with one fit, the other way with another.
    """
    parts = list(parts_of_both())
    assert len(parts) > 500
    error_by_pair = mean_errors(parts)
    assert error_by_pair[SLOW_SHARE, SLOW_POWER] < 1.01 * min(error_by_pair.values())
    weights = [one.weight for one in parts]
    plain = np.average(np.abs(errors(parts, 1e-9, SLOW_POWER)), weights=weights)
    assert error_by_pair[SLOW_SHARE, SLOW_POWER] < 0.4 * plain
