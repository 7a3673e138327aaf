"""`JobTrace`: the steps of a job with one worker, op by op, and the file that keeps them.

names, resources, servers, sizes, edges: once for all steps
start_s, end_s: shape [steps, ops], from the begin of each step

Each op uses one resource (section 2): the worker, a server, the link from a server (downlink), or
the link to one (uplink). The file is a zip of plain arrays; nothing in it is ever executed.
"""

from __future__ import annotations

import heapq
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import TraceError
from driple.files import write_whole

__all__ = ["JobTrace", "Resource", "order_of", "read_job_trace", "write_job_trace"]

FORMAT = 1
_MOST_BYTES = 512 * 2**20  # of all arrays of a file
_LEAST_STEPS = 2
_ARRAYS = ("about", "names", "resources", "servers", "sizes", "edges", "start_us", "end_us",
           "step_us")  # fmt: skip


class Resource(IntEnum):
    """What an op uses."""

    WORKER = 0
    SERVER = 1
    DOWNLINK = 2
    UPLINK = 3

    @property
    def is_link(self) -> bool:
        """Whether it carries tensors."""
        return self >= Resource.DOWNLINK


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTrace:
    """Profiled steps of one worker with its parameter servers.

    Attributes:
        names: of the ops, n of them.
        resources: shape [n], a `Resource` each.
        servers: shape [n], number of the server; 0 for ops of the worker.
        sizes: shape [n], bytes of the tensor of a transfer, else 0.
        edges: shape [e, 2], (op, op that waits for it).
        start_s: shape [steps, n], seconds since the step began; of a transfer, when it was asked
            for.
        end_s: shape [steps, n]; of a transfer, when the receiver could use the tensor.
        step_s: shape [steps], seconds from the begin of a step to that of the next.
        batch_size: examples of a step.
        bytes_per_s: rate of the link while profiling, each way.
        about: anything else that tells where it comes from.

    Raises:
        TraceError: fewer than two steps, a time that is missing, an op that waits for itself.
    """

    names: tuple[str, ...]
    resources: npt.NDArray[np.int8]
    servers: npt.NDArray[np.int16]
    sizes: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int32]
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    step_s: npt.NDArray[np.float64]
    batch_size: int
    bytes_per_s: float
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        count, steps = len(self.names), len(self.step_s)
        shapes = {
            "resources": (count,), "servers": (count,), "sizes": (count,),
            "start_s": (steps, count), "end_s": (steps, count),
        }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                found = getattr(self, name).shape
                raise TraceError(f"job trace: {name} has shape {found}, not {shape}")
        if steps < _LEAST_STEPS or not count:
            raise TraceError(
                f"job trace has {steps} step(s) of {count} ops; profile {_LEAST_STEPS} steps or "
                "more, 100 tell enough"
            )
        self._check_numbers()
        if self.edges.ndim != 2 or self.edges.shape[1] != 2 or not self._within(self.edges):
            raise TraceError("job trace: edges do not join ops of the trace; profile again")
        order_of(count, self.edges)

    def _check_numbers(self) -> None:
        if not (np.isfinite(self.bytes_per_s) and self.bytes_per_s > 0):
            raise TraceError(
                f"job trace has a bandwidth of {self.bytes_per_s} bytes/s; it must be above 0"
            )
        if self.batch_size < 1:
            raise TraceError(f"job trace has a batch size of {self.batch_size}; it must be above 0")
        finite = np.isfinite(self.start_s) & np.isfinite(self.end_s)
        bad = ~finite | (self.start_s < 0) | (self.end_s < self.start_s)
        if bad.any():
            step, op = np.argwhere(bad)[0].tolist()
            raise TraceError(
                f"job trace: op {self.names[op]} of step {step} has no begin and end in order; "
                "leave out that step, or profile again"
            )
        if not (np.isfinite(self.step_s).all() and (self.step_s > 0).all()):
            raise TraceError("job trace: a step takes no time; profile again")
        known = {int(kind) for kind in Resource}
        if set(np.unique(self.resources).tolist()) - known or (self.servers < 0).any():
            raise TraceError("job trace: an op uses an unknown resource; profile again")
        if (self.sizes < 0).any():
            raise TraceError("job trace: a tensor has less than no bytes; profile again")

    def _within(self, edges: npt.NDArray[np.int32]) -> bool:
        return not len(edges) or (int(edges.min()) >= 0 and int(edges.max()) < len(self.names))

    @property
    def num_steps(self) -> int:
        """Steps that were profiled."""
        return len(self.step_s)

    @property
    def num_servers(self) -> int:
        """Parameter servers."""
        return 1 + int(self.servers.max())


