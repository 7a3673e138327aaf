"""What users may type as a quantity, and how quantities are shown."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest

from driple import units
from driple.errors import ConfigError
from driple.units import (
    counted,
    find_rate,
    format_count,
    format_range,
    format_rate,
    parse_count,
    parse_doubled,
    parse_duration,
    parse_rate,
    parse_rates,
    parse_shares,
    parse_whole_numbers,
    three_digits,
)


@pytest.mark.parametrize(
    ("text", "bits_per_s"),
    [
        ("200M", 2e8), ("10g", 1e10), (" 2.5G ", 2.5e9), ("1.6T", 1.6e12), ("500k", 5e5),
        ("400Gb/s", 4e11), ("400Gbit/s", 4e11), ("400 Gbps", 4e11), ("200mbit", 2e8),
        ("1.5GB/s", 1.2e10), ("900 MBps", 7.2e9), ("1GiB/s", 8 * 2**30), ("8b/s", 8.0),
        ("1B/s", 8.0), ("10GBit/s", 1e10),
    ],
)  # fmt: skip
def test_rates_are_in_bits_unless_bytes_are_written(text: str, bits_per_s: float) -> None:
    assert parse_rate("--network", text) == pytest.approx(bits_per_s, rel=1e-12)
    assert find_rate(text) == parse_rate("--network", text)


@pytest.mark.parametrize(
    "text", ["", "10", "G", "-1G", "10 X", "10GB", "10G/s", "1e3G", "0G", "1000001G", "nan", "٣G"]
)
def test_other_texts_are_no_rates(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^--network needs a rate above 0 .* such as 100M, .*, got '"
    ):
        parse_rate("--network", text)


def test_a_rate_of_zero_is_found_so_that_its_caller_can_refuse_it() -> None:
    assert find_rate("0G") == 0.0
    assert find_rate("PCIe") is None


@pytest.mark.parametrize(
    ("bits_per_s", "text"), [(1e11, "100G"), (2.5e9, "2.5G"), (2e8, "200M"), (1e9, "1G")]
)
def test_a_shown_rate_reads_as_itself(bits_per_s: float, text: str) -> None:
    assert format_rate(bits_per_s) == text
    assert find_rate(text) == bits_per_s


def test_lists_of_rates() -> None:
    assert parse_rates("--bandwidth", "1G, 1GB/s,") == [1e9, 8e9]
    with pytest.raises(ConfigError, match=r"--bandwidth needs a rate .* got 'fast'"):
        parse_rates("--bandwidth", "1G,fast")
    with pytest.raises(ConfigError, match=r"--bandwidth needs a rate .* got ','"):
        parse_rates("--bandwidth", ",")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("150ms", 0.15), ("30 s", 30), ("5min", 300), ("2h", 7200), ("1D", 86400), ("20us", 2e-5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration("--timeout", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "0s", "-1s", "1 week", "99999999d"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--timeout needs a time above 0 .* got '"):
        parse_duration("--timeout", text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1-4,8", [1, 2, 3, 4, 8]), ("4, 2,1,2", [1, 2, 4]), ("3 - 4", [3, 4]), ("5,", [5])],
)
def test_whole_numbers_rise_and_come_once(text: str, numbers: list[int]) -> None:
    assert parse_whole_numbers("--workers", text, 64) == numbers


@pytest.mark.parametrize(
    "text", ["", ",", "0", "65", "4-1", "1-65", "1.5", "1.5-3", "-1", "a", "9" * 5000]
)
def test_other_texts_are_no_whole_numbers(text: str) -> None:
    with pytest.raises(ConfigError, match="--workers needs numbers from 1 to 64 such as 1, 1-4"):
        parse_whole_numbers("--workers", text, 64)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("8-64", [8, 16, 32, 64]), ("8-20,3", [3, 8, 16, 20]), ("5", [5]), ("4-4", [4])],
)
def test_ranges_are_doubled_from_their_first_number(text: str, numbers: list[int]) -> None:
    assert parse_doubled("--batch-size", text, 64) == numbers


@pytest.mark.parametrize("text", ["", "0", "65", "4-1", "1.5", "a", "9" * 5000])
def test_other_texts_are_nothing_to_double(text: str) -> None:
    with pytest.raises(ConfigError, match="--batch-size needs numbers from 1 to 64 such as 8"):
        parse_doubled("--batch-size", text, 64)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("0-0.3", [0, 0.1, 0.2, 0.3]), ("0.05 - .25", [0.05, 0.15, 0.25]), ("0.5", [0.5]),
        ("0,0.99", [0, 0.99]), ("0.5-0.5", [0.5]),
    ],
)  # fmt: skip
def test_shares_come_in_tenths_or_as_listed(text: str, shares: list[float]) -> None:
    assert parse_shares("--compress", text) == shares


@pytest.mark.parametrize("text", ["", "1", "-0.5", "nan", "half", "0-1", "0.5-0.2", "0,,0.5"])
def test_other_texts_are_no_shares(text: str) -> None:
    with pytest.raises(ConfigError, match="--compress "):
        parse_shares("--compress", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.014_32, "0.0143"), (3.2096, "3.21"), (0.5, "0.500"), (0.999_9, "1.00"), (12.34, "12.3"),
        (1234.5, "1234"), (0.000_012_34, "0.000012"), (1e-9, "<0.000001"), (0.0, "0"), (inf, "inf"),
    ],
)  # fmt: skip
def test_times_have_three_significant_digits_and_no_exponent(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_a_range_has_each_end_in_three_digits_and_its_unit_once() -> None:
    assert format_range(0.031133, 0.0912347) == "0.0311 to 0.0912"
    assert format_range(0.2, 12.345, unit=" s") == "0.200 to 12.3 s"
    for endless in (None, inf):
        assert format_range(0.2, endless, unit=" s") == "0.200 s or more"


def test_one_is_in_the_singular() -> None:
    assert [counted(n, "device") for n in (0, 1, 8)] == ["0 devices", "1 device", "8 devices"]
    assert counted(2, "branch") == "2 branches" and counted(1, "pass") == "1 pass"
    assert counted(3, "pass") == "3 passes" and counted(2, "axis", "axes") == "2 axes"
    assert counted(4096, "sample") == "4096 samples"
    assert counted(1_281_167, "sample") == "1,281,167 samples"


@pytest.mark.parametrize(
    ("count", "text"),
    [(1e9, "1B"), (3e8, "300M"), (1.25e9, "1.25B"), (2e12, "2T"), (5000, "5000"),
     (1234567, "1234567")],
)  # fmt: skip
def test_a_count_is_written_as_it_is_read(count: float, text: str) -> None:
    assert format_count(count) == text
    assert parse_count("--tokens", text) == count


def test_no_text_leaves_the_number_open() -> None:
    """Neither `device(s)` nor `1 devices`: `counted` writes what a number counts."""
    open_number = re.compile(r"\} [a-z -]*[a-z]\((?:s|es|ies)\)")
    lines = [
        f"{file.name}: {line.strip()}"
        for file in Path(units.__file__).parent.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if open_number.search(line)
    ]
    assert not lines
