"""Damage to a file: one to four changes, chosen by a seed, so that a case can be made again.

bytes, format -> the same bytes with bits flipped, cut, copied or replaced
text          -> also with tokens that readers fall over
JSON          -> also with values of other types at any place
ONNX, Parquet -> also with fields and columns of other types, re-encoded
"""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable
from typing import Any

__all__ = ["FORMATS", "mutated"]

# Values that readers fall over: empty, huge, of other kinds, with control characters, tags.
_TOKENS = (
    b"", b"0", b"-1", b"1e999", b"nan", b"-inf", b"9" * 5000, b"2147483648",
    b"18446744073709551616", b"null", b"true", b"[]", b"{}", b'""', b'"\\ud800"',
    b"\x1b[2J", b"\x00", b"\xff\xfe",
    b"\xe2\x80\xae",
    b"!!bool x", b"!!timestamp x", b"&a [*a]", b"2026-02-30", b"0x", b"1:2:3", b"[" * 3000,
    b"{" * 300,
    b"../../etc/passwd", b"%s%n", b"$x_{$", b"x" * 5000, b"a,b,c", b"\r\n", b"=", b"'", b'"', b"#",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 10**400, -(10**30), 1e308, "", "x", "x" * 5000,
    "\x1b[2J", "\ud800", "nan", [], {}, [[]], {"a": {}}, [None], ["x", 1], {"": None},
)  # fmt: skip
_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
_SPAN = 64
_WORD = re.compile(rb"[A-Za-z0-9_.+-]+")


def mutated(data: bytes, form: str, chance: random.Random) -> bytes:
    """The content with one to four changes.

    Args:
        data: of a valid file.
        form: one of `FORMATS`.
        chance: decides what is changed.
    """
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(FORMATS[form])(data, chance)
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    """A bit."""
    at = chance.randrange(max(len(data), 1))
    return data[:at] + bytes([(data[at : at + 1] or b"\0")[0] ^ 1 << chance.randrange(8)]) + data[at + 1 :]  # fmt: skip # noqa: E501


