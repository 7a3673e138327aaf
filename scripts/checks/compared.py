"""Whether a file that was made again is the one that ships, and how far off it is if not.

    bytes before, bytes after, name of the file -> equal, equal but for ..., or differs
    file of a sample -> how many of its rows ship, and how many of them are equal

Dates, seconds that a training took and versions of libraries are of the run, not of the result.
Sums and fits end in other last digits on another processor: equal to six digits is a result of its
own, and `difference` says how far off the numbers are.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import struct
import tempfile
from collections import Counter
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from driple.dataset.tables import read_table
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore, write_memory_steps

__all__ = ["BUT_DATES", "BUT_RUN", "DIFFERS", "EQUAL", "SIX_DIGITS", "UNPACKED", "compared",
           "difference", "rows_made"]  # fmt: skip

EQUAL, BUT_DATES, UNPACKED = "equal", "equal but for dates", "equal once unpacked"
BUT_RUN = "equal but for seconds of training and versions"
SIX_DIGITS = "equal to six digits"
DIFFERS = "differs"
_NEAR = 1e-6
_DATE = re.compile(rb"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(rb"(?<![\w.])-?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w.])")
_UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}
_OF_RUN = frozenset({"train_seconds", "versions", "date"})
_JSON, _CHECKPOINT, _TABLE = (".json", ".json.gz"), ".safetensors", ".parquet"
_LENGTH = struct.Struct("<Q")  # of the header of a checkpoint


def compared(before: bytes, after: bytes, name: str) -> str:
    """How two contents of a file compare.

    Args:
        before: its bytes.
        after: its bytes once it was made again.
        name: of the file; its ending says how it is packed.
    """
    if before == after:
        return EQUAL
    if _DATE.sub(b"", before) == _DATE.sub(b"", after):
        return BUT_DATES
    unpacked = [_unpacked(content, name) for content in (before, after)]
    if unpacked[0] == unpacked[1]:
        return UNPACKED
    if name.endswith((*_JSON, _CHECKPOINT)):
        bare = [_without_run(content, name) for content in unpacked]
        if bare[0] == bare[1]:
            return BUT_RUN
        if bare[0][1] != bare[1][1]:
            return DIFFERS  # weights
    return SIX_DIGITS if _near(*(_text(content, name) for content in (before, after))) else DIFFERS


def rows_made(before: bytes, after: bytes, name: str) -> tuple[int, int, int]:
    """Rows of a sample's file that ship equally, rows of that file, rows of the file that ships.

    Rows are lines of a text without their dates, or the steps of the store of memory steps.

    Args:
        before: bytes of the file that ships.
        after: bytes of what the sample made.
        name: of the file.
    """
    ship, ours = (Counter(_rows(content, name)) for content in (before, after))
    return (ship & ours).total(), ours.total(), ship.total()


def difference(before: bytes, after: bytes, name: str) -> str:
    """How far off the numbers of two contents are, in words."""
    both = [_numbers(content, name) for content in (before, after)]
    if len(both[0]) != len(both[1]):
        return f"{len(both[1])} numbers in place of {len(both[0])}"
    ship, ours = (np.nan_to_num(values) for values in both)
    off = np.abs(ours - ship) / np.maximum(np.maximum(np.abs(ours), np.abs(ship)), 1e-300)
    changed = off[off > 0]
    if not len(changed):
        return "the numbers are equal"
    return (
        f"{len(changed)} of {len(off)} numbers differ, by {100 * np.median(changed):.2g} % in the "
        f"median and {100 * changed.max():.2g} % at most"
    )


def _near(before: bytes, after: bytes) -> bool:
    """Whether texts are equal but for digits past the sixth of numbers that are not whole."""
    if _NUMBER.sub(b"", before) != _NUMBER.sub(b"", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    return all(
        a == b
        or (not a.isdigit() and not b.isdigit() and isclose(float(a), float(b), rel_tol=_NEAR))
        for a, b in pairs
    )


def _text(content: bytes, name: str) -> bytes:
    """A file unpacked, without dates and what else is of its run."""
    if name.endswith(_TABLE):
        with tempfile.NamedTemporaryFile(suffix=_TABLE) as file:
            file.write(content)
            file.flush()
            return json.dumps(read_table(Path(file.name)).to_pylist(), default=repr).encode()
    unpacked = _unpacked(content, name)
    if name.endswith((*_JSON, _CHECKPOINT)):
        unpacked = json.dumps(_without_run(unpacked, name)[0]).encode()
    return _DATE.sub(b"", unpacked)


def _unpacked(content: bytes, name: str) -> bytes:
    unpack = _UNPACK.get(Path(name).suffix)
    return content if unpack is None or name.endswith(MEMORY_STEPS_FILE) else unpack(content)


def _without_run(content: bytes, name: str) -> tuple[Any, bytes]:
    """A JSON text or a checkpoint without what is of its run alone."""
    if not name.endswith(_CHECKPOINT):
        return _bare(json.loads(content)), b""
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    header = json.loads(content[_LENGTH.size : end])
    texts = header.get("__metadata__", {})
    header["__metadata__"] = {key: _bare(json.loads(text)) for key, text in texts.items()}
    return header, content[end:]


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in value.items() if key not in _OF_RUN}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _rows(content: bytes, name: str) -> list[bytes]:
    if not name.endswith(MEMORY_STEPS_FILE):
        return [_DATE.sub(b"", line) for line in _unpacked(content, name).splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        file, alone = Path(folder) / "all", Path(folder) / "alone"
        file.write_bytes(content)
        rows = []
        for key, step in MemoryStore.open(file).steps.items():
            write_memory_steps(alone, {key: step})
            rows.append(alone.read_bytes())
    return rows


def _numbers(content: bytes, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers of a text, weights of a checkpoint, or cells of a table."""
    if name.endswith(_CHECKPOINT):
        return np.frombuffer(_without_run(content, name)[1], "<f4").astype(np.float64)
    return np.array([float(number) for number in _NUMBER.findall(_text(content, name))])
