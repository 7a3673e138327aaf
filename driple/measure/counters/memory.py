"""`device_mem_util` on CPU settings: a worker's allocation rate over the memory write bandwidth.

On a GPU, NVML's memory utilisation is the share of time in which device memory is read or written.
CPUs have no such counter. The bytes of new blocks can be counted (the output tensor of an op is a
new block, and is written at least once), so on CPU settings

    device_mem_util = 100 * allocated bytes per second / bytes per second that one core can write

which is the share of time in which one core would be writing those tensors at full bandwidth.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from driple.errors import MeasureError

__all__ = ["AllocationCounter", "build_alloc_counter", "write_bandwidth_bytes_per_s"]

_SOURCE = Path(__file__).with_name("alloc_counter.c")
_PAGE = 4096
_PROBE_BYTES = 256 * 2**20
_PROBE_ROUNDS = 7


def build_alloc_counter(folder: Path) -> Path:
    """Compile the counting library into `folder` and return its path.

    Raises:
        MeasureError: there is no C compiler, or it failed.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MeasureError("no C compiler found; measuring on CPU needs cc (apt-get install gcc)")
    library = folder / "alloc_counter.so"
    command = [compiler, "-O2", "-fPIC", "-shared", "-o", str(library), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MeasureError(
            f"{compiler} could not build the allocation counter: {done.stderr[:200]}"
        )
    return library


class AllocationCounter:
    """A page of shared memory that one worker adds its allocated bytes to."""

    def __init__(self, role: str) -> None:
        shared = Path("/dev/shm")  # noqa: S108  # nosec B108  # shared memory, its own name
        handle, name = tempfile.mkstemp(prefix=f"driple-{role}-", dir=shared)
        os.ftruncate(handle, _PAGE)
        os.close(handle)
        self.path = Path(name)

    def environment(self, library: Path) -> dict[str, str]:
        """Environment variables that make a process count its allocations."""
        return {"LD_PRELOAD": str(library), "DRIPLE_ALLOC_COUNTER": str(self.path)}

    def close(self) -> None:
        """Remove the page."""
        self.path.unlink(missing_ok=True)


def write_bandwidth_bytes_per_s() -> float:
    """Memory write bandwidth of one core, bytes/s: median over a few passes of 256 MiB."""
    block = np.empty(_PROBE_BYTES, dtype=np.uint8)
    rates = []
    for value in range(_PROBE_ROUNDS):
        start = time.perf_counter()
        block.fill(value)
        rates.append(_PROBE_BYTES / (time.perf_counter() - start))
    return float(np.median(rates))
