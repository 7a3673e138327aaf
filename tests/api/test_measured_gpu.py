"""A measured GPU: what its kernels reached, and whether it is slower than others of its kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.api.measured_gpu import LEAST_KERNELS, kernel_times, slower_pct, tuned_row
from driple.errors import MeasureError


def kernels(*seconds: float, precision: str = "bf16") -> list[Any]:
    """Kernels of 1e9 multiply-adds and 1e6 bytes each, with these times."""
    return [
        SimpleNamespace(
            kernel=SimpleNamespace(name=f"k{i}", precision=precision, multiply_adds=1e9),
            seconds=value,
            nbytes=1e6,
        )
        for i, value in enumerate(seconds)
    ]


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=9), st.floats(0.5, 3))
def test_a_gpu_is_slower_by_the_median_of_its_kernels(times: list[float], factor: float) -> None:
    """If by more than 10 %, whatever single kernels take."""
    first, other = kernels(*times), kernels(*(factor * time for time in times))
    slower = slower_pct(other, first)
    if factor > 1.1 + 1e-9:
        assert slower == pytest.approx(100 * (factor - 1))
    elif factor < 1.1 - 1e-9:
        assert slower is None
    assert slower_pct(first, first) is None


def test_one_slow_kernel_is_no_slow_gpu() -> None:
    assert slower_pct(kernels(1, 1, 9), kernels(1, 1, 1)) is None
    assert slower_pct(kernels(1, 9, 9), kernels(1, 1, 1)) == pytest.approx(800)
    assert slower_pct([], kernels(1)) is None


def test_kernels_are_compared_in_their_own_precision() -> None:
    first = [*kernels(1), *kernels(8, precision="fp32")]
    assert slower_pct(kernels(8, precision="fp32"), first) is None
    assert slower_pct(kernels(8), first) == pytest.approx(700)


def test_rates_of_kernels_by_hand() -> None:
    """2e9 FLOPs and 1e6 bytes in a millisecond: 2 TFLOP/s and 1 GB/s."""
    first, other = kernel_times(3, kernels(1e-3, 2e-3), [5e-4, 6e-4])
    assert (first.device, first.name, first.precision, first.seconds) == (3, "k0", "bf16", 1e-3)
    assert first.tflops == pytest.approx(2.0)
    assert first.gb_per_s == pytest.approx(1.0)
    assert (first.predicted_s, other.predicted_s) == (5e-4, 6e-4)
    assert other.tflops == pytest.approx(1.0)
    (unknown,) = kernel_times(0, kernels(1e-3), None)
    assert unknown.predicted_s is None
    still = kernels(1e-3)
    still[0].kernel.multiply_adds = 0.0
    assert kernel_times(0, still, None)[0].tflops is None


def test_too_few_kernels_do_not_show_what_a_gpu_reaches() -> None:
    with pytest.raises(MeasureError, match=f"4 kernels .* and {LEAST_KERNELS} are needed"):
        tuned_row(kernels(1, 1, 1, 1), "H100", dict)
