"""Files that others wrote, read without trusting what they claim: JSON and arrays of NumPy.

    FILE.json --size, depth--> values          FILE.npz --sizes, types, headers--> arrays by name

Whatever is wrong with the content is a ValueError whose text says what; what the system refuses is
an OSError. Callers turn both into their own error.
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["is_lfs_pointer", "lfs_advice", "parse_json", "read_json", "read_npz"]

MAX_JSON_BYTES = 64 * 2**20
# Begin of the small text that stands for a large file in a checkout without Git LFS.
_LFS_POINTERS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/")
_PLAIN_KINDS = "biufU"  # of arrays: numbers and text, no objects
_ARRAY_SUFFIX = ".npy"
_DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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
    with file.open("rb") as opened:
        data = opened.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"it has over {max_bytes} bytes")
    return parse_json(data)


def parse_json(data: bytes) -> Any:
    """What a JSON text holds; numbers are finite.

    Raises:
        ValueError: a pointer of Git LFS, no JSON, or nested too deep.
    """
    if is_lfs_pointer(data):
        raise ValueError(lfs_advice("JSON file"))
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}")


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
    with file.open("rb") as opened:
        if is_lfs_pointer(opened.read(64)):
            raise ValueError(lfs_advice("file of arrays"))
    try:
        with zipfile.ZipFile(file) as parts:
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
