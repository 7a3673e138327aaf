"""Steps of many jobs in one compact file: arrays of small numbers, compressed together.

    bytes (xz), by scripts.published.step_pack -> PackedSteps

Sizes that grow with the batch are multiples of the mark, a large prime, and are stored as multiples
of the batch size. Tensors and signatures are stored once for all jobs of a file; each job has its
own list of signatures in the order of their first node, so that like models repeat each other.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError
from driple.runs.step_key import StepKey
from driple.storedfiles import parse_json, read_bytes

__all__ = ["MOST_BYTES", "PackedSteps", "read_packed_steps"]

IntArray = npt.NDArray[np.int64]

MAGIC, FORMAT = b"driple-steps\n", 1
MOST_BYTES = 2**28  # of a file, and of what is in it
MOST_RANK = 8
_MEMORY = 2**28  # of the decompressor
# What each array holds an entry for; the numbers of entries of a job are in its header.
_TENSORS = ("ranks", "dtypes", "of_parameters")
SIGNATURES = ("kinds", "numbers", "num_inputs", "num_outputs")
_NODES = ("local_signatures", "phases", "fusion")
TABLES = ("elements", "nbytes", "is_trained")
ARRAYS = (
    *_TENSORS, "sizes", "grows", *SIGNATURES, "tensors_of", "saved_bytes", "saved_bytes_each",
    *TABLES, "signatures_of_jobs", *_NODES, "saved_of_nodes", "readers_parameter", "readers_node",
    "gradients_parameter", "gradients_node",
)  # fmt: skip
# Bits of `fusion`: in a group; starts a kernel; is written; adds to gradients of earlier passes.
INSIDE, STARTS, NEEDED, ADDS = 1, 2, 4, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedSteps:
    """The content of a file.

    Attributes:
        header: JSON: kinds and numbers of signatures, parameters' names, and of each job its key,
            numbers of entries in the arrays, updates, and table of parameters.
        arrays: by name.
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, IntArray]


def read_packed_steps(file: Path) -> PackedSteps:
    """The content of a file, checked: no place leads outside, and nothing is executed.

    Raises:
        DatasetError: the file cannot be read, or is damaged.
    """
    try:
        data = read_bytes(file, MOST_BYTES)
        header, arrays = _parsed(_decompressed(data))
        _check(header, arrays)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DatasetError(
            f"{file} is no store of steps that this version reads ({error}); restore the file, or "
            "make it again with scripts/published/pytorch_steps.py"
        ) from error
    return PackedSteps(header=header, arrays=arrays)


def _decompressed(data: bytes) -> bytes:
    if not data.startswith(MAGIC):
        raise ValueError("it begins otherwise")
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    try:
        inside = reader.decompress(data[len(MAGIC) :], max_length=MOST_BYTES)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("it ends too early, or is too large")
    return inside


def _parsed(inside: bytes) -> tuple[dict[str, Any], dict[str, IntArray]]:
    length = int.from_bytes(inside[:8], "little")
    header = parse_json(inside[8 : 8 + length])
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its format is another")
    described, arrays, at = header["arrays"], {}, 8 + length
    if [one[0] for one in described] != list(ARRAYS):
        raise ValueError("its arrays are others")
    for name, kind, count in described:
        if kind not in {"<i1", "<i2", "<i4", "<i8", "|i1"} or not 0 <= count <= MOST_BYTES:
            raise ValueError(f"array {name} is of {kind}")
        size = np.dtype(kind).itemsize
        part = np.frombuffer(inside, np.uint8, count * size, at)
        planes = np.ascontiguousarray(part.reshape(size, count).T)
        arrays[name] = planes.view(kind).reshape(count).astype(np.int64)
        at += count * size
    if at != len(inside):
        raise ValueError(f"it holds {len(inside) - at} bytes too many")
    return header, arrays


def _check(header: Mapping[str, Any], arrays: Mapping[str, IntArray]) -> None:
    """Raise ValueError unless all places are within, and all numbers of entries fit."""
    tensors, signatures = len(arrays["ranks"]), len(arrays["kinds"])
    saved, jobs = len(arrays["saved_bytes"]), header["jobs"]
    sums: Callable[[str], int] = lambda name: sum(_count(job[name]) for job in jobs)  # noqa: E731
    lengths = {
        **dict.fromkeys(_TENSORS, tensors),
        **dict.fromkeys(("sizes", "grows"), int(arrays["ranks"].sum())),
        **dict.fromkeys(SIGNATURES, signatures),
        "tensors_of": int(arrays["num_inputs"].sum() + arrays["num_outputs"].sum()),
        "saved_bytes_each": saved,
        **dict.fromkeys(TABLES, sum(map(_count, header["tables"]))),
        "signatures_of_jobs": sums("signatures"),
        **dict.fromkeys(_NODES, sums("nodes")),
        "saved_of_nodes": sums("saved"),
        **dict.fromkeys(("readers_parameter", "readers_node"), sums("readers")),
        **dict.fromkeys(("gradients_parameter", "gradients_node"), sums("gradients")),
    }
    for name, wanted in lengths.items():
        if len(arrays[name]) != wanted:
            raise ValueError(f"array {name} has {len(arrays[name])} entries for {wanted}")
    ends = {
        "ranks": MOST_RANK + 1, "of_parameters": 2, "grows": 2, "is_trained": 2,
        "kinds": len(header["kinds"]), "numbers": len(header["numbers"]), "tensors_of": tensors,
        "signatures_of_jobs": signatures, "saved_of_nodes": saved, "phases": 4,
        "fusion": INSIDE + STARTS + NEEDED + ADDS + 1,
    }  # fmt: skip
    for name, array in arrays.items():
        end = ends.get(name)
        if len(array) and (array.min() < 0 or (end is not None and array.max() >= end)):
            raise ValueError(f"array {name} leads outside")
    for job in jobs:
        StepKey.parse(job["name"])
        if job["table"] >= len(header["tables"]) or job["names"] >= len(header["names"]):
            raise ValueError(f"{job['name']} has no parameters")


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_BYTES:
        raise ValueError(f"{str(value)[:20]} is no number of entries")
    return value
