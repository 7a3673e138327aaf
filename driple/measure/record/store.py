"""A record on disk: one folder, appended block by block and synced, readable after any kill.

    record.json     format, when, what was sampled, what could not be; its end once it has ended
    samples.bin     blocks of about a second: magic, length, CRC-32, zlib data
    steps/*.steps   marks of each process (`driple.marks`)

A block holds both clocks, the rows of the counters and the readings of the gauges. The reader stops
at the first block that is cut or damaged; everything before it counts.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.codec import from_json, json_field, to_dict
from driple.errors import MeasureError, TraceError
from driple.files import atomic_write, wrap_os_error
from driple.measure.counters.samples import Samples
from driple.measure.record.marked import StepMarks, read_marks
from driple.storedfiles import read_bytes, read_json
from driple.trace.provenance import MeasuringHost
from driple.units import counted

__all__ = [
    "RECORD_FORMAT",
    "BlockWriter",
    "GaugeReadings",
    "HostRecord",
    "RecordAbout",
    "RecordEnd",
    "is_record",
    "read_record",
    "write_about",
]

RECORD_FORMAT = 1
ABOUT_FILE, SAMPLES_FILE, STEPS_FOLDER = "record.json", "samples.bin", "steps"
_MAGIC = b"DRPB"
_HEADER = struct.Struct("<4sII")  # magic, bytes of data, CRC-32 of data
_BLOCK = struct.Struct("<qqII")  # wall clock and monotonic clock in ns, rows, readings
_MAX_BLOCK_BYTES = 16 * 2**20  # unpacked; a block of a second has some KiB
_MAX_FILE_BYTES = 2 * 2**30  # packed; a week at 10 ms
_MAX_VALUES = 500_000_000  # of all rows
_MAX_COLUMNS = 1000
_FAST = 1  # zlib level: differences are mostly small numbers
_OPTIONAL = json_field(optional=True)

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordEnd:
    """How a record ended.

    Attributes:
        status: exit status of the command; None of a process that was only watched.
        seconds: length of the record.
        sampler_cpu_s: CPU time of the recorder.
    """

    status: int | None
    seconds: float
    sampler_cpu_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordAbout:
    """What a record is of.

    Attributes:
        format: number of the format.
        driple: version that recorded.
        created: start, ISO format.
        command: command line of the job.
        period_s: seconds between two rows.
        columns: growing counters of every row, such as `cpu_ns`.
        gauges: names of the readings of every block, such as `memory_bytes`.
        missing: counters that could not be read, and why.
        log: what the recorder noticed, a sentence each.
        interfaces: network interfaces that were counted.
        cores: cores that the job may use.
        gpus: names of the GPUs.
        boot_id: the machine's since its start; records of one machine share its clock.
        clock_error_s: bound of the wall clock's error that the kernel states; None if unknown.
        host: the machine.
        end: None while it is recorded, and of a recorder that was killed.
    """

    format: int
    driple: str
    created: str
    command: tuple[str, ...]
    period_s: float
    columns: tuple[str, ...]
    gauges: tuple[str, ...]
    missing: Mapping[str, str]
    log: tuple[str, ...]
    interfaces: tuple[str, ...]
    cores: float
    gpus: tuple[str, ...]
    boot_id: str
    clock_error_s: float | None
    host: MeasuringHost
    end: RecordEnd | None = field(default=None, metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class GaugeReadings:
    """Readings of a gauge.

    Attributes:
        times_ns: shape [n], monotonic clock.
        values: shape [n], int64, in the unit of the gauge's name.
    """

    times_ns: Int64Array
    values: Int64Array


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRecord:
    """One record, read.

    Attributes:
        folder: where it lies.
        about: content of record.json.
        samples: rows of the counters.
        gauges: readings by name.
        marks: of every process that marked steps.
        clock_ns: shape [blocks, 2]: wall clock and monotonic clock.
        unread_bytes: at the end of samples.bin: a block that was cut.
    """

    folder: Path
    about: RecordAbout
    samples: Samples
    gauges: Mapping[str, GaugeReadings]
    marks: tuple[StepMarks, ...]
    clock_ns: Int64Array
    unread_bytes: int

    @property
    def wall_offset_ns(self) -> int:
        """Wall clock minus monotonic clock: the median over all blocks, robust to a jump."""
        return int(np.median(self.clock_ns[:, 0] - self.clock_ns[:, 1]))

    @property
    def wall_s(self) -> tuple[float, float]:
        """Begin and end on the wall clock, seconds since 1970."""
        ends = self.samples.before_ns[[0, -1]] + self.wall_offset_ns
        return float(ends[0]) / 1e9, float(ends[1]) / 1e9


class BlockWriter:
    """Appends blocks to a new file, each synced in a thread beside the sampling.

    Args:
        folder: of the record.
        num_columns: counters of a row.

    Raises:
        MeasureError: the file cannot be made.
    """

    def __init__(self, folder: Path, num_columns: int) -> None:
        self.path = folder / SAMPLES_FILE
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        with wrap_os_error(MeasureError, f"write {self.path}"):
            self._descriptor = os.open(self.path, flags, 0o644)
        self._width = num_columns + 2
        self._whole_bytes = 0
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="sync")
        self._last: Future[None] | None = None

    def add(
        self,
        rows: array[int],
        readings: Sequence[tuple[int, int, int]],
        *,
        wall_ns: int,
        monotonic_ns: int,
    ) -> None:
        """Append a block.

        Args:
            rows: time before, time after and the counters, row by row.
            readings: number of the gauge, monotonic time in ns and value.
            wall_ns: wall clock.
            monotonic_ns: monotonic clock at the same moment.

        Raises:
            MeasureError: the disk is full or fails; blocks of before are whole.
        """
        num_rows = len(rows) // self._width
        values = np.array(rows, dtype="<i8").reshape(num_rows, self._width)
        if num_rows:
            values[1:] = np.diff(values, axis=0)
        gauges = np.array(readings, dtype="<i8")
        head = _BLOCK.pack(wall_ns, monotonic_ns, num_rows, len(readings))
        data = zlib.compress(head + values.tobytes() + gauges.tobytes(), _FAST)
        block = _HEADER.pack(_MAGIC, len(data), zlib.crc32(data)) + data
        with wrap_os_error(MeasureError, f"write {self.path}"):
            if self._last is not None:
                self._last.result()
            try:
                if os.write(self._descriptor, block) < len(block):
                    raise OSError(28, os.strerror(28))
            except OSError:
                os.ftruncate(self._descriptor, self._whole_bytes)
                raise
            self._whole_bytes += len(block)
            self._last = self._syncing.submit(os.fsync, self._descriptor)

    def close(self) -> None:
        """Sync and close.

        Raises:
            MeasureError: the disk fails.
        """
        try:
            with wrap_os_error(MeasureError, f"write {self.path}"):
                os.fsync(self._descriptor)
        finally:
            self._syncing.shutdown()
            os.close(self._descriptor)


def write_about(folder: Path, about: RecordAbout) -> None:
    """Write record.json.

    Raises:
        MeasureError: it cannot be written.
    """
    import json

    data = json.dumps(to_dict(about, error=MeasureError), indent=2).encode() + b"\n"
    atomic_write(folder / ABOUT_FILE, data, error=MeasureError)


def is_record(folder: Path) -> bool:
    """Whether a folder is one of `driple record`."""
    return (folder / ABOUT_FILE).is_file() and (folder / SAMPLES_FILE).is_file()


def read_record(folder: Path) -> HostRecord:
    """Read a record up to its last whole block.

    Raises:
        TraceError: no record, a damaged record.json, a newer format, or no whole block with rows.
    """
    about = _read_about(folder)
    try:
        data = read_bytes(folder / SAMPLES_FILE, _MAX_FILE_BYTES)
    except OSError as error:
        raise TraceError(f"cannot read {folder / SAMPLES_FILE}: {error.strerror}") from error
    if len(data) > _MAX_FILE_BYTES:
        raise TraceError(f"{folder / SAMPLES_FILE} has over {_MAX_FILE_BYTES} bytes; record less")
    width = len(about.columns) + 2
    blocks, used = _blocks(data, width, len(about.gauges))
    rows = [block.rows for block in blocks if len(block.rows)]
    if len(data) > used and not blocks:
        raise TraceError(
            f"{folder / SAMPLES_FILE} has no whole block in {len(data)} bytes: it was cut in its "
            "first second, or is damaged; copy it or record again"
        )
    if sum(map(len, rows)) < 2:
        raise TraceError(
            f"{folder} holds {counted(sum(map(len, rows)), 'sample')}, needed are 2 or more; "
            "record longer"
        )
    table = np.concatenate(rows)
    readings = np.concatenate([block.readings for block in blocks])
    if not (np.diff(table[:, 0]) > 0).all() or (table[:, 1] < table[:, 0]).any():
        raise TraceError(f"{folder / SAMPLES_FILE}: times are out of order; record again")
    return HostRecord(
        folder=folder,
        about=about,
        samples=Samples(
            names=about.columns,
            before_ns=table[:, 0],
            after_ns=table[:, 1],
            values=table[:, 2:],
            period_s=about.period_s,
        ),
        gauges={
            name: GaugeReadings(times_ns=mine[:, 1], values=mine[:, 2])
            for number, name in enumerate(about.gauges)
            for mine in (readings[readings[:, 0] == number],)
        },
        marks=tuple(read_marks(folder / STEPS_FOLDER)),
        clock_ns=np.array([[block.wall_ns, block.monotonic_ns] for block in blocks]),
        unread_bytes=len(data) - used,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    wall_ns: int
    monotonic_ns: int
    rows: Int64Array
    readings: Int64Array


def _blocks(data: bytes, width: int, num_gauges: int) -> tuple[list[_Block], int]:
    """The whole blocks at the begin of a file, and how many bytes they take."""
    blocks: list[_Block] = []
    place = num_values = 0
    while len(data) - place >= _HEADER.size and num_values < _MAX_VALUES:
        magic, size, checksum = _HEADER.unpack_from(data, place)
        packed = data[place + _HEADER.size : place + _HEADER.size + size]
        if magic != _MAGIC or len(packed) < size or zlib.crc32(packed) != checksum:
            break
        block = _block(packed, width, num_gauges)
        if block is None:
            break
        blocks.append(block)
        place += _HEADER.size + size
        num_values += block.rows.size
    return blocks, place


def _block(packed: bytes, width: int, num_gauges: int) -> _Block | None:
    """One block; None if its numbers contradict each other."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, _MAX_BLOCK_BYTES)
    except zlib.error:
        return None
    if not unpacker.eof or len(data) < _BLOCK.size:
        return None
    wall_ns, monotonic_ns, num_rows, num_readings = _BLOCK.unpack_from(data)
    if len(data) != _BLOCK.size + 8 * (num_rows * width + num_readings * 3):
        return None
    numbers = np.frombuffer(data, "<i8", offset=_BLOCK.size).astype(np.int64)
    rows = numbers[: num_rows * width].reshape(num_rows, width)
    readings = numbers[num_rows * width :].reshape(num_readings, 3)
    if ((readings[:, 0] < 0) | (readings[:, 0] >= num_gauges)).any():
        return None
    return _Block(
        wall_ns=wall_ns,
        monotonic_ns=monotonic_ns,
        rows=np.cumsum(rows, axis=0),
        readings=readings,
    )


