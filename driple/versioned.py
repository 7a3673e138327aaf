"""JSON files with a format number that Driple itself wrote: text -> dataclass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from driple.codec import from_json
from driple.errors import ConfigError
from driple.storedfiles import parse_json

__all__ = ["from_versioned_json"]

_T = TypeVar("_T")


def from_versioned_json(
    kind: type[_T], text: str, *, version: int, what: str, advice: str, ignored: Iterable[str] = ()
) -> _T:
    """A dataclass from the text of a file whose `format` is its version.

    Args:
        kind: the dataclass.
        text: content of the file.
        version: format number that this Driple reads.
        what: kind of the file, such as `calibration`.
        advice: end of an error, such as "fit it again".
        ignored: fields of the file that the dataclass lacks.

    Raises:
        ConfigError: the text is no such file, or of another format.
    """
    try:
        values = parse_json(text.encode())
    except ValueError as error:
        raise ConfigError(f"no {what} file ({error}); {advice}") from error
    if not isinstance(values, dict) or values.pop("format", None) != version:
        raise ConfigError(f"{what} file is not of format {version}; {advice}")
    for name in ignored:
        values.pop(name, None)
    return from_json(kind, values, where=f"no {what} file", advice=advice)