def _set(data: bytes, chance: random.Random) -> bytes:
    """A byte."""
    at = chance.randrange(max(len(data), 1))
    return data[:at] + bytes([chance.choice(_INTERESTING)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    """Bytes taken out, or the end left off."""
    at = chance.randrange(max(len(data), 1))
    return (
        data[:at] if chance.random() < 0.2 else data[:at] + data[at + chance.randrange(1, _SPAN) :]
    )


def _copy(data: bytes, chance: random.Random) -> bytes:
    """Bytes of another place put in, or written over what is there."""
    start, at = (chance.randrange(max(len(data), 1)) for _ in range(2))
    piece = data[start : start + chance.randrange(1, _SPAN)]
    return data[:at] + piece + data[at + (len(piece) if chance.random() < 0.5 else 0) :]


def _token(data: bytes, chance: random.Random) -> bytes:
    """A word replaced by what readers fall over."""
    words = list(_WORD.finditer(data))
    if not words:
        return chance.choice(_TOKENS)
    word = chance.choice(words)
    return data[: word.start()] + chance.choice(_TOKENS) + data[word.end() :]


def _swap(data: bytes, chance: random.Random) -> bytes:
    """A word replaced by another of the file."""
    words = list(_WORD.finditer(data))
    if not words:
        return data
    word, other = chance.choice(words), chance.choice(words)
    return data[: word.start()] + other[0] + data[word.end() :]


def _value(data: bytes, chance: random.Random) -> bytes:
    """A value of JSON replaced by one of any type, taken out, or wrapped."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _token(data, chance)
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        keys = each.keys() if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()  # fmt: skip # noqa: E501
        for key in keys:
            places.append((each, key))
            waiting.append(each[key])
    if not places:
        return json.dumps(chance.choice(_VALUES)).encode()
    owner, key = chance.choice(places)
    what = chance.random()
    if what < 0.15:
        del owner[key]
    elif what < 0.3:
        owner[key] = [owner[key]] if chance.random() < 0.5 else {"a": owner[key]}
    else:
        owner[key] = chance.choice(_VALUES)
    return json.dumps(value).encode()


def _message(data: bytes, chance: random.Random) -> bytes:
    """A field of an ONNX model set to another value of its own kind."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return _flip(data, chance)
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        for field in message.DESCRIPTOR.fields:
            places.append((message, field))
            if field.type == field.TYPE_MESSAGE:
                value = getattr(message, field.name)
                waiting += list(value) if field.is_repeated else [value] * message.HasField(field.name)  # fmt: skip # noqa: E501
    message, field = chance.choice([place for place in places if _is_set(*place)] or places)
    _change(message, field, chance)
    return bytes(model.SerializePartialToString())


def _is_set(message: Any, field: Any) -> bool:
    return bool(len(getattr(message, field.name)) if field.is_repeated else message.HasField(field.name))  # fmt: skip # noqa: E501


def _change(message: Any, field: Any, chance: random.Random) -> None:
    """Another value, or none, for a field."""
    if field.is_repeated:
        values = getattr(message, field.name)
        if not len(values):
            return
        if chance.random() < 0.3 or field.type == field.TYPE_MESSAGE:
            del values[chance.randrange(len(values))]
        else:
            values[chance.randrange(len(values))] = _plain(field, values[0], chance)
    elif field.type == field.TYPE_MESSAGE or chance.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _plain(field, getattr(message, field.name), chance))


def _plain(field: Any, old: Any, chance: random.Random) -> Any:
    if isinstance(old, bytes):
        return chance.choice((b"", b"\x80", old[:-1], old * 3, b"nearest"))
    if isinstance(old, str):
        return chance.choice(
            ("", "x", old * 2, "Conv", "MatMul", "LSTM", "Resize", "If", "\x1b[2J")
        )
    if isinstance(old, float):
        return chance.choice((0.0, -1.0, float("nan"), float("inf")))
    most = 2**31 - 1 if field.type in (field.TYPE_INT32, field.TYPE_ENUM) else 2**63 - 1
    if field.type == field.TYPE_ENUM:
        return chance.choice([value.number for value in field.enum_type.values])
    least = 0 if field.type in (field.TYPE_UINT64, field.TYPE_UINT32) else -1
    return chance.choice((0, 1, 2, 3, least, max(old - 1, least), old + 1, 1000, most))


def _column(data: bytes, chance: random.Random) -> bytes:
    """A column of a Parquet file of another type, with nulls, texts of JSON changed, or gone."""
    if not data.startswith(b"PAR1"):
        return _value(data, chance)
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(data))
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return _flip(data, chance)
    if not table.num_columns or not table.num_rows:
        return _flip(data, chance)
    at = chance.randrange(table.num_columns)
    values = columns[at]
    row = chance.randrange(len(values))
    what = chance.randrange(5)
    try:
        if what == 0:
            column: Any = pa.array([chance.choice(_VALUES[5:8])] * len(values))
        elif what == 1:
            column = pa.array([str(value)[:40] for value in values])
        elif what == 2 and isinstance(values[row], str):
            text = _value(values[row].encode(), chance).decode(errors="replace")
            column = pa.array([text if i == row else value for i, value in enumerate(values)])
        elif what == 3 and isinstance(values[row], list) and values[row]:
            inner = list(values[row])
            inner[chance.randrange(len(inner))] = None
            column = pa.array([inner if i == row else v for i, v in enumerate(values)], table.column(at).type)  # fmt: skip # noqa: E501
        else:
            column = pa.array([None if i == row else v for i, v in enumerate(values)], table.column(at).type)  # fmt: skip # noqa: E501
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return _flip(data, chance)
    table = table.set_column(at, table.column_names[at], column)
    if chance.random() < 0.1:
        table = table.drop_columns([table.column_names[at]])
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def _header(data: bytes, chance: random.Random) -> bytes:
    """The header of a file of safetensors with another value, also inside its texts of JSON."""
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8:end])
        facts = header["__metadata__"]
        name = chance.choice(sorted(facts))
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return _flip(data, chance)
    if chance.random() < 0.7 and isinstance(facts[name], str):
        text = _value(facts[name].encode(errors="replace"), chance)
        facts[name] = text.decode(errors="replace")
        new = json.dumps(header).encode()
    else:
        new = _value(data[8:end], chance)
    return len(new).to_bytes(8, "little") + new + data[end:]


_Change = Callable[[bytes, random.Random], bytes]
_BINARY: tuple[_Change, ...] = (_flip, _set, _cut, _copy)
_TEXT: tuple[_Change, ...] = (_flip, _set, _cut, _copy, _token, _token, _swap, _swap)
FORMATS: dict[str, tuple[_Change, ...]] = {
    "binary": _BINARY,
    "text": _TEXT,
    "json": (*_TEXT, _value, _value, _value, _value),
    "onnx": (*_BINARY, _message, _message, _message, _message),
    "safetensors": (*_BINARY, _header, _header, _header, _header, _header, _header),
    "parquet": (_flip, _set, _cut, _column, _column, _column, _column),
}