def _read_about(folder: Path) -> RecordAbout:
    file = folder / ABOUT_FILE
    try:
        stored = read_json(file)
    except (FileNotFoundError, NotADirectoryError):
        raise TraceError(
            f"{folder} is no record: it has no {ABOUT_FILE}; give a folder of driple record -o"
        ) from None
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot read {file}: {error}; record again") from error
    number = stored.get("format") if isinstance(stored, dict) else None
    if type(number) is int and number > RECORD_FORMAT:
        raise TraceError(
            f"{file} has format {number}, this Driple reads up to {RECORD_FORMAT}; update Driple"
        )
    about = from_json(RecordAbout, stored, where=str(file), error=TraceError, advice="record again")
    if not 0 < about.period_s <= 3600 or not 0 < about.cores <= 1e6:
        raise TraceError(
            f"{file}: period of {about.period_s} s and {about.cores} cores; both must be above 0 "
            "and no larger than an hour and a million; record again"
        )
    numbers = [name[3:].partition(".")[0] for name in about.gauges if name.startswith("gpu")]
    if any(not n.isdecimal() or int(n) >= len(about.gpus) for n in numbers):
        raise TraceError(f"{file} has readings of a GPU that it does not name; record again")
    if len(about.columns) > _MAX_COLUMNS or len(about.gauges) > _MAX_COLUMNS:
        raise TraceError(f"{file} names over {_MAX_COLUMNS} counters; record again")
    return about
