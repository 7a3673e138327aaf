"""What the value of an option may be: how it is read from text, checked, and shown in help.

whole(1, 9).read("--top", "3")      ->  3
whole(1, 9).checked("--top", "3")   ->  ConfigError: --top must be a whole number from 1 to 9

A rule is declared once for an option; the command line reads texts by it, Python checks values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from driple.checks import check_choice, check_number, check_switch, check_text, check_whole
from driple.errors import ConfigError

__all__ = ["Rule", "choice", "number", "short", "shown", "switch", "text", "texts", "whole"]

_LONGEST_SHOWN = 40
_SWITCHES = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class Rule:
    """What the value of an option may be.

    Attributes:
        type: of its value.
        read: the value of a text; it gets the flag, for its message.
        checked: a value from Python, in its usual form; it gets the flag, for its message.
        choices: names that it may be; empty if they are not a few.
        adds: whether values that are given one by one are put together.
    """

    type: type
    read: Callable[[str, str], Any]
    checked: Callable[[str, Any], Any]
    choices: tuple[str, ...] = ()
    adds: bool = False


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number within the bounds."""

    def checked(flag: str, value: Any) -> Any:
        check_whole(flag, value, least, most)
        return value

    def read(flag: str, given: str) -> Any:
        try:
            value = int(given)
        except ValueError as error:
            raise ConfigError(
                f"{flag} must be a whole number from {least} to {most}, got {short(given)}"
            ) from error
        return checked(flag, value)

    return Rule(int, read, checked)


def number(*, least: float = -inf, above: float = -inf, most: float = inf) -> Rule:
    """A finite number within the bounds."""

    def checked(flag: str, value: Any) -> Any:
        check_number(flag, value, least=least, above=above, most=most)
        return value

    def read(flag: str, given: str) -> Any:
        try:
            value = float(given)
        except ValueError as error:
            raise ConfigError(f"{flag} must be a number, got {short(given)}") from error
        return checked(flag, value)

    return Rule(float, read, checked)


def text() -> Rule:
    """Any text."""

    def checked(flag: str, value: Any) -> Any:
        check_text(flag, value)
        return value

    return Rule(str, checked, checked)


def texts() -> Rule:
    """Any number of texts, given one by one."""
    return Rule(str, lambda _, given: given, lambda _, value: value, adds=True)


def choice(names: Iterable[str]) -> Rule:
    """One of some names."""
    choices = tuple(names)

    def checked(flag: str, value: Any) -> Any:
        check_choice(flag, value, choices)
        return value

    return Rule(str, checked, checked, choices)


def switch() -> Rule:
    """On or off."""

    def checked(flag: str, value: Any) -> Any:
        check_switch(flag, value)
        return value

    def read(flag: str, given: str) -> Any:
        if given.lower() not in _SWITCHES:
            raise ConfigError(f"{flag} must be on or off, got {short(given)}")
        return _SWITCHES[given.lower()]

    return Rule(bool, read, checked)


def short(given: str) -> str:
    """A text in quotes, cut where it is long."""
    ends = "..." if len(given) > _LONGEST_SHOWN else ""
    return f"'{given[:_LONGEST_SHOWN]}{ends}'"


def shown(value: object) -> str:
    """A default as a user would type it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
