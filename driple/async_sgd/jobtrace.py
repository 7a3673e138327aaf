"""`JobTrace`: the steps of a job with one worker, op by op, and its file format.

names, resources, servers, sizes, edges: common to all steps
start_s, end_s: shape [steps, ops], from the start of each step

Each op uses one resource (section 2): the worker, a server, the link from a server (downlink), or
the link to one (uplink). The file is a zip of plain arrays; nothing in it is ever executed.
"""

from __future__ import annotations

import heapq
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from driple.async_sgd.origin import TraceOrigin
from driple.checks import check_number, check_whole
from driple.codec import from_json, to_dict
from driple.errors import TraceError
from driple.files import atomic_write
from driple.storedfiles import parse_json, read_npz
from driple.units import counted

__all__ = ["JobTrace", "Resource", "order_of", "read_job_trace", "write_job_trace"]

_Whole = TypeVar("_Whole", np.int8, np.int16, np.int32, np.int64)

FORMAT = 1
_MOST_BYTES = 128 * 2**20  # of all arrays of a file
_MOST_OPS, _MOST_EDGES = 200_000, 2_000_000
_MOST_SIZE = 2**53  # bytes of a tensor; larger integers are not exact as doubles
_MOST_BATCH = 2**31
_LEAST_STEPS = 2
_ARRAYS = ("about", "names", "resources", "servers", "sizes", "edges", "start_us", "end_us",
           "step_us")  # fmt: skip


class Resource(IntEnum):
    """Kind of resource that an op uses."""

    WORKER = 0
    SERVER = 1
    DOWNLINK = 2
    UPLINK = 3

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
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
        start_s: shape [steps, n], seconds since the start of the step; for a transfer, its request.
        end_s: shape [steps, n]; for a transfer, the time at which the receiver can use the tensor.
        step_s: shape [steps], seconds from the start of a step to the start of the next.
        batch_size: examples of a step.
        bytes_per_s: rate of the link while profiling, each way.
        about: origin of the trace.

    Raises:
        TraceError: fewer than two steps, a missing time, or an op that waits for itself.
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
    about: TraceOrigin

    def __post_init__(self) -> None:
        count, steps = len(self.names), self.step_s.size
        shapes = {
            "resources": (count,), "servers": (count,), "sizes": (count,),
            "start_s": (steps, count), "end_s": (steps, count),
        }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                actual = getattr(self, name).shape
                raise TraceError(f"job trace: {name} has shape {actual}, not {shape}")
        if self.step_s.ndim != 1:
            raise TraceError(f"job trace: step_s has shape {self.step_s.shape}, not (steps,)")
        if steps < _LEAST_STEPS or not count:
            raise TraceError(
                f"job trace has {counted(steps, 'step')} of {count} ops; profile {_LEAST_STEPS} "
                "steps or more, 100 tell enough"
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
        """Number of profiled steps."""
        return len(self.step_s)

    @property
    def num_servers(self) -> int:
        """Number of parameter servers."""
        return 1 + int(self.servers.max())


def order_of(count: int, edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Topological order of the ops; ties in the order of the file.

    Raises:
        TraceError: the dependencies contain a cycle.
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
    """Write a trace, compressed; times to the microsecond.

    Raises:
        TraceError: the file cannot be written.
    """
    about = {
        "format": FORMAT,
        "batch_size": trace.batch_size,
        "bytes_per_s": trace.bytes_per_s,
        "about": to_dict(trace.about, where="job trace", error=TraceError),
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
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # numpy's stubs expect an array
    atomic_write(file, stream.getvalue(), error=TraceError)


def read_job_trace(file: Path) -> JobTrace:
    """Read a file of `write_job_trace`.

    Raises:
        TraceError: the file cannot be read, is too large, of another format, or inconsistent.
    """
    try:
        arrays = read_npz(file, _ARRAYS, _MOST_BYTES)
        about = parse_json(arrays["about"].tobytes())
        if about.get("format") != FORMAT:
            raise TraceError(
                f"{file} is a job trace of format {about.get('format')}, this Driple reads "
                f"{FORMAT}; profile again"
            )
        check_whole("its batch_size", about["batch_size"], 1, _MOST_BATCH)
        check_number("its bytes_per_s", about["bytes_per_s"], above=0)
        return JobTrace(
            names=_names(arrays),
            resources=_whole(arrays, "resources", np.int8),
            servers=_whole(arrays, "servers", np.int16),
            sizes=_whole(arrays, "sizes", np.int64, most=_MOST_SIZE),
            edges=_whole(arrays, "edges", np.int32),
            start_s=_seconds(arrays, "start_us"),
            end_s=_seconds(arrays, "end_us"),
            step_s=_seconds(arrays, "step_us"),
            batch_size=about["batch_size"],
            bytes_per_s=float(about["bytes_per_s"]),
            about=from_json(TraceOrigin, about["about"], where="job trace", error=TraceError),
        )
    except TraceError as error:
        raise TraceError(f"{file}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(
            f"{file} is no job trace ({error}); make one with driple trace run"
        ) from error


def _names(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[str, ...]:
    """Names of the ops; their number is checked before they are split."""
    text = arrays["names"].tobytes()
    num_ops, num_edges = text.count(b"\n") + 1, len(np.atleast_1d(arrays["edges"]))
    if num_ops > _MOST_OPS or num_edges > _MOST_EDGES:
        raise TraceError(
            f"job trace has {num_ops} ops and {num_edges} edges, at most {_MOST_OPS} and "
            f"{_MOST_EDGES} are read; profile a smaller graph"
        )
    return tuple(text.decode().split("\n"))


def _whole(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: type[_Whole], most: int | None = None
) -> npt.NDArray[_Whole]:
    """Integers within the range of the type."""
    values = arrays[name]
    bounds = np.iinfo(dtype)
    most = int(bounds.max) if most is None else most
    if values.dtype.kind not in "iu" or (
        values.size and not int(bounds.min) <= int(values.min()) <= int(values.max()) <= most
    ):
        raise TraceError(f"job trace: {name} are no whole numbers up to {most}; profile again")
    return values.astype(dtype)


def _seconds(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[np.float64]:
    values = arrays[name]
    if values.dtype.kind not in "iuf":
        raise TraceError(f"job trace: {name} are no numbers; profile again")
    return values.astype(np.float64) / 1e6


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _microseconds(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(seconds * 1e6).astype(np.int64)
