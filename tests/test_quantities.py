"""Numbers in the unit that suits them, without an exponent."""

from __future__ import annotations

import pytest

from driple.estimate import Interval
from driple.quantities import duration, duration_range, rate, rounded, size


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0143, "0.0143"), (3.214, "3.21"), (99.96, "100"), (0.0, "0"),
     (9.999, "10.0"), (80.0, "80"), (1234.0, "1,230"), (145003.3, "145,000"),
     (8.76e-10, "0.000000000876")],
)  # fmt: skip
def test_three_digits(value: float, words: str) -> None:
    assert rounded(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(75e-6, "75 us"),
     (0.0000123, "12.3 us"), (59, "59 s"), (3600, "1 h"), (4e6, "1,110 h"),
     (0.0412, "41.2 ms"), (0.9999, "1.00 s"), (90.0, "1.50 min"),
     (12600.0, "3.50 h"), (3.6e6, "1,000 h")],
)  # fmt: skip
def test_a_time_has_the_unit_of_its_size(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_interval_is_in_the_unit_of_its_number() -> None:
    interval = Interval(low=0.0131, high=0.0332, level=0.9)
    assert duration(0.0205, interval) == "20.5 ms (13 to 33)"
    assert duration(0.0205, Interval(low=0.0131, high=None)) == "20.5 ms (13 or more)"
    assert duration_range(Interval(low=75e-6, high=1.2)) == "75 us to 1.20 s"


def test_bytes_and_rates() -> None:
    assert size(5.3 * 2**30) == "5.30 GiB"
    assert [size(number) for number in (16 * 2**30, 3 * 2**19)] == ["16 GiB", "1.50 MiB"]
    assert rate(164_000.0) == "164 GB/s"
    assert rate(0.5) == "500 kB/s"
