"""Numbers with their intervals, in the unit that suits the number: `20.5 ms (13 to 33)`."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isclose, isfinite, log10

from driple.estimate import Estimate, Interval
from driple.units import HOUR_S, MINUTE_S, format_range

__all__ = ["duration", "duration_range", "rate", "rounded", "size", "timed"]

_DURATIONS = ((1e-6, "us"), (1e-3, "ms"), (1.0, "s"), (MINUTE_S, "min"), (HOUR_S, "h"))
_BYTES = ((2.0**20, "MiB"), (2.0**30, "GiB"), (2.0**40, "TiB"))
_MEGABYTES_PER_S = ((1e-3, "kB/s"), (1.0, "MB/s"), (1e3, "GB/s"), (1e6, "TB/s"))


def rounded(value: float, digits: int = 3) -> str:
    """Significant digits without an exponent, with commas from a thousand on: 1,230; 0.0143.

    A small whole number is exact, and has no decimals: 80 GiB, 2 h.
    """
    if not isfinite(value) or value == 0:
        return f"{value:g}"
    if abs(value) < 10**digits and isclose(value, round(value), rel_tol=1e-9):
        return f"{round(value)}"
    decimals = digits - 1 - floor(log10(abs(value)))
    number = round(value, decimals)
    if abs(number) >= 10.0 ** (floor(log10(abs(value))) + 1):  # 99.96 has one decimal less
        decimals -= 1
    return f"{number:,.{max(decimals, 0)}f}"


def _in_unit(value: float, interval: Interval | None, units: Sequence[tuple[float, str]]) -> str:
    factor, unit = _unit(value, units)
    words = f"{rounded(value / factor)} {unit}"
    return words if interval is None else f"{words} ({_ends(interval, factor)})"


def _ends(interval: Interval, factor: float) -> str:
    return format_range(interval.low, interval.high, lambda end: rounded(end / factor, 2))


def _unit(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit of which there is at least one; the smallest if there is none."""
    fitting = [unit for unit in units if abs(value) >= 0.9995 * unit[0]]
    return fitting[-1] if fitting else units[0]


def duration(seconds: float, interval: Interval | None = None) -> str:
    """A time: `75 us`, `41.2 ms (31 to 55)`, `3.5 h`."""
    return _in_unit(seconds, interval, _DURATIONS)


def timed(time: Estimate) -> str:
    """A time with its interval."""
    return duration(time.value, time.interval)


def duration_range(interval: Interval) -> str:
    """Both ends, each in its own unit: `75 us to 1.2 s`."""
    return format_range(interval.low, interval.high, duration)


def size(num_bytes: float) -> str:
    """Bytes: `5.3 GiB`."""
    return _in_unit(num_bytes, None, _BYTES)


def rate(mb_per_s: float) -> str:
    """A rate of the network, from MB/s: `164 GB/s`."""
    return _in_unit(mb_per_s, None, _MEGABYTES_PER_S)
