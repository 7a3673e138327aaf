"""What the value of an option may be: how it is read from text, checked, and shown in help.

whole(1, 9).read("--top", "3")      ->  3
whole(1, 9).checked("--top", "3")   ->  ConfigError: --top must be a whole number from 1 to 9

A rule is declared once for an option; the command line reads texts by it, Python checks values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from driple.checks import check_choice, check_number, check_switch, check_text, check_whole
from driple.errors import ConfigError

__all__ = ["OptionRule", "choice", "number", "short", "shown", "switch", "text", "texts", "whole"]

_LONGEST_SHOWN = 40
_SWITCHES = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class OptionRule:
    """What the value of an option may be.

    Attributes:
        type: of its value.
        read: the value of a text; it gets the flag, for its message.
        checked: a value from Python, in its usual form; it gets the flag, for its message.
        adds: whether values that are given one by one are put together.
    """

    type: type
    read: Callable[[str, str], Any]
    checked: Callable[[str, Any], Any]
    adds: bool = False


def whole(least: int, most: int) -> OptionRule:
    """A whole number within the bounds."""
    checked = _checked_by(check_whole, least=least, most=most)
    return OptionRule(
        int, _read_by(int, checked, f"a whole number from {least} to {most}"), checked
    )


def number(*, least: float = -inf, above: float = -inf, most: float = inf) -> OptionRule:
    """A finite number within the bounds."""
    checked = _checked_by(check_number, least=least, above=above, most=most)
    return OptionRule(float, _read_by(float, checked, "a number"), checked)


def text() -> OptionRule:
    """Any text."""
    checked = _checked_by(check_text)
    return OptionRule(str, checked, checked)


def texts() -> OptionRule:
    """Any number of texts, given one by one."""
    return OptionRule(str, lambda _, given: given, lambda _, value: value, adds=True)


def choice(names: Iterable[str], offers: Mapping[str, str] = MappingProxyType({})) -> OptionRule:
    """One of some names; a message offers what to take in place of others."""
    checked = _checked_by(check_choice, choices=tuple(names), offers=offers)
    return OptionRule(str, checked, checked)


def switch() -> OptionRule:
    """On or off."""
    checked = _checked_by(check_switch)
    return OptionRule(
        bool, _read_by(lambda given: _SWITCHES[given.lower()], checked, "on or off"), checked
    )


def _checked_by(check: Callable[..., None], **bounds: Any) -> Callable[[str, Any], Any]:
    """A value that a check lets pass."""

    def checked(flag: str, value: Any) -> Any:
        check(flag, value, **bounds)
        return value

    return checked


def _read_by(
    parse: Callable[[str], Any], checked: Callable[[str, Any], Any], needed: str
) -> Callable[[str, str], Any]:
    """The value of a text, checked; a text that has none is refused with what is needed."""

    def read(flag: str, given: str) -> Any:
        try:
            value = parse(given)
        except (ValueError, KeyError) as error:
            raise ConfigError(f"{flag} must be {needed}, got {short(given)}") from error
        return checked(flag, value)

    return read


def short(given: str) -> str:
    """A text in quotes, cut where it is long."""
    ends = "..." if len(given) > _LONGEST_SHOWN else ""
    return f"'{given[:_LONGEST_SHOWN]}{ends}'"


def shown(value: object) -> str:
    """A default as a user would type it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
