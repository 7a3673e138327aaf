"""Fields of a request: their types, their JSON Schema, and what is no path.

RequestField.check(name, value) -> the value as `driple.api` takes it, or ConfigError
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from driple.checks import check_choice, check_number, check_switch, check_text, check_whole
from driple.errors import ConfigError
from driple.units import find_rate, parse_rate
from driple.web.refusals import wrong_type

__all__ = [
    "RequestField",
    "choice",
    "names",
    "number",
    "numbers",
    "rate",
    "rates",
    "switch",
    "whole",
    "wholes",
]

_MOST_VALUES = 1000  # of a list
_LONGEST = 200
_FILE = re.compile(r"(?i)\.(ya?ml|toml|json|csv|txt|npz)$|^[/~.]|\.\.|\\")

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field of a request.

    Attributes:
        name: in the JSON.
        help: what it is.
        schema: of its value.
        check: gives the value as the question takes it; it gets the name, for its message.
    """

    name: str
    help: str
    schema: Schema
    check: Callable[[str, Any], Any]


def names(name: str, help_: str, *, most: int = _MOST_VALUES) -> RequestField:
    """One or several names, none of which is a path."""

    def check(field: str, value: Any) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise wrong_type(field, "a name or a list of names", value)
        if len(given) > most:
            raise ConfigError(f"{field} has {len(given)} names, at most {most} are taken")
        for entry in given:
            if not entry.strip() or len(entry) > _LONGEST or _FILE.search(entry.strip()):
                raise ConfigError(f"{field}: {entry[:80]!r} is no name; see /v1/catalog")
        return tuple(given)

    text = {"type": "string", "maxLength": _LONGEST}
    schema = {"anyOf": [text, {"type": "array", "items": text, "maxItems": most}]}
    return RequestField(name, help_, schema, check)


def choice(name: str, help_: str, choices: Sequence[str]) -> RequestField:
    """One of some names."""

    def check(field: str, value: Any) -> str:
        check_text(field, value)
        check_choice(field, value, choices)
        return str(value)

    return RequestField(name, help_, {"enum": [*choices]}, check)


def switch(name: str, help_: str) -> RequestField:
    """True or false."""

    def check(field: str, value: Any) -> bool:
        check_switch(field, value)
        return bool(value)

    return RequestField(name, help_, {"type": "boolean"}, check)


def whole(name: str, help_: str, least: int, most: int) -> RequestField:
    """A whole number."""

    def check(field: str, value: Any) -> int:
        check_whole(field, value, least, most)
        return int(value)

    return RequestField(name, help_, {"type": "integer", "minimum": least, "maximum": most}, check)


def wholes(name: str, help_: str, least: int, most: int) -> RequestField:
    """One or several whole numbers."""

    def check(field: str, value: Any) -> tuple[int, ...]:
        given = _listed(field, value)
        for entry in given:
            check_whole(field, entry, least, most)
        return tuple(given)

    element = {"type": "integer", "minimum": least, "maximum": most}
    return RequestField(name, help_, _or_list(element), check)


def number(name: str, help_: str, *, above: float, most: float) -> RequestField:
    """A number."""

    def check(field: str, value: Any) -> float:
        check_number(field, value, above=above, most=most)
        return float(value)

    schema = {"type": "number", "exclusiveMinimum": above, "maximum": most}
    return RequestField(name, help_, schema, check)


def numbers(name: str, help_: str, *, least: float, most: float) -> RequestField:
    """One or several numbers."""

    def check(field: str, value: Any) -> tuple[float, ...]:
        given = _listed(field, value)
        for entry in given:
            check_number(field, entry, least=least, most=most)
        return tuple(float(one) for one in given)

    return RequestField(
        name, help_, _or_list({"type": "number", "minimum": least, "maximum": most}), check
    )


def rate(name: str, help_: str) -> RequestField:
    """A rate such as `5.08GB/s`, as text."""

    def check(field: str, value: Any) -> str:
        check_text(field, value)
        if len(value) > _LONGEST or find_rate(value) is None:
            raise ConfigError(f"{field} needs a rate such as 5.08GB/s, got {value[:80]!r}")
        parse_rate(field, value)
        return str(value)

    return RequestField(name, help_, {"type": "string", "examples": ["5.08GB/s"]}, check)


def rates(name: str, help_: str) -> RequestField:
    """One or several rates, in bit/s."""
    text = rate(name, help_)

    def check(field: str, value: Any) -> tuple[float, ...]:
        return tuple(parse_rate(field, text.check(field, one)) for one in _listed(field, value))

    return RequestField(name, help_, _or_list(text.schema), check)


def _listed(field: str, value: Any) -> list[Any]:
    given = value if isinstance(value, list) else [value]
    if not 1 <= len(given) <= _MOST_VALUES:
        raise ConfigError(f"{field} has {len(given)} values; give 1 to {_MOST_VALUES}")
    return given


def _or_list(element: Schema) -> Schema:
    return {"anyOf": [element, {"type": "array", "items": element, "minItems": 1,
                             "maxItems": _MOST_VALUES}]}  # fmt: skip
