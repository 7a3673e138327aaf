"""Scalars of protobuf's text format: escaped strings, numbers, names of data types."""

from __future__ import annotations

import re

from driple.errors import GraphError
from driple.graph.datatypes import NUMBER_OF

__all__ = ["data_type", "decimal", "number", "truth", "unescape", "unescape_bytes"]

_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE = {
    "n": b"\n", "r": b"\r", "t": b"\t", '"': b'"', "'": b"'", "\\": b"\\", "a": b"\a",
    "b": b"\b", "f": b"\f", "v": b"\v", "?": b"?",
}  # fmt: skip


def unescape(inner: str) -> str:
    """The text between two quotes, with its escapes resolved (they name bytes of UTF-8).

    Raises:
        GraphError: an escape that does not exist, or bytes that are no UTF-8.
    """
    if "\\" not in inner:
        return inner
    try:
        return unescape_bytes(inner).decode()
    except UnicodeDecodeError as error:
        raise GraphError(f"string {inner[:40]!r} is no UTF-8; the file is corrupt") from error


def unescape_bytes(inner: str) -> bytes:
    """The bytes between two quotes, with its escapes resolved.

    Raises:
        GraphError: an escape that does not exist.
    """
    pieces, position = [], 0
    for match in _ESCAPE.finditer(inner):
        pieces.append(inner[position : match.start()].encode())
        pieces.append(_escaped(match))
        position = match.end()
    pieces.append(inner[position:].encode())
    return b"".join(pieces)


def decimal(word: str) -> float:
    """A number with a fraction, `inf` and `nan` among them, as protobuf writes floats.

    Raises:
        GraphError: not a number.
    """
    try:
        return float(word.removesuffix("f") if word[-1:] == "f" and "inf" not in word else word)
    except ValueError as error:
        raise GraphError(f"found {word[:20]!r} where a number was expected") from error


def truth(word: str) -> int:
    """1 for a word that means true in text format, else 0."""
    return int(word in {"true", "t", "True", "1"})


def _escaped(match: re.Match[str]) -> bytes:
    octal, hexadecimal, short, long, simple = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if short is not None or long is not None:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise GraphError(f"escape {match[0]!r} names no character; the file is corrupt")
        return chr(code).encode()
    if simple not in _SIMPLE:
        raise GraphError(f"escape {match[0]!r} does not exist in text format; the file is corrupt")
    return _SIMPLE[simple]


def number(word: str) -> int:
    """A whole number, decimal, octal or hexadecimal.

    Raises:
        GraphError: not a number of 64 bits.
    """
    digits = word.removeprefix("-")
    try:
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            value = int(digits, 8)
        else:
            value = int(digits, 0) if len(word) <= 30 else 2**64
    except ValueError as error:
        raise GraphError(f"found {word[:20]!r} where a whole number was expected") from error
    value = -value if word.startswith("-") else value
    if not -(2**63) <= value < 2**63:
        raise GraphError(f"number {word[:24]} does not fit 64 bits; the file is corrupt")
    return value


def data_type(word: str) -> int:
    """Number of a data type, given its name (`DT_FLOAT`) or number; 0 if nobody knows it."""
    known = NUMBER_OF.get(word)
    if known is not None:
        return known
    return number(word) if word[:1].isdigit() else 0
