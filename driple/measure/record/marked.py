"""Marks of steps, as `driple.marks` writes them, read without trusting them.

steps/PID-TIME.steps of every process -> StepMarks
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.errors import TraceError
from driple.marks import STEPS_MAGIC, STEPS_SUFFIX
from driple.storedfiles import read_bytes

__all__ = ["StepMarks", "read_marks"]

_MAX_STEP_FILES = 4096
_MAX_STEP_BYTES = 256 * 2**20

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMarks:
    """Marks of one process.

    Attributes:
        pid: of the process.
        rank: `RANK` of the process; -1 without one.
        times_ns: shape [n], monotonic clock, increasing.
    """

    pid: int
    rank: int
    times_ns: Int64Array


def read_marks(folder: Path) -> Iterable[StepMarks]:
    """Marks of every process with two or more; a mark that was cut is left out.

    Args:
        folder: `steps` of a record.

    Raises:
        TraceError: a file is too large, or holds no marks.
    """
    files = sorted(folder.glob(f"*{STEPS_SUFFIX}"))[:_MAX_STEP_FILES] if folder.is_dir() else []
    for file in files:
        try:
            data = read_bytes(file, _MAX_STEP_BYTES)
        except OSError as error:
            raise TraceError(f"cannot read {file}: {error.strerror}; remove it") from error
        if len(data) > _MAX_STEP_BYTES or not data.startswith(STEPS_MAGIC):
            raise TraceError(f"{file} holds no marks of driple.mark_step(); remove it")
        numbers = np.frombuffer(data, "<i8", count=len(data) // 8)[1:].astype(np.int64)
        times = numbers[2:]
        if len(times) < 2:
            continue
        if not (np.diff(times) > 0).all():
            raise TraceError(f"{file}: marks are out of order; remove it")
        yield StepMarks(pid=int(numbers[0]), rank=int(numbers[1]), times_ns=times)
