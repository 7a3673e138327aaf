"""Checks of options: what is allowed passes, all else is one line with name, need and value."""

from __future__ import annotations

import math

import pytest

from driple.checks import check_choice, check_fields, check_number, check_whole
from driple.errors import ConfigError


def test_what_is_allowed_passes() -> None:
    """Bounds that are named `least` and `most` belong to what is allowed."""
    check_choice("--a", "x", ("x", "y"))
    check_whole("--a", 3, 3, 3)
    check_whole("--a", 10**30, 3)
    check_number("--a", 0, least=0, most=1)
    check_number("--a", 1.0, least=0, most=1)
    check_number("--a", -5)
    check_fields("a thing", {"x": 1}, ["x"])


@pytest.mark.parametrize("value", ["z", None, ["x"], 1])
def test_what_is_no_choice_is_refused(value: object) -> None:
    """The line lists the choices; values of any type may be found."""
    with pytest.raises(ConfigError, match=r"^--a must be one of x, y, got ") as caught:
        check_choice("--a", value, ("x", "y"))
    assert str(caught.value).endswith(repr(value))


@pytest.mark.parametrize("value", [0, 8, True, 2.0, "2", None])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    """Neither bools nor text nor 2.0 are whole numbers."""
    with pytest.raises(ConfigError, match=r"^--a must be a whole number from 1 to 7, got "):
        check_whole("--a", value, 1, 7)
    if value != 8:
        with pytest.raises(ConfigError, match=r"^--a must be a whole number of at least 1, got "):
            check_whole("--a", value, 1)


@pytest.mark.parametrize("value", [0, 1, -1, math.nan, math.inf, True, "1", None, 10**400])
def test_what_is_no_number_in_the_bounds_is_refused(value: object) -> None:
    """`above` and `below` are out of bounds themselves; NaN and infinity are no numbers."""
    with pytest.raises(ConfigError, match=r"^--a must be a number above 0 and below 1, got "):
        check_number("--a", value, above=0, below=1)


def test_fields_too_many_and_too_few_are_named() -> None:
    """Both kinds in one line, sorted."""
    with pytest.raises(ConfigError, match=r"^a thing with unknown or missing fields: x, z$"):
        check_fields("a thing", {"y": 1, "z": 1}, ["x", "y"])
