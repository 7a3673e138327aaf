"""Frozen dataclasses to plain JSON values and back: the only converter of the package.

    dataclass  --to_dict-->  {"field": JSON value}  --from_json(Kind, ...)-->  checked dataclass

Fields may be numbers, text, bool, None, Literal, Enum, date, datetime, Path, NumPy arrays of
numbers, tuples, lists, mappings, other dataclasses and unions of these; `object` is any JSON value.
Reading converts by the declared types alone: nothing is looked up by name and nothing is run.
A field must be in the JSON even if it has a default, except where `json_field` makes it optional.
Literal fields tell the dataclasses of a union apart. A class with `of_text` reads text by it.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from driple.errors import ConfigError, DripleError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Json = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:
    Json = object  # as a declared type: any JSON value

__all__ = [
    "JSON_NAME",
    "JSON_OPTIONAL",
    "JSON_REST",
    "Json",
    "Names",
    "from_json",
    "json_field",
    "to_dict",
    "to_json",
]

MAX_DEPTH = 50
_LONGEST_SHOWN = 60  # characters of a refused value that an error repeats
JSON_NAME, JSON_OPTIONAL, JSON_REST = "json_name", "json_optional", "json_rest"
_MAY_LACK = "json_may_lack"
_PLAIN = {bool, int, str}
_AS_THEY_ARE = frozenset((str, float, int, bool, type(None)))
_NEVER_REFUSED = _AS_THEY_ARE - {float}
_T = TypeVar("_T")


class _RefusedError(Exception):
    """A value does not fit; `path` leads to it and grows from the inside out."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason, self.path = reason, path


def json_field(
    *, name: str | None = None, may_lack: bool = False, optional: bool = False, rest: bool = False
) -> Mapping[str, object]:
    """Metadata of a dataclass field, for `dataclasses.field(metadata=...)`.

    Args:
        name: key in the JSON, where it is not the name of the field.
        may_lack: whether the key may be missing; the field's default stands for it then.
        optional: likewise, and a field that holds its default is not written.
        rest: whether the field, a mapping by text, holds all keys that are no other field's; they
            are read and written beside the other fields.
    """
    return types.MappingProxyType(
        {JSON_NAME: name, _MAY_LACK: may_lack or optional, JSON_OPTIONAL: optional, JSON_REST: rest}
    )


@dataclasses.dataclass(frozen=True)
class Names:
    """Names in JSON, stated beside a type: `Annotated[Mapping[str, float], Names(RESOURCES)]`.

    Attributes:
        names: keys of a mapping, or values of a text.
        all_present: whether a mapping has all of them.
        and_others: whether a mapping may have other keys.
    """

    names: tuple[str, ...]
    all_present: bool = True
    and_others: bool = False


def to_dict(
    record: DataclassInstance | Mapping[str, object],
    *,
    where: str = "result",
    error: type[DripleError] = ConfigError,
) -> dict[str, Json]:
    """The fields of a dataclass or the items of a mapping as JSON values, in their order.

    Raises:
        DripleError: of the type `error`: a number is not finite, or nesting is over 50 deep.
    """
    return cast("dict[str, Json]", to_json(record, where=where, error=error))


def to_json(
    value: object, *, where: str = "result", error: type[DripleError] = ConfigError
) -> Json:
    """Any value that a field may hold, as a JSON value.

    Raises:
        DripleError: of the type `error`: a number is not finite, or nesting is over 50 deep.
    """
    try:
        return _to_json(value, MAX_DEPTH)
    except _RefusedError as refused:
        raise error(_sentence(refused, where)) from refused


def from_json(
    kind: type[_T],
    value: object,
    *,
    where: str,
    error: type[DripleError] = ConfigError,
    advice: str = "",
) -> _T:
    """A value of the declared type from parsed JSON.

    Args:
        kind: a dataclass, or any other type that a field may have, such as `dict[str, Row]`.
        value: as `json.loads` gives it.
        where: what holds the value, such as the file's name; the error begins with it.
        error: type of the error.
        advice: end of the error, such as "restore the file".

    Raises:
        DripleError: of the type `error`, in one line with the path of the field: a field is
            missing, unknown or of the wrong type, a number is not finite, nesting is over 50 deep,
            or a dataclass refuses its values.
    """
    try:
        result: _T = _from_json(kind, value, MAX_DEPTH)
    except _RefusedError as refused:
        raise error(_sentence(refused, where, advice)) from refused
    return result


def _sentence(refused: _RefusedError, where: str, advice: str = "") -> str:
    place = f"{where}: {refused.path}" if refused.path else where
    gap = "" if refused.reason.startswith(":") else " "
    return f"{place}{gap}{refused.reason}{advice and '; '}{advice}"


