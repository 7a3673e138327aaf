"""Quantities as people write and read them: the only place that parses what a user types.

    "400Gb/s", "10G", "1.5GB/s"  parse_rate           -> bit/s      format_rate      -> "400G"
    "16GiB", "80 GB"             parse_size           -> bytes      quantities.size      -> "16 GiB"
    "150ms", "2h"                parse_duration       -> seconds    quantities.duration  -> "150 ms"
    "300M", "1.2B", "5000"       parse_count          -> a number of samples or tokens
    1e9                          format_count         -> "1B"
    "1-4,8"                      parse_whole_numbers  -> [1, 2, 3, 4, 8]
    1, "device"                  counted              -> "1 device"
    "8-64,100"                   parse_doubled        -> [8, 16, 32, 64, 100]
    "0-0.9" or "0,0.5"           parse_shares         -> [0.0, 0.1, ..., 0.9]

k, M, G and T are powers of 1000; Ki, Mi, Gi and Ti are powers of 1024, in either case. In a rate,
`b` is a bit and `B` is a byte; a rate without either is in bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import ceil, floor, inf, log10

from driple.checks import check_number
from driple.errors import ConfigError

__all__ = [
    "HOUR_S",
    "counted",
    "find_rate",
    "format_count",
    "format_range",
    "format_rate",
    "parse_count",
    "parse_doubled",
    "parse_duration",
    "parse_rate",
    "parse_rates",
    "parse_shares",
    "parse_whole_numbers",
    "rounded_up",
    "three_digits",
]

MOST_BITS_PER_S = 1e15
LONGEST_S = 1e9  # 32 years
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
_BITS_PER_BYTE = 8
_WITH_COMMAS = 10_000
_MOST_DECIMALS = 6  # of seconds: microseconds
_LONGEST_SHOWN = 40  # characters of a refused text that an error repeats

_FACTORS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": MINUTE_S,
    "h": HOUR_S,
    "d": DAY_S,
}

MOST_COUNT = 1e15
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_COUNT = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,2})?)\s*(?P<unit>[kKmMgGbBtT]|)"
)

_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*"
_PREFIX = r"(?P<prefix>[kKmMgGtT][iI]?|)"
_RATE = re.compile(_NUMBER + _PREFIX + r"(?P<unit>(?:b|B|[bB]it)(?:/s|ps)|[bB]it|)")
_DURATION = re.compile(_NUMBER + rf"(?P<unit>{'|'.join(_SECONDS)})", re.IGNORECASE)
_WHOLE_RANGE = re.compile(r"(?P<low>[0-9]+)(?:\s*-\s*(?P<high>[0-9]+))?")
_SHARE = r"[0-9]*\.?[0-9]+|[0-9]+\."
_SHARE_RANGE = re.compile(rf"(?P<low>{_SHARE})\s*-\s*(?P<high>{_SHARE})")


def counted(count: float, noun: str, plural: str = "") -> str:
    """A number and what it counts: `1 device`, `8 devices`, `2 branches`.

    Args:
        count: whole number.
        noun: for one.
        plural: for several, where that is not the noun with an s, or es after a hiss.
    """
    several = plural or f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
    number = f"{count:,.0f}" if count >= _WITH_COMMAS else f"{count:.0f}"
    return f"{number} {noun if count == 1 else several}"


def format_count(count: float) -> str:
    """A number of samples or tokens as `parse_count` reads it: `1B`, `300M`, `5000`."""
    for unit in ("T", "B", "M"):
        share = count / _COUNTS[unit.lower()]
        if share >= 1 and float(f"{share:.4g}") == share:
            return f"{share:.4g}{unit}"
    return f"{count:.0f}"


def find_rate(text: str) -> float | None:
    """The rate in bit/s that a text stands for, such as `10G` or `1.5GB/s`; None if it is no rate.

    Zero is a rate here: the caller has a better error for it.
    """
    match = _RATE.fullmatch(text.strip())
    if match is None or not (match["prefix"] or match["unit"]):
        return None
    bits = _BITS_PER_BYTE if match["unit"].startswith("B") and "it" not in match["unit"] else 1
    return float(match["number"]) * _FACTORS[match["prefix"].lower()] * bits


def parse_rate(name: str, text: str) -> float:
    """Bit/s from `100M`, `25G`, `400Gb/s` or `1.5GB/s`.

    Args:
        name: the flag or field, for the error.
        text: what the user typed.

    Raises:
        ConfigError: it is no rate above 0 and up to 1e15 bit/s.
    """
    rate = find_rate(text)
    if rate is None or not 0 < rate <= MOST_BITS_PER_S:
        raise ConfigError(
            f"{name} needs a rate above 0 and up to {MOST_BITS_PER_S:g} bit/s, such "
            f"as 100M, 10G or 1.5GB/s, got {_shown(text)}"
        )
    return rate


def parse_rates(name: str, text: str) -> list[float]:
    """Bit/s from a list such as `1G,10G`; empty parts are left out.

    Raises:
        ConfigError: there is no rate, or a part is no rate above 0 and up to 1e15 bit/s.
    """
    return [parse_rate(name, part) for part in _parts(text) or [text]]


def format_rate(bits_per_s: float) -> str:
    """A rate as names of settings write it, such as `100M` or `25G`; `parse_rate` reads it."""
    if bits_per_s >= _FACTORS["g"]:
        return f"{bits_per_s / _FACTORS['g']:g}G"
    return f"{bits_per_s / _FACTORS['m']:g}M"


def parse_count(name: str, text: str) -> float:
    """A number of samples or tokens from `5000`, `300M`, `1.2B` or `3e8`.

    Args:
        name: the flag or field, for the error.
        text: what the user typed; k, M, B (or G) and T are powers of 1000.

    Raises:
        ConfigError: it is no number above 0 and up to 1e15.
    """
    match = _COUNT.fullmatch(text.strip()) if len(text) <= _LONGEST_SHOWN else None
    count = float(match["number"]) * _COUNTS[match["unit"].lower()] if match else 0.0
    if not 0 < count <= MOST_COUNT:
        raise ConfigError(
            f"{name} needs a number above 0 and up to {MOST_COUNT:g}, such as 50000, 300M or "
            f"1.2B, got {_shown(text)}"
        )
    return count


def parse_duration(name: str, text: str) -> float:
    """Seconds from `150ms`, `30s`, `5min`, `2h` or `1d`.

    Args:
        name: the flag or field, for the error.
        text: what the user typed; it needs a unit.

    Raises:
        ConfigError: it is no time above 0 and up to 1e9 s.
    """
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match["number"]) * _SECONDS[match["unit"].lower()] if match else 0.0
    if not 0 < seconds <= LONGEST_S:
        raise ConfigError(
            f"{name} needs a time above 0 and up to {LONGEST_S:g} s, such as 150ms, 30s, 5min or "
            f"2h, got {_shown(text)}"
        )
    return seconds


def rounded_up(value: float) -> float:
    """A number above 0 in two digits, and no less than it is."""
    unit = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / unit - 1e-9) * unit


def three_digits(value: float) -> str:
    """A number of 0 or more in three significant digits, without an exponent: 0.0143, 3.21, 1234.

    At most six decimals: of seconds, microseconds. Less than that is `<0.000001`.
    """
    if not 0 < value < inf:
        return f"{value:g}"
    least = 10.0**-_MOST_DECIMALS
    if value < least:
        return f"<{least:.{_MOST_DECIMALS}f}"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{min(max(2 - exponent, 0), _MOST_DECIMALS)}f}"


def format_range(
    low: float, high: float | None, form: Callable[[float], str] = three_digits, unit: str = ""
) -> str:
    """Ends of an interval: `0.031 to 0.091`, and `0.031 or more` without an upper end.

    Args:
        low: lower end.
        high: upper end; None, or infinite, if there is none.
        form: text of a number.
        unit: that is written once, with the space before it.
    """
    if high is None or high == inf:
        return f"{form(low)}{unit} or more"
    return f"{form(low)} to {form(high)}{unit}"


def parse_whole_numbers(name: str, text: str, most: int) -> list[int]:
    """Whole numbers from `1-4,8`, each once, in rising order; empty parts are left out.

    Args:
        name: the flag or field, for the error.
        text: what the user typed.
        most: the largest number allowed; the smallest is 1.

    Raises:
        ConfigError: there is no number, or a part is neither a number nor a rising range within 1
            to `most`.
    """
    numbers: set[int] = set()
    for low, high in _whole_ranges(name, text, most, f"1, 1-{min(4, most)} or 1,2"):
        numbers.update(range(low, high + 1))
    return sorted(numbers)


def parse_doubled(name: str, text: str, most: int) -> list[int]:
    """Whole numbers from `8-512,700`, each once and rising; a range is doubled from its start.

    The last number of a range is one of them: `8-20` is 8, 16 and 20.

    Args:
        name: as for `parse_whole_numbers`.
        text: as there.
        most: as there.

    Raises:
        ConfigError: as `parse_whole_numbers`.
    """
    numbers: set[int] = set()
    for first, last in _whole_ranges(name, text, most, "8, 8-512 or 8,12"):
        size = first
        while size < last:
            numbers.add(size)
            size *= 2
        numbers.add(last)
    return sorted(numbers)


def _whole_ranges(name: str, text: str, most: int, such_as: str) -> Iterator[tuple[int, int]]:
    """First and last number of each part of `1-4,8`.

    Raises:
        ConfigError: as `parse_whole_numbers`.
    """
    for part in _parts(text) or [text]:
        match = _WHOLE_RANGE.fullmatch(part)
        low, high = (match["low"], match["high"] or match["low"]) if match else ("", "")
        # The length is compared first: text may hold a number of any length.
        short = match is not None and max(len(low), len(high)) <= len(str(most))
        if not (short and 1 <= int(low) <= int(high) <= most):
            raise ConfigError(
                f"{name} needs numbers from 1 to {most} such as {such_as}, got {_shown(text)}"
            )
        yield int(low), int(high)


def parse_shares(name: str, text: str) -> list[float]:
    """Shares from 0 to below 1, from a range `0-0.9` in steps of a tenth or a list `0,0.5`.

    Raises:
        ConfigError: no share, a share out of range, or a range that falls.
    """
    match = _SHARE_RANGE.fullmatch(text.strip())
    ends = [match["low"], match["high"]] if match else text.split(",")
    try:
        shares = [float(end) for end in ends]
    except ValueError as error:
        raise ConfigError(
            f"{name} needs shares such as 0.5, 0-0.9 or 0,0.5, got {_shown(text)}"
        ) from error
    for share in shares:
        check_number(name, share, least=0, below=1)
    if match is None:
        return shares
    low, high = shares
    if low > high:
        raise ConfigError(f"{name} needs a range that goes up, such as 0-0.9, got {_shown(text)}")
    tenths = [round(low + step / 10, 10) for step in range(10)]
    return [share for share in tenths if share <= high + 1e-9]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _shown(text: str) -> str:
    return f"'{text[:_LONGEST_SHOWN]}'"