def order_of(count: int, edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Ops so that each comes after all that it waits for, else in the order of the file.

    Raises:
        TraceError: ops wait for each other in a circle.
    """
    waiting = np.bincount(edges[:, 1], minlength=count).tolist()
    readers: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges.tolist():
        readers[source].append(target)
    ready = [i for i, number in enumerate(waiting) if not number]
    order = []
    while ready:
        op = heapq.heappop(ready)
        order.append(op)
        for target in readers[op]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, target)
    if len(order) < count:
        raise TraceError(
            f"job trace: {count - len(order)} ops wait for each other in a circle; profile again"
        )
    return np.array(order, dtype=np.int64)


def write_job_trace(trace: JobTrace, file: Path) -> None:
    """Keep a trace, compressed; times to the microsecond.

    Raises:
        TraceError: the file cannot be written.
    """
    about = {
        "format": FORMAT,
        "batch_size": trace.batch_size,
        "bytes_per_s": trace.bytes_per_s,
        "about": dict(trace.about),
    }
    arrays = {
        "about": _bytes(json.dumps(about)),
        "names": _bytes("\n".join(trace.names)),
        "resources": trace.resources,
        "servers": trace.servers,
        "sizes": trace.sizes,
        "edges": trace.edges,
        "start_us": _microseconds(trace.start_s),
        "end_us": _microseconds(trace.end_s),
        "step_us": _microseconds(trace.step_s),
    }
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # numpy's stubs want one array
    write_whole(file, stream.getvalue(), error=TraceError)


def read_job_trace(file: Path) -> JobTrace:
    """Read what `write_job_trace` wrote.

    Raises:
        TraceError: it cannot be read, is too large, of another format, or makes no sense.
    """
    try:
        with zipfile.ZipFile(file) as parts:
            total = sum(part.file_size for part in parts.infolist())
        if total > _MOST_BYTES:
            raise TraceError(
                f"{file} holds {total / 2**20:.0f} MiB, more than the {_MOST_BYTES / 2**20:.0f} "
                "that a job trace may; profile fewer steps"
            )
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
        about = json.loads(arrays["about"].tobytes())
        if about.get("format") != FORMAT:
            raise TraceError(
                f"{file} is a job trace of format {about.get('format')}, this Driple reads "
                f"{FORMAT}; profile again"
            )
        return JobTrace(
            names=tuple(arrays["names"].tobytes().decode().split("\n")),
            resources=arrays["resources"].astype(np.int8),
            servers=arrays["servers"].astype(np.int16),
            sizes=arrays["sizes"].astype(np.int64),
            edges=arrays["edges"].astype(np.int32),
            start_s=arrays["start_us"] / 1e6,
            end_s=arrays["end_us"] / 1e6,
            step_s=arrays["step_us"] / 1e6,
            batch_size=int(about["batch_size"]),
            bytes_per_s=float(about["bytes_per_s"]),
            about=dict(about["about"]),
        )
    except TraceError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise TraceError(
            f"{file} is no job trace ({error}); make one with driple throughput profile"
        ) from error


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _microseconds(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(seconds * 1e6).astype(np.int64)