def _at(step: str, convert: Callable[..., Any], *arguments: Any) -> Any:
    """Call `convert`; the path of a refusal begins with this step."""
    try:
        return convert(*arguments)
    except _RefusedError as refused:
        raise _further_in(step, refused) from refused


def _further_in(step: str, refused: _RefusedError) -> _RefusedError:
    """The refusal with a path that begins with this step."""
    joint = "." if refused.path and not refused.path.startswith("[") else ""
    return _RefusedError(refused.reason, f"{step}{joint}{refused.path}")


def _to_json(value: Any, depth: int) -> Json:
    kind = type(value)
    if kind not in _AS_THEY_ARE:
        value = _plain(value)
        kind = type(value)
    if depth == 0:
        raise _RefusedError(f"is nested over {MAX_DEPTH} deep")
    if kind in _AS_THEY_ARE or value is None or isinstance(value, bool | int | float | str):
        if isinstance(value, float) and not math.isfinite(value):
            raise _RefusedError(f"is {value}, which JSON cannot hold")
        return cast("Json", value)
    if kind is dict or isinstance(value, Mapping):
        fields = {}
        for key, entry in value.items():
            name = key if type(key) is str else str(_plain(key))
            if depth > 1 and type(entry) in _NEVER_REFUSED:  # most are, and need no call each
                fields[name] = entry
                continue
            try:
                fields[name] = _to_json(entry, depth - 1)
            except _RefusedError as refused:
                raise _further_in(name, refused) from refused
        return fields
    if isinstance(value, list | tuple):
        kinds = set(map(type, value))  # millions of numbers of a sweep need no call each
        if depth > 1 and (kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, value)))):
            return [*value]
        items: list[Json] = []
        try:
            for held in value:
                items.append(_to_json(held, depth - 1))
        except _RefusedError as refused:
            raise _further_in(f"[{len(items)}]", refused) from refused
        return items
    raise TypeError(f"codec does not convert {type(value).__qualname__}")


