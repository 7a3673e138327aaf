"""`--set NAME=VALUE`: values that few users change, declared once with their bounds.

class _Values:                                            (a frozen dataclass)
    share: float = number(0.4, "cores of a worker", above=0, most=1024)

override(_Values, ["share=0.8"])  ->  _Values(share=0.8), or ConfigError naming `--set share`
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer

from driple.checks import check_choice, check_number, check_whole
from driple.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "choice",
    "number",
    "override",
    "set_help",
    "set_names",
    "set_option",
    "switch",
    "text",
    "texts",
    "whole",
]

Values = TypeVar("Values", bound="DataclassInstance")
_RULE = "driple"
_LONGEST_SHOWN = 40
_HELP_WIDTH = 45  # columns beside the names of the options in a terminal of 80
_WRAP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a value is described and read."""

    help: str
    read: Callable[[str, str], object]
    adds: bool = False  # given several times, the values are put together


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


def texts(help_: str) -> Any:
    """A field with any number of texts, each given by a `--set` of its own; none by default."""
    rule = _Rule(help_, lambda _, given: given, adds=True)
    return field(default=(), metadata={_RULE: rule})


def choice(default: str, help_: str, names: Sequence[str]) -> Any:
    """A field with one of some names."""

    def read(flag: str, given: str) -> str:
        check_choice(flag, given, names)
        return given

    return field(default=default, metadata={_RULE: _Rule(help_, read)})


def switch(default: bool | None, help_: str) -> Any:
    """A field that is on or off; a default of None is the program's."""

    def read(flag: str, given: str) -> bool:
        words = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
        if given.lower() not in words:
            raise ConfigError(f"{flag} must be on or off, got {_short(given)}")
        return words[given.lower()]

    return field(default=default, metadata={_RULE: _Rule(help_, read)})


def set_help(*values: type[DataclassInstance], first: str = "") -> str:
    """Help text of a command's `--set`: a line for each name, with its default and what it means.

    Args:
        values: one dataclass, or one for each kind of argument, whose docstring then names the kind
            in its first line.
        first: what stands before the names, such as when the option applies.
    """
    lines = textwrap.wrap(f"{first}change a value; may be given several times:", _HELP_WIDTH)
    for one in values:
        if len(values) > 1:
            lines.append((one.__doc__ or "").splitlines()[0].rstrip(".") + ":")
        for item in fields(one):
            default = "" if item.default in (None, (), "") else f"={_shown(item.default)}"
            words = f"{item.name}{default}: {item.metadata[_RULE].help}"
            lines += textwrap.wrap(words, _HELP_WIDTH, subsequent_indent="  ", **_WRAP)
    return "\b\n" + "\n".join(lines)


def set_option(*values: type[DataclassInstance], first: str = "") -> Any:
    """The option `--set` of a command."""
    return typer.Option("--set", metavar="NAME=VALUE", help=set_help(*values, first=first))


def set_names(help_text: str) -> tuple[str, ...]:
    """The names in the help text of a `--set`."""
    return tuple(re.findall(r"^(\w+)(?:=\S*)?: ", help_text, re.MULTILINE))


def override(values: type[Values], given: Iterable[str] | None, *, of: str = "") -> Values:
    """The defaults of a dataclass whose fields were made above, changed by NAME=VALUE texts.

    Args:
        values: the dataclass.
        given: the texts.
        of: what the values apply to, for messages, such as ` for a job trace`.

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
                f"--set needs NAME=VALUE{of} with one of {', '.join(known)}, got {_short(words)}"
            )
        read = known[key].read(f"--set {key}", value.strip())
        before = cast("tuple[object, ...]", changed.get(key, ()))
        changed[key] = (*before, read) if known[key].adds else read
    return values(**changed)


def _short(given: str) -> str:
    ends = "..." if len(given) > _LONGEST_SHOWN else ""
    return f"'{given[:_LONGEST_SHOWN]}{ends}'"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
