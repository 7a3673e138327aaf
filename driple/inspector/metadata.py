"""Fields of a checkpoint's metadata, checked: text, objects, numbers, versions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypeGuard

from driple.errors import CheckpointError

__all__ = ["is_number", "numbers_of", "object_of", "text_of", "version_of"]

_MOST_VERSION = 10**6


def version_of(fields: Mapping[str, object], name: str, first: int) -> int:
    """A version number; files that were written before there was one are of the first."""
    version = fields.get(name, first)
    if type(version) is not int or not first <= version <= _MOST_VERSION:
        raise CheckpointError(
            f"its {name} is {version!r}, needed is a whole number of {first} or more; train it anew"
        )
    return version


def text_of(fields: Mapping[str, object], name: str) -> str:
    """The text of that name; CheckpointError if it is something else."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise CheckpointError(f"its {name} is {_kind(value)}, needed is text; train it anew")
    return value


def object_of(fields: Mapping[str, object], name: str) -> dict[str, object]:
    """The object of that name; CheckpointError if it is something else."""
    value = fields.get(name)
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise CheckpointError(f"its {name} is {_kind(value)}, needed is an object; train it anew")
    return value


def numbers_of(fields: Mapping[str, object], name: str) -> dict[str, float]:
    """Finite numbers by name; CheckpointError if it is something else."""
    numbers = {}
    for key, value in object_of(fields, name).items():
        if not is_number(value):
            raise CheckpointError(f"its {name} of {key!r} is no finite number; train it anew")
        numbers[key] = float(value)
    return numbers


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number, an integer may be of any length, that a double can hold."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max  # false for NaN
    )


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"
