"""What an estimate of memory says of itself: the best number, its upper end, what is left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.memory.memory_estimate import OUTSIDE_PART, Bytes, MemoryEstimate

KNOWN = MemoryEstimate(
    allocated=Bytes(value=10.0),
    reserved=Bytes(value=20.0),
    device_total=Bytes(value=30.0, upper=40.0),
    capacity_bytes=50.0,
    usable_bytes=45.0,
    fits="yes",
    margin_bytes=12.0,
    parts={OUTSIDE_PART: 3.0},
)


def test_the_best_number_is_the_one_nearest_to_the_device() -> None:
    assert KNOWN.needed == KNOWN.device_total
    assert replace(KNOWN, device_total=None).needed == KNOWN.reserved
    assert replace(KNOWN, device_total=None, reserved=None).needed == KNOWN.allocated
    nothing = MemoryEstimate(allocated=None)
    assert nothing.needed is None
    assert not nothing.is_lower_bound and not nothing.is_upper_bound
    assert not nothing.has_upper_end and not nothing.surely_fits and not nothing.is_full
    assert nothing.without_cache is None and nothing.room_bytes is None
    assert KNOWN.has_upper_end
    assert not replace(KNOWN, device_total=None).has_upper_end


@pytest.mark.parametrize(
    ("upper", "capacity", "fits", "sure"),
    [
        (40.0, 50.0, "yes", True),
        (50.0, 50.0, "yes", True),
        (50.1, 50.0, "yes", False),
        (40.0, 50.0, "likely not", False),
        (40.0, 50.0, None, False),
        (None, 50.0, "yes", False),
        (40.0, None, "yes", False),
    ],
)
def test_what_surely_fits_fits_by_its_upper_end(
    upper: float | None, capacity: float | None, fits: str | None, sure: bool
) -> None:
    needed = Bytes(value=30.0, upper=upper)
    estimate = replace(KNOWN, device_total=needed, capacity_bytes=capacity, fits=fits)  # type: ignore[arg-type]
    assert estimate.surely_fits is sure


@given(st.floats(1, 1e12), st.floats(0.5, 1.5))
def test_a_device_is_full_where_the_cache_takes_all_that_it_may(
    usable: float, share: float
) -> None:
    estimate = replace(KNOWN, usable_bytes=usable, device_total=Bytes(value=share * usable))
    assert estimate.is_full is (share >= 1 - 1e-6)
    assert not replace(KNOWN, usable_bytes=None).is_full
    assert not replace(KNOWN, device_total=None).is_full


def test_room_is_what_a_step_needs_and_what_is_left() -> None:
    assert KNOWN.without_cache == Bytes(value=13.0)
    assert KNOWN.room_bytes == 25.0
    assert replace(KNOWN, parts={}).without_cache == Bytes(value=10.0)
    assert replace(KNOWN, margin_bytes=-5.0).room_bytes == 8.0
    assert replace(KNOWN, margin_bytes=None).room_bytes is None
