"""The events of a trace that count, as columns: ops, annotations, modules, launches and kernels.

    trace.json -> TraceStream -> TraceColumns: start, length, name, lane and kind of each event

A column is an array of numbers, about 45 bytes an event, as a trace may hold millions.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import TraceError
from driple.measure.kineto.stream import TraceStream

__all__ = ["EventKind", "TraceColumns", "read_trace"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOST_EVENTS = 10_000_000
_MOST_NAMES = 1_000_000
_MOST_NAME_CHARS = 200
_MODULE = "nn.Module: "
_LARGEST_KEY = 2**62


class EventKind(IntEnum):
    """What an event is."""

    OP = 0
    ANNOTATION = 1
    MODULE = 2
    LAUNCH = 3
    KERNEL = 4
    COPY = 5
    FILL = 6


# Categories of Kineto, lower case; early versions have other words.
_KINDS: Mapping[str, EventKind] = {
    "cpu_op": EventKind.OP,
    "operator": EventKind.OP,
    "user_annotation": EventKind.ANNOTATION,
    "python_function": EventKind.MODULE,
    "cuda_runtime": EventKind.LAUNCH,
    "cuda_driver": EventKind.LAUNCH,
    "hip_runtime": EventKind.LAUNCH,
    "xpu_runtime": EventKind.LAUNCH,
    "runtime": EventKind.LAUNCH,
    "kernel": EventKind.KERNEL,
    "gpu_memcpy": EventKind.COPY,
    "memcpy": EventKind.COPY,
    "gpu_memset": EventKind.FILL,
    "memset": EventKind.FILL,
}
_ON_DEVICE = frozenset({EventKind.KERNEL, EventKind.COPY, EventKind.FILL})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TraceColumns:
    """Events in the order of the file.

    Attributes:
        start_us: shape [n], microseconds since the first event that was read.
        length_us: shape [n], microseconds.
        kind: shape [n], `EventKind`.
        name: shape [n], place in `names`.
        lane: shape [n], a thread of the host; of events of a device, the device's number.
        key: shape [n]: correlation of launches and of what they start, sequence number of ops; -1
            without one.
        names: of events.
        devices: names of the devices, by number, as far as the trace has them.
        num_events: all events of the file, also those that do not count.
        num_bytes: of the text.
    """

    start_us: FloatArray
    length_us: FloatArray
    kind: npt.NDArray[np.int8]
    name: IntArray
    lane: IntArray
    key: IntArray
    names: tuple[str, ...]
    devices: Mapping[int, str]
    num_events: int
    num_bytes: int


def read_trace(path: Path, modules: Set[str] = frozenset()) -> TraceColumns:
    """The events of a trace.

    Args:
        path: JSON of `export_chrome_trace`, gzipped or not.
        modules: names of annotations that are modules.

    Raises:
        TraceError: no such file, no trace, damaged, without an event that counts, or too large.
    """
    stream, reader = TraceStream(path), _Reader(modules)
    num_events = 0
    for event in stream.events():
        num_events += 1
        reader.add(event)
        if len(reader.start) > _MOST_EVENTS or len(reader.names) > _MOST_NAMES:
            raise TraceError(
                f"{path}: over {_MOST_EVENTS} events or {_MOST_NAMES} names; record fewer steps "
                "(torch.profiler.schedule)"
            )
    if not reader.start:
        raise TraceError(
            f"{path}: none of its {num_events} events is an op or a kernel; record a training step "
            "with torch.profiler.profile, and its activities CPU and CUDA"
        )
    return TraceColumns(
        start_us=np.frombuffer(reader.start, dtype=np.float64),
        length_us=np.frombuffer(reader.length, dtype=np.float64),
        kind=np.frombuffer(reader.kind, dtype=np.int8),
        name=np.frombuffer(reader.name, dtype=np.int64),
        lane=np.frombuffer(reader.lane, dtype=np.int64),
        key=np.frombuffer(reader.key, dtype=np.int64),
        names=tuple(reader.names),
        devices=_devices(stream.header),
        num_events=num_events,
        num_bytes=stream.num_bytes,
    )


class _Reader:
    """Columns that grow."""

    def __init__(self, modules: Set[str]) -> None:
        self.modules = modules
        self.start, self.length = array("d"), array("d")
        self.name, self.lane, self.key = array("q"), array("q"), array("q")
        self.kind = array("b")
        self.names: dict[str, int] = {}
        self._lanes: dict[str, int] = {}
        self._first: float | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        """Keep an event if it counts."""
        category, name = event.get("cat"), event.get("name")
        if event.get("ph") != "X" or not isinstance(category, str) or not isinstance(name, str):
            return
        kind = _KINDS.get(category.lower())
        if kind is None or (kind is EventKind.MODULE and not name.startswith(_MODULE)):
            return
        start, length = _time(event.get("ts")), _time(event.get("dur"))
        if start is None or length is None or length < 0:
            return
        if kind is EventKind.ANNOTATION and name in self.modules:
            kind = EventKind.MODULE
        if self._first is None:
            self._first = start
        given = event.get("args")
        args = given if isinstance(given, dict) else {}
        self.start.append(start - self._first)
        self.length.append(length)
        self.kind.append(kind)
        self.name.append(self._number(self.names, name.removeprefix(_MODULE)))
        if kind in _ON_DEVICE:
            self.lane.append(_whole(args.get("device", event.get("pid"))))
            self.key.append(_whole(args.get("correlation")))
        else:
            self.lane.append(self._number(self._lanes, f"{event.get('pid')} {event.get('tid')}"))
            wanted = "correlation" if kind is EventKind.LAUNCH else "Sequence number"
            self.key.append(_whole(args.get(wanted)))

    @staticmethod
    def _number(known: dict[str, int], name: str) -> int:
        short = name[:_MOST_NAME_CHARS]
        if not short.isascii():
            short = short.encode("utf-8", "replace").decode()
        return known.setdefault(short, len(known))


def _time(value: object) -> float | None:
    """A number of microseconds; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _whole(value: object) -> int:
    """A whole number that fits in a column; -1 of anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_KEY:
        return value
    return -1


def _devices(header: Mapping[str, Any]) -> dict[int, str]:
    """Names of devices by number."""
    given = header.get("deviceProperties")
    devices: dict[int, str] = {}
    for place, device in enumerate(given if isinstance(given, list) else []):
        name = device.get("name") if isinstance(device, dict) else None
        if isinstance(name, str):
            number = _whole(device.get("id"))
            devices[place if number < 0 else number] = name[:_MOST_NAME_CHARS]
    return devices
