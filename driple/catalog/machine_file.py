"""A machine as `driple measure --machine` found it: the file that is read and written.

    machine.toml -> read_machine -> MachineFile (host, rows of devices, collectives, copies, loader)
    MachineFile  -> machine_text -> machine.toml

Devices are rows as in a catalogue, so `device.toml` of `driple transfer --from gpu` is read too.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from driple.catalog.fields import TUNING_FACTS, Field, check_field
from driple.catalog.rows import TABLES, Row, parse_content, read_content
from driple.checks import check_number
from driple.codec import Json, to_dict
from driple.errors import ConfigError

__all__ = [
    "COLLECTIVES",
    "Collective",
    "CopyRate",
    "KernelTime",
    "LoaderRate",
    "MachineFacts",
    "MachineFile",
    "MachineHost",
    "MachineProcessor",
    "OpTime",
    "machine_text",
    "read_machine",
]

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "send")
_MOST_ROWS, _MOST_SIZES = 2000, 64
_TEXT, _FLAG, _RATE = Field(kind="text"), Field(kind="flag"), Field(kind="number", above=0)
_US = Field(kind="number", above=0, most=1e6)
_COUNT, _DATE = Field(kind="whole", least=1, most=1e6), Field(kind="date")
_FIELD = "field"
Entry = TypeVar("Entry")


def _stated(rule: Field) -> Any:
    """A field of a table that every file states."""
    return field(metadata={_FIELD: rule})


def _optional(rule: Field) -> Any:
    """A field of a table that may be missing: it was not measured."""
    return field(default=None, metadata={_FIELD: rule})


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFacts:
    """What was measured.

    Attributes:
        cpu: model of the processor.
        cores: that the system shows.
        torch: version of PyTorch.
        date: of the measurement.
        device: name of its GPUs; None without any.
        num_devices: GPUs of a machine.
        busy_cores: cores that other programs used at the worst; 0.5 and more disturb.
        disturbed: whether other load stayed until the end, so that times may be too long.
    """

    cpu: str = _stated(_TEXT)
    cores: int = _stated(_COUNT)
    torch: str = _stated(_TEXT)
    date: datetime.date = field(metadata={_FIELD: _DATE})
    device: str | None = _optional(_TEXT)
    num_devices: int | None = _optional(_COUNT)
    busy_cores: float = _stated(Field(kind="number", least=0, most=1e6))
    disturbed: bool = _stated(_FLAG)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineHost:
    """Seconds of the host, as the simulator counts ops: the median over small programs.

    Attributes:
        us_per_op: to hand an op to a GPU.
        low_us: the same of the program with the quickest ops.
        high_us: of the one with the slowest.
        us_per_tensor: for each trained tensor: its gradient and its part of the update.
        programs: that were timed, training steps and forward passes.
        launch_us: microseconds of a launch that were added, since no GPU was there; None where
            launches were measured.
    """

    us_per_op: float = _stated(_US)
    low_us: float = _stated(_US)
    high_us: float = _stated(_US)
    us_per_tensor: float = _stated(_US)
    programs: int = _stated(_COUNT)
    launch_us: float | None = _optional(_US)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineProcessor:
    """What the cores of a worker reach in training steps of PyTorch, all workers busy.

    Attributes:
        flops_per_s: of large products in single precision.
        bytes_per_s: that ops read and write.
        us_per_op: to start an op.
        threads: of a worker.
        programs: that were timed.
        median_pct: how far the three numbers are off on these programs, in the median.
    """

    flops_per_s: float = _stated(_RATE)
    bytes_per_s: float = _stated(_RATE)
    us_per_op: float = _stated(_US)
    threads: int = _stated(_COUNT)
    programs: int = _stated(_COUNT)
    median_pct: float = _stated(Field(kind="number", least=0, most=1e6))


@dataclass(frozen=True, kw_only=True, slots=True)
class OpTime:
    """What the host takes for one kind of op.

    Attributes:
        kind: such as `linear`.
        forward_us: without gradients.
        training_us: forward and backward.
        autocast_us: forward under autocast, whose casts count; None where the processor has no such
            kernel.
    """

    kind: str = _stated(_TEXT)
    forward_us: float = _stated(_US)
    training_us: float = _stated(_US)
    autocast_us: float | None = _optional(_US)


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelTime:
    """One kernel on a GPU.

    Attributes:
        device: number of the GPU.
        name: such as `product 4096`.
        precision: such as `bf16`.
        seconds: measured.
        predicted_s: by the simulator without this file.
        tflops: that it reached; None for what multiplies nothing.
        gb_per_s: of the bytes that it must move at the least.
    """

    device: int = _stated(Field(kind="whole", least=0, most=4096))
    name: str = _stated(_TEXT)
    precision: str = _stated(_TEXT)
    seconds: float = _stated(_RATE)
    predicted_s: float | None = _optional(_RATE)
    tflops: float | None = _optional(_RATE)
    gb_per_s: float | None = _optional(_RATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyRate:
    """Copies between host and device.

    Attributes:
        device: number of the GPU.
        to_device: whether from the host to the device; else back.
        pinned: whether the host's memory is page-locked.
        bytes_per_s: of 64 MiB.
    """

    device: int = _stated(Field(kind="whole", least=0, most=4096))
    to_device: bool = _stated(_FLAG)
    pinned: bool = _stated(_FLAG)
    bytes_per_s: float = _stated(_RATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderRate:
    """What the user's data loader delivers.

    Attributes:
        workers: processes that load; 0 is the training program itself.
        samples_per_s: of all together.
    """

    workers: int = _stated(Field(kind="whole", least=0, most=4096))
    samples_per_s: float = _stated(_RATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Collective:
    """Times of one collective by the size of its message.

    Attributes:
        collective: one of `COLLECTIVES`.
        backend: `nccl` or `gloo`.
        ranks: processes that took part, one for each device.
        machines: that they were on.
        sizes: bytes of the message, rising; of gather and scatter the whole one.
        seconds: of each.
    """

    collective: str = _stated(_TEXT)
    backend: str = _stated(_TEXT)
    ranks: int = _stated(Field(kind="whole", least=2, most=1e6))
    machines: int = _stated(_COUNT)
    sizes: tuple[float, ...] = _stated(Field(kind="numbers", above=0))
    seconds: tuple[float, ...] = _stated(Field(kind="numbers", above=0))

    @property
    def bytes_per_s(self) -> tuple[float, ...]:
        """Bus bandwidth of each message, as nccl-tests defines it."""
        share = (self.ranks - 1) / self.ranks
        factor = {"all_reduce": 2 * share, "send": 1.0}.get(self.collective, share)
        return tuple(factor * size / s for size, s in zip(self.sizes, self.seconds, strict=True))

    @property
    def sustained_bytes_per_s(self) -> float:
        """Bus bandwidth of the largest message, which no burst of a limited network carries."""
        return self.bytes_per_s[-1]

    @property
    def latency_s(self) -> float:
        """Seconds of the smallest message for each step of a ring."""
        steps = {"all_reduce": 2 * (self.ranks - 1), "send": 2}.get(self.collective, self.ranks - 1)
        return self.seconds[0] / steps


_LISTS: Mapping[str, type] = {
    "ops": OpTime,
    "kernels": KernelTime,
    "copies": CopyRate,
    "collectives": Collective,
    "loader": LoaderRate,
}
_SINGLE: Mapping[str, type] = {
    "machine": MachineFacts,
    "host": MachineHost,
    "processor": MachineProcessor,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFile:
    """All that a machine file states.

    Attributes:
        file: its name, as errors give it.
        rows: of devices, as in a catalogue.
        machine: what was measured; None in a `device.toml`.
        host: None where it was left out.
        processor: None where GPUs compute, or it was left out.
        ops: by kind, for people.
        kernels: of GPUs, for people.
        copies: between host and devices.
        collectives: over the links.
        loader: of the user's data.
    """

    file: str
    rows: tuple[Row, ...] = field(default=(), hash=False)
    machine: MachineFacts | None = None
    host: MachineHost | None = None
    processor: MachineProcessor | None = None
    ops: tuple[OpTime, ...] = ()
    kernels: tuple[KernelTime, ...] = ()
    copies: tuple[CopyRate, ...] = ()
    collectives: tuple[Collective, ...] = ()
    loader: tuple[LoaderRate, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """The JSON object that `driple measure --machine --json` prints."""
        devices = [{"name": row.name, **row.values} for row in self.rows]
        measured: dict[str, object] = {"devices": devices}
        for name in (*_SINGLE, *_LISTS):
            measured[name] = getattr(self, name)
        return to_dict(measured)

    @property
    def tables(self) -> dict[str, list[Row]]:
        """Its rows as those of a catalogue file."""
        return {table: list(self.rows) if table == "devices" else [] for table in TABLES}


def read_machine(path: Path) -> MachineFile:
    """The content of a machine file, or of a `device.toml`.

    Raises:
        ConfigError: it cannot be read, is damaged, or states nothing of a machine.
    """
    content = read_content(path, "machine file")
    file = str(path)
    odd = set(content) - {"format", "devices", *_LISTS, *_SINGLE}
    if odd:
        raise ConfigError(
            f"{file} has an unknown table {sorted(odd)[0]!r}; a machine file is written by driple "
            "measure --machine; devices, links and instances are for driple predict --catalog"
        )
    own = {name: content.pop(name) for name in (*_LISTS, *_SINGLE) if name in content}
    rows = parse_content(content, file, own=True)["devices"]
    for row in rows:
        if row.values.keys().isdisjoint(TUNING_FACTS):
            raise ConfigError(
                f"{file} states nothing measured of {row.name}; copy the file again, or give a "
                "device that you describe yourself to driple predict --catalog"
            )
    if not rows and own.keys().isdisjoint({"host", "processor", "collectives"}):
        raise ConfigError(
            f"{file} states no host, device or link; write it with driple measure --machine -o FILE"
        )
    values: dict[str, Any] = {}
    for name, kind in _SINGLE.items():
        if name in own:
            values[name] = _entry(kind, own[name], f"{file}, [{name}]")
    for name, kind in _LISTS.items():
        values[name] = _entries(kind, own.get(name, []), file, name)
    for each in values["collectives"]:
        _check_collective(each, file)
    return MachineFile(file=file, rows=tuple(rows), **values)


def _entries(kind: type[Entry], given: object, file: str, name: str) -> tuple[Entry, ...]:
    if not isinstance(given, list) or len(given) > _MOST_ROWS:
        raise ConfigError(f"{file}: {name} must be at most {_MOST_ROWS} rows, each [[{name}]]")
    return tuple(_entry(kind, row, f"{file}, row {n} of {name}") for n, row in enumerate(given, 1))


def _entry(kind: type[Entry], given: object, where: str) -> Entry:
    """A table whose fields are those of a dataclass."""
    if not isinstance(given, dict):
        raise ConfigError(f"{where} is not a table of fields, got {given!r:.80}")
    known = {column.name: column for column in fields(cast("Any", kind))}
    odd = sorted(set(given) - set(known))
    lacking = [name for name, one in known.items() if name not in given and one.default is not None]
    if odd or lacking:
        what = f"an unknown field {odd[0]!r}" if odd else f"no {', '.join(lacking)}"
        raise ConfigError(
            f"{where} has {what}; copy the file again, or write it anew with driple measure "
            "--machine"
        )
    values = {}
    for name, value in given.items():
        rule: Field = known[name].metadata[_FIELD]
        if rule.kind == "numbers":
            values[name] = _numbers(name, value, where)
        else:
            check_field(rule, name, value, where)
            values[name] = value
    return kind(**values)


def _numbers(name: str, value: object, where: str) -> tuple[float, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_SIZES:
        raise ConfigError(f"{name} of {where} must be 1 to {_MOST_SIZES} numbers")
    for number in value:
        check_number(f"a number in {name} of {where}", number, above=0, most=1e18)
    return tuple(float(number) for number in value)


def _check_collective(each: Collective, file: str) -> None:
    if each.collective not in COLLECTIVES or len(each.sizes) != len(each.seconds):
        raise ConfigError(
            f"{file}: collectives need one of {', '.join(COLLECTIVES)} and as many seconds as "
            f"sizes, got {each.collective!r} with {len(each.sizes)} and {len(each.seconds)}"
        )


def machine_text(machine: MachineFile, comments: Sequence[str] = ()) -> str:
    """The TOML text that `read_machine` reads.

    Args:
        machine: what is written; rows of devices by their values.
        comments: lines for people at the head.
    """
    lines = [f"# {line}" for line in comments] + ["format = 1"]
    for name in _SINGLE:
        entry = getattr(machine, name)
        if entry is not None:
            lines += ["", f"[{name}]", *_values(_pairs(entry))]
    for row in machine.rows:
        lines += ["", "[[devices]]", *_values([("name", row.name), *row.values.items()])]
    for name in _LISTS:
        for entry in getattr(machine, name):
            lines += ["", f"[[{name}]]", *_values(_pairs(entry))]
    return "\n".join(lines) + "\n"


def _pairs(entry: Any) -> list[tuple[str, object]]:
    return [(column.name, getattr(entry, column.name)) for column in fields(entry)]


def _values(pairs: Iterable[tuple[str, object]]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in pairs if value is not None]


def _toml(value: object) -> str:
    """A value of TOML; four significant digits, which no measurement here exceeds."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.4e}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(part) for part in value)}]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