def _plain(value: Any) -> Any:
    """One level of a value in types that JSON knows; keys and items are not converted yet."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.date):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    # Arrays and scalars of NumPy, which is not imported for this.
    return value.tolist() if hasattr(value, "tolist") else value


def _plain_fields(record: DataclassInstance) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field, key, is_rest, is_optional in _written_fields(type(record)):
        held = getattr(record, field.name)
        added = held if is_rest else (key,)
        if clash := {name for name in added if name in plain}:
            raise _RefusedError("is given twice", str(min(clash)))
        if is_optional and _is_left_out(field, held):
            continue
        if is_rest:
            plain |= held
        else:
            plain[key] = held
    return plain


@cache
def _written_fields(
    kind: type[DataclassInstance],
) -> tuple[tuple[dataclasses.Field[Any], str, bool, bool], ...]:
    """Each field that is written, its key, whether it holds all other keys, and may be left out."""
    return tuple(
        (
            field,
            _key(field),
            bool(field.metadata.get(JSON_REST)),
            bool(field.metadata.get(JSON_OPTIONAL)),
        )
        for field, _ in _fields_of(kind)
    )


def _key(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get(JSON_NAME) or field.name)


def _is_left_out(field: dataclasses.Field[Any], value: object) -> bool:
    """Whether an optional field holds its default."""
    factory: Any = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return value is default or (type(value) is type(default) and bool(value == default))


@cache
def _fields_of(kind: type[DataclassInstance]) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    """The fields that `__init__` takes, each with its declared type."""
    hints = get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind) if field.init)


def _from_json(kind: Any, value: Any, depth: int) -> Any:
    if depth == 0:
        raise _RefusedError(f"is nested over {MAX_DEPTH} deep")
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind is object:
        return _to_json(value, depth)
    if dataclasses.is_dataclass(kind):
        return _fields_from_json(kind, value, depth)
    if isinstance(kind, enum.EnumType):
        return kind(_one_of([member.value for member in list[enum.Enum](kind)], value))
    origin, arguments = get_origin(kind), get_args(kind)
    is_array = getattr(origin, "__module__", "") == "numpy"
    read = _array_from_json if is_array else _CONTAINERS.get(origin)
    if read is None:
        raise TypeError(f"codec does not convert {kind}")
    return read(arguments, value, depth)


def _fields_from_json(kind: Any, value: Any, depth: int) -> Any:
    if isinstance(value, str) and hasattr(kind, "of_text"):
        return kind.of_text(value)
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    fields = {_key(field): (field, hint) for field, hint in _fields_of(kind)}
    rest = next((key for key, (field, _) in fields.items() if field.metadata.get(JSON_REST)), None)
    unknown = {key: held for key, held in value.items() if key not in fields or key == rest}
    if unknown and rest is None:
        key = str(next(iter(unknown)))[:_LONGEST_SHOWN]
        raise _RefusedError(f"is unknown; known are {', '.join(fields)}", key)
    arguments: dict[str, Any] = {}
    for key, (field, hint) in fields.items():
        if key == rest:
            arguments[field.name] = _from_json(hint, unknown, depth)
        elif key in value:
            arguments[field.name] = _at(key, _from_json, hint, value[key], depth - 1)
        elif not field.metadata.get(_MAY_LACK):
            raise _RefusedError("is missing", key)
    try:
        return kind(**arguments)
    except DripleError as error:
        raise _RefusedError(f": {error}") from error


def _union_from_json(kinds: tuple[Any, ...], value: Any, depth: int) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not types.NoneType)
    refusals = []
    for kind in kinds:
        try:
            if _tags_fit(kind, value):
                return _from_json(kind, value, depth)
        except _RefusedError as refused:
            refusals.append(refused)
    if len(refusals) == 1:
        raise refusals[0]
    raise _wrong(" or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds), value)


def _tags_fit(kind: Any, value: Any) -> bool:
    """Whether the Literal fields of a dataclass allow a value; True for all other types."""
    if not (dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict)):
        return True
    return all(
        value.get(_key(field)) in get_args(hint)
        for field, hint in _fields_of(kind)
        if get_origin(hint) is Literal and _key(field) in value
    )


def _tuple_from_json(kinds: tuple[Any, ...], value: Any, depth: int) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong("a list", value)
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise _RefusedError(f"must be a list of {len(kinds)}, got {len(value)}")
    return tuple(
        _at(f"[{i}]", _from_json, kind, item, depth - 1)
        for i, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _mapping_from_json(kinds: tuple[Any, ...], value: Any, depth: int) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    mapping = {}
    for text, entry in value.items():
        step = str(text)[:_LONGEST_SHOWN]
        key = int(text) if kinds[0] is int and str(text).isdecimal() else text
        mapping[_at(step, _from_json, kinds[0], key, depth - 1)] = _at(
            step, _from_json, kinds[1], entry, depth - 1
        )
    return mapping


def _array_from_json(kinds: tuple[Any, ...], value: Any, _depth: int) -> Any:
    """An array of numbers, which has the declared type; ragged lists and text are refused."""
    import numpy as np

    wanted = np.dtype(get_args(kinds[1])[0])
    refused = _RefusedError(f"must be a list of finite numbers that fit {wanted}, of one length")
    try:
        read = np.array(value if isinstance(value, list) else None)
        array = read.astype(wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise refused from error
    # NumPy makes a number of a bool that stands among numbers.
    fits = read.dtype.kind in ("iu" if wanted.kind in "iu" else "iuf") or read.size == 0
    is_number = fits and not _holds_bool(value)
    if not (
        is_number and np.isfinite(array).all() and (wanted.kind == "f" or (array == read).all())
    ):
        raise refused
    return array


def _holds_bool(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_holds_bool, value)))


def _one_of(allowed: Iterable[Any], value: Any) -> Any:
    choices = list(allowed)
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    raise _wrong(f"one of {', '.join(map(str, choices))}", value)


def _wrong(needed: str, value: object) -> _RefusedError:
    shown = repr(value)
    dots = "..." if len(shown) > _LONGEST_SHOWN else ""
    return _RefusedError(f"must be {needed}, got {shown[:_LONGEST_SHOWN]}{dots}")


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise _wrong("a finite number", value)
    return float(value)


def _exactly(kind: type, needed: str, parse: Callable[[Any], Any] | None = None) -> Any:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _wrong(needed, value)
        try:
            return value if parse is None else parse(value)
        except ValueError as error:
            raise _wrong(needed, value) from error

    return read


_SCALARS: Mapping[Any, Callable[[Any], Any]] = {
    bool: _exactly(bool, "true or false"),
    int: _exactly(int, "a whole number"),
    float: _number,
    str: _exactly(str, "text"),
    datetime.date: _exactly(str, "a date such as 2026-11-25", datetime.date.fromisoformat),
    datetime.datetime: _exactly(str, "a time in ISO format", datetime.datetime.fromisoformat),
    Path: _exactly(str, "a path", Path),
}
_CONTAINERS: Mapping[Any, Callable[[tuple[Any, ...], Any, int], Any]] = {
    Union: _union_from_json,
    types.UnionType: _union_from_json,
    Literal: lambda choices, value, _: _one_of(choices, value),
    tuple: _tuple_from_json,
    Sequence: lambda kinds, value, depth: _tuple_from_json((*kinds, ...), value, depth),
    list: lambda kinds, value, depth: list(_tuple_from_json((*kinds, ...), value, depth)),
    dict: _mapping_from_json,
    Mapping: _mapping_from_json,
}
