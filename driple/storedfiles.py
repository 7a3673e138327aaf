"""Files that others wrote, read without trusting what they claim: JSON and arrays of NumPy.

    FILE.json --size, depth--> values          FILE.npz --sizes, types, headers--> arrays by name
    file, or pipe with a writer --size--> bytes

Whatever is wrong with the content is a ValueError whose text says what; what the system refuses is
an OSError. Callers turn both into their own error.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import stat
import struct
import time
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "arrays_of",
    "check_regular",
    "is_lfs_pointer",
    "lfs_advice",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_npz",
]

MAX_JSON_BYTES = 64 * 2**20
# Begin of the small text that stands for a large file in a checkout without Git LFS.
_LFS_POINTERS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/")
_PLAIN_KINDS = "biufU"  # of arrays: numbers and text, no objects
_ARRAY_SUFFIX = ".npy"
_DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_WRITER_WAIT_S, _POLL_S = 5.0, 0.02  # for a program that opens a pipe to write
_CHUNK_BYTES = 1 << 20
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_bytes(file: Path, max_bytes: int, *, wait_s: float = _WRITER_WAIT_S) -> bytes:
    """The content of a file, or what a program writes into a pipe; one byte more if it is larger.

    Args:
        file: to read.
        max_bytes: that are wanted; no more than one further byte is read.
        wait_s: seconds until some program must have opened a pipe to write.

    Raises:
        OSError: it cannot be read, is a folder, a device or a socket, or nobody writes to the pipe.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer for ever.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file", str(file))
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is a device or a socket, not a file", str(file))
        begin = _first_bytes(descriptor, file, wait_s) if stat.S_ISFIFO(mode) else b""
        os.set_blocking(descriptor, True)
        pieces, size = [begin], len(begin)
        while size <= max_bytes:
            piece = os.read(descriptor, min(_CHUNK_BYTES, max_bytes + 1 - size))
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def check_regular(file: Path) -> None:
    """Refuse what cannot be read at any place: pipes, devices, sockets, folders.

    Raises:
        OSError: it is one of them, or it is not there.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))


def _first_bytes(descriptor: int, file: Path, wait_s: float) -> bytes:
    """A byte from a pipe once some program has opened it to write; empty if it is yet to write."""
    end_s = time.monotonic() + wait_s
    while time.monotonic() < end_s:
        try:
            begin = os.read(descriptor, 1)
        except BlockingIOError:
            return b""
        if begin:
            return begin
        time.sleep(_POLL_S)
    raise OSError(errno.EINVAL, "it is a pipe that no program writes to", str(file))


def is_lfs_pointer(content: bytes) -> bool:
    """Whether a file, or its begin, is a pointer of Git LFS in place of the file itself."""
    return content.startswith(_LFS_POINTERS)


def lfs_advice(wanted: str) -> str:
    """What to tell about a pointer where a graph, a checkpoint ... was wanted."""
    return f"a Git LFS pointer, not a {wanted}; run git lfs pull"


def read_json(file: Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: it cannot be read.
        ValueError: too large, no JSON, or nested too deep.
    """
    data = read_bytes(file, max_bytes)
    if len(data) > max_bytes:
        raise ValueError(f"it has over {max_bytes} bytes")
    return parse_json(data)


def parse_json(data: bytes, *, infinite: bool = False) -> Any:
    """What a JSON text holds; numbers are finite, and no key stands twice.

    Args:
        data: the text.
        infinite: whether it may hold `Infinity`, as Python's own writer puts it.

    Raises:
        ValueError: a pointer of Git LFS, no JSON, nested too deep, or a text that is no Unicode.
    """
    if is_lfs_pointer(data):
        raise ValueError(lfs_advice("JSON file"))
    try:
        text = data.decode(json.detect_encoding(data))
        value = json.loads(
            text,
            parse_constant=_infinity if infinite else _refuse_constant,
            object_pairs_hook=_object_without_repeats,
        )
        if _ESCAPED_HALF.search(text):
            _refuse_half_characters(value)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return value


def _refuse_half_characters(value: object) -> None:
    r"""Refuse texts with half of a character (`\ud800`), which no file, terminal or font takes."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the text {value[:80]!a} is no Unicode") from error
    elif isinstance(value, dict):
        for key, each in value.items():
            _refuse_half_characters(key)
            _refuse_half_characters(each)
    elif isinstance(value, list):
        for each in value:
            _refuse_half_characters(each)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}")


def _infinity(name: str) -> float:
    if name == "NaN":
        return _refuse_constant(name)
    return float(name)


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object")
        content[key] = value
    return content


def read_npz(file: Path, names: Iterable[str], max_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a file of `numpy.savez` or `savez_compressed`.

    Args:
        file: to read.
        names: of the arrays that it must have; others are not read.
        max_bytes: that all arrays may have together, unpacked.

    Raises:
        OSError: it cannot be read.
        ValueError: no such file, too large, an array is missing, holds objects, or is not as long
            as its header claims.
    """
    return arrays_of(read_bytes(file, max_bytes), names, max_bytes)


def arrays_of(data: bytes, names: Iterable[str], max_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """The same of content that is in memory.

    Raises:
        ValueError: see `read_npz`.
    """
    if is_lfs_pointer(data):
        raise ValueError(lfs_advice("file of arrays"))
    if len(data) > max_bytes:
        raise ValueError(
            f"it has over {max_bytes / 2**20:.0f} MiB, at most {max_bytes / 2**20:.0f} are read"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            total = sum(member.file_size for member in parts.infolist())
            if total > max_bytes:
                raise ValueError(
                    f"it holds {total / 2**20:.0f} MiB, at most {max_bytes / 2**20:.0f} are read"
                )
            members = {name: _member(parts, name) for name in names}
            return {name: _array(name, parts.read(member)) for name, member in members.items()}
    # Unknown versions and encryption are RuntimeErrors to zipfile.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error) as error:
        raise ValueError(f"it is no intact zip of arrays: {error}") from error


def _member(parts: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        member = parts.getinfo(name + _ARRAY_SUFFIX)
    except KeyError as error:
        raise ValueError(f"it has no array {name!r}") from error
    if member.compress_type not in _DEFLATED:
        raise ValueError(f"array {name!r} is packed by method {member.compress_type}")
    return member


def _array(name: str, data: bytes) -> npt.NDArray[Any]:
    """One array; the header's claim is compared with the bytes before it is believed."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(stream)
    except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, TypeError) as error:
        raise ValueError(f"array {name!r} has a damaged header: {error}") from error
    if dtype.kind not in _PLAIN_KINDS:
        raise ValueError(f"array {name!r} is of type {dtype}, not plain numbers or text")
    needed, rest = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if any(side < 0 for side in shape) or needed != rest:
        raise ValueError(f"array {name!r} of shape {shape} needs {needed} bytes, it has {rest}")
    values = np.frombuffer(data, dtype=dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if is_fortran else "C")
