"""`--set NAME=VALUE`: values that few users change, declared once with their bounds.

class _Values:                                            (a frozen dataclass)
    share: float = number(0.4, "cores of a worker", above=0, most=1024)

override(_Values, ["share=0.8"])  ->  _Values(share=0.8), or ConfigError naming `--set share`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from driple.checks import check_number, check_whole
from driple.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["number", "override", "set_help", "switch", "text", "whole"]

Values = TypeVar("Values", bound="DataclassInstance")
_RULE = "driple"
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a value is described and read."""

    help: str
    read: Callable[[str, str], object]


def whole(default: int | None, help_: str, least: int, most: int) -> Any:
    """A field with a whole number from `least` to `most`; a default of None is the program's."""

    def read(flag: str, given: str) -> int:
        try:
            value = int(given)
        except ValueError as error:
            raise ConfigError(
                f"{flag} must be a whole number from {least} to {most}, got {_short(given)}"
            ) from error
        check_whole(flag, value, least, most)
        return value

    return field(default=default, metadata={_RULE: _Rule(help_, read)})


def number(
    default: float | None,
    help_: str,
    *,
    least: float = -inf,
    above: float = -inf,
    most: float = inf,
) -> Any:
    """A field with a finite number within the bounds; a default of None is the program's."""

    def read(flag: str, given: str) -> float:
        try:
            value = float(given)
        except ValueError as error:
            raise ConfigError(f"{flag} must be a number, got {_short(given)}") from error
        check_number(flag, value, least=least, above=above, most=most)
        return value

    return field(default=default, metadata={_RULE: _Rule(help_, read)})


def text(default: str | None, help_: str) -> Any:
    """A field with any text; a default of None is the program's."""
    return field(default=default, metadata={_RULE: _Rule(help_, lambda _, given: given)})


def switch(default: bool | None, help_: str) -> Any:
    """A field that is on or off; a default of None is the program's."""

    def read(flag: str, given: str) -> bool:
        words = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
        if given.lower() not in words:
            raise ConfigError(f"{flag} must be on or off, got {_short(given)}")
        return words[given.lower()]

    return field(default=default, metadata={_RULE: _Rule(help_, read)})


def set_help(values: type[DataclassInstance]) -> str:
    """Help text of a command's `--set`: each name with its default and what it means."""
    parts = []
    for item in fields(values):
        default = "" if item.default is None else f"={_shown(item.default)}"
        parts.append(f"{item.name}{default} ({item.metadata[_RULE].help})")
    return f"change a value, may be given several times: {'; '.join(parts)}"


def override(values: type[Values], given: Iterable[str] | None) -> Values:
    """The defaults of a dataclass whose fields were made above, changed by NAME=VALUE texts.

    Raises:
        ConfigError: a text without `=`, an unknown name, or a value that its field refuses.
    """
    known = {item.name: item.metadata[_RULE] for item in fields(values)}
    changed: dict[str, object] = {}
    for words in given or ():
        name, equals, value = words.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or key not in known:
            raise ConfigError(
                f"--set needs NAME=VALUE with one of {', '.join(known)}, got {_short(words)}"
            )
        changed[key] = known[key].read(f"--set {key}", value.strip())
    return values(**changed)


def _short(given: str) -> str:
    ends = "..." if len(given) > _LONGEST_SHOWN else ""
    return f"'{given[:_LONGEST_SHOWN]}{ends}'"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
