"""Published steps of PyTorch and other frameworks, as cleaned and labelled rows.

    datasets/published/pytorch_rows.csv.gz, pytorch_forward.csv.gz -> PublishedRow, ...

A row is one measured training step (or forward pass) with the JOB that Driple takes, the options of
that job, and the cluster that it ran on. A row that no fit and no check can use stays in the table
and says why (`unused_why`). `scripts/make_published_rows.py` makes the tables.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, get_type_hints

from driple.catalog import find_device, find_link
from driple.checks import check_choice, check_number, check_whole
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.schemes.registry import replica_schemes

__all__ = [
    "COLUMNS",
    "DATA",
    "FORWARD_FILE",
    "NUM_FOLDS",
    "PEAK_MEMORY_KINDS",
    "ROW_OPTIMIZERS",
    "ROW_PRECISIONS",
    "ROW_SCHEMES",
    "TRAINING_FILE",
    "PublishedRow",
    "read_packed_table",
    "read_published_rows",
    "row_weights",
    "write_packed_table",
    "write_published_rows",
]

_Row = TypeVar("_Row")

TRAINING_FILE = "pytorch_rows.csv.gz"
FORWARD_FILE = "pytorch_forward.csv.gz"
NUM_FOLDS = 10

# Driple's precisions, and those that it does not simulate (the rows of these are unused).
_SIMULATED = ("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16")
ROW_PRECISIONS = (*_SIMULATED, "fp8", "fp4", "")
ROW_SCHEMES = ("none", *replica_schemes(), "tp", "pp", "tp+pp")
ROW_OPTIMIZERS = (
    "sgd", "momentum", "momentum-fused", "adam", "adam-fused", "adamw", "adamw-fused", "rmsprop",
    "lamb", "lars", "lion", "novograd", "none", "",
)  # fmt: skip
_NEAREST_OPTIMIZER = MappingProxyType({
    "lamb": "adamw", "lars": "momentum", "novograd": "adam",
    "none": "",
})  # fmt: skip
PEAK_MEMORY_KINDS = ("", "allocated", "reserved", "device")
DATA = ("", "synthetic", "real")
_CHECKPOINTING = ("none", "full", "selective")
_TASKS = ("train", "forward")
_MOST_DEVICES = 100_000
_LONGEST_S = 3600.0
_MOST_BYTES, _MOST_PACKED_BYTES = 256 << 20, 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRow:
    """One published measurement.

    Attributes:
        id: of the row, unique in its table.
        source: who published it.
        source_file: where it stands in that source.
        date: as the source states it; empty if it does not.
        framework: as the source states it.
        library: generation of the framework, such as `torch1.12` or `ngc22.09`.
        device: by its name in the catalogue; empty if the catalogue has none.
        devices: number of devices.
        per_machine: devices of a machine.
        link_within: catalogue's name of the link within a machine; empty if not known.
        link_between: name of the link of a machine to the others; empty if not known.
        scheme: one of `ROW_SCHEMES`; `tp` and `pp` are tensor and pipeline parallelism.
        dp: data-parallel replicas.
        tp: devices of a tensor-parallel group.
        pp: stages of a pipeline.
        cp: devices that share a sequence.
        ep: devices that share the experts of a layer.
        model: as the source writes it.
        family: of models that are held out together.
        fold: 0 to 9, of the family; None while a table is made.
        job: JOB as Driple takes it, `timm:NAME` or `own:NAME`; empty if none can be built.
        task: `train` (forward, backward and update) or `forward`.
        batch: samples of a device in a forward pass.
        size: tokens of a sample, or side of a square image; None for the job's usual size.
        precision: one of `ROW_PRECISIONS`.
        optimizer: one of `ROW_OPTIMIZERS`; empty if not known.
        grad_accumulation: forward and backward passes of a step.
        activation_checkpointing: `none`, `full` or `selective`.
        compiled: compiled by `torch.compile`.
        channels_last: images are stored with their channels last.
        implementation: words on the kernels: `apex-o2`, `flash`, `cuda-graphs`, `te`, `xla`.
        data: `synthetic` or `real` input; empty if not known.
        step_s: seconds of an optimizer step, or of a forward pass.
        peak_mem_gib: largest memory of a device, GiB.
        peak_mem_kind: `allocated` and `reserved` by PyTorch, or `device` (with context, by NVML).
        util_pct: mean utilisation of the devices by NVML, percent.
        unused_why: why no fit and no check can use the row; empty if they can.

    Raises:
        ConfigError: a value that none of these can be, or that a usable row lacks.
    """

    id: str
    source: str
    source_file: str = ""
    date: str = ""
    framework: str = ""
    library: str = ""
    device: str = ""
    devices: int = 1
    per_machine: int = 1
    link_within: str = ""
    link_between: str = ""
    scheme: str = "none"
    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    model: str = ""
    family: str = ""
    fold: int | None = None
    job: str = ""
    task: str = "train"
    batch: int | None = None
    size: int | None = None
    precision: str = ""
    optimizer: str = ""
    grad_accumulation: int = 1
    activation_checkpointing: str = "none"
    compiled: bool = False
    channels_last: bool = False
    implementation: str = ""
    data: str = ""
    step_s: float | None = None
    peak_mem_gib: float | None = None
    peak_mem_kind: str = ""
    util_pct: float | None = None
    unused_why: str = ""

    def __post_init__(self) -> None:
        for name, choices in (
            ("scheme", ROW_SCHEMES),
            ("task", _TASKS),
            ("precision", ROW_PRECISIONS),
            ("optimizer", ROW_OPTIMIZERS),
            ("activation_checkpointing", _CHECKPOINTING),
            ("data", DATA),
            ("peak_mem_kind", PEAK_MEMORY_KINDS),
        ):
            check_choice(name, getattr(self, name), choices)
        for name in ("devices", "per_machine", "dp", "tp", "pp", "cp", "ep", "grad_accumulation"):
            check_whole(name, getattr(self, name), 1, _MOST_DEVICES)
        for name, most in (("batch", 10**9), ("size", 10**7)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1, most)
        if self.fold is not None:
            check_whole("fold", self.fold, 0, NUM_FOLDS - 1)
        for name, bound in (("step_s", _LONGEST_S), ("peak_mem_gib", 1e4), ("util_pct", 100.0)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0 if name == "step_s" else -1e-9,
                             most=bound)  # fmt: skip
        if not self.id or not self.source:
            raise ConfigError("id and source must not be empty")
        if self.device and find_device(self.device) is None:
            raise ConfigError(f"device {self.device!r} is not in the catalogue (driple devices)")
        for name in ("link_within", "link_between"):
            if getattr(self, name) and find_link(getattr(self, name)) is None:
                raise ConfigError(f"{name} {getattr(self, name)!r} is no link of the catalogue")
        if self.usable:
            self._check_usable()

    def _check_usable(self) -> None:
        needed = ("device", "job", "family", "batch", "precision", "step_s", "library")
        lacking = [name for name in needed if getattr(self, name) in ("", None)]
        if lacking:
            raise ConfigError(f"{', '.join(lacking)} must be given, or unused_why say why not")
        if self.precision not in _SIMULATED:
            raise ConfigError(f"precision of a usable row must be simulated, got {self.precision}")
        groups = self.dp * self.tp * self.pp * self.cp
        if groups != self.devices:
            raise ConfigError(f"dp x tp x pp x cp must be devices {self.devices}, got {groups}")
        if (self.scheme == "none") != (self.devices == 1):
            raise ConfigError(f"scheme {self.scheme} does not go with {self.devices} devices")
        if self.devices % self.per_machine and self.devices > self.per_machine:
            raise ConfigError(f"{self.devices} devices do not fill machines of {self.per_machine}")

    @property
    def usable(self) -> bool:
        """Whether a fit or a check can use the row."""
        return not self.unused_why

    @property
    def job_optimizer(self) -> str:
        """The nearest of Driple's optimizers; empty without an update, or if it is not known."""
        return _NEAREST_OPTIMIZER.get(self.optimizer, self.optimizer)

    @property
    def machine_type(self) -> tuple[str, int, int, str, str]:
        """Device, number of devices, devices of a machine, and both links."""
        return (self.device, self.devices, self.per_machine, self.link_within, self.link_between)

    @property
    def samples_per_step(self) -> int:
        """Samples of all devices in an optimizer step.

        Raises:
            ConfigError: the batch size is not known.
        """
        if self.batch is None:
            raise ConfigError(f"row {self.id} has no batch size")
        return self.batch * self.dp * self.grad_accumulation


COLUMNS: tuple[str, ...] = tuple(item.name for item in fields(PublishedRow))


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{text!r} is neither 0 nor 1")
    return text == "1"


_PARSERS: dict[object, Callable[[str], object]] = {
    str: str,
    int: int,
    bool: _flag,
    int | None: lambda text: int(text) if text else None,
    float | None: lambda text: float(text) if text else None,
}


def read_published_rows(file: Path, *, usable_only: bool = False) -> list[PublishedRow]:
    """The rows of a table, in its order.

    Args:
        file: `pytorch_rows.csv.gz`, `pytorch_forward.csv.gz`, or a table of the same columns;
            compressed if its name ends in `.gz`.
        usable_only: leave out the rows that say why they are unused.

    Raises:
        ConfigError: the file cannot be read, lacks a column, or holds a row that cannot be.
    """
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError(f"{file} holds more than {_MOST_BYTES >> 20} MiB of rows")
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise ConfigError(f"cannot read the rows of {file}: {error}") from error
    if not lines or set(lines[0]) != set(COLUMNS) or len(lines[0]) != len(COLUMNS):
        wrong = sorted(set(lines[0] if lines else ()) ^ set(COLUMNS))
        raise ConfigError(
            f"{file} must have one line of column names, {len(COLUMNS)} of them; "
            f"missing, unknown or twice: {', '.join(wrong) or 'a repeated name'}"
        )
    hints = get_type_hints(PublishedRow)
    parsers = [(name, _PARSERS[hints[name]]) for name in lines[0]]
    rows = [_parsed(file, number, parsers, line) for number, line in enumerate(lines[1:], 2)]
    seen = Counter(row.id for row in rows)
    twice = [name for name, count in seen.items() if count > 1]
    if twice:
        raise ConfigError(f"{file} has the id {twice[0]} {seen[twice[0]]} times; ids are unique")
    return [row for row in rows if row.usable] if usable_only else rows


def _parsed(
    file: Path,
    number: int,
    parsers: Sequence[tuple[str, Callable[[str], object]]],
    line: Sequence[str],
) -> PublishedRow:
    if len(line) != len(parsers):
        raise ConfigError(f"{file}, line {number} has {len(line)} cells, needs {len(parsers)}")
    values: dict[str, object] = {}
    for (name, parse), text in zip(parsers, line, strict=True):
        try:
            values[name] = parse(text)
        except ValueError as error:
            raise ConfigError(f"{file}, line {number}, column {name}: {error}") from error
    try:
        row = PublishedRow(**values)  # type: ignore[arg-type]  # parsed by the types of the fields
        if row.usable and row.fold is None:
            raise ConfigError("fold must be given, or unused_why say why not")
        return row
    except ConfigError as error:
        raise ConfigError(f"{file}, line {number}: {error}") from error


def write_published_rows(file: Path, rows: Iterable[PublishedRow]) -> None:
    """Write a table that `read_published_rows` reads; the same rows give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_packed_table(file, COLUMNS, rows)


def read_packed_table(
    file: Path, columns: Sequence[str], row_of: Callable[[dict[str, str]], _Row], *, words: str
) -> list[_Row]:
    """Rows of a table that `write_packed_table` wrote.

    Args:
        file: to read.
        columns: names that the table must have.
        row_of: makes a row of the cells by column; raises ValueError or ConfigError.
        words: kind of the rows, for errors.

    Raises:
        ConfigError: it cannot be read, is too large, or has wrong columns or cells.
    """
    try:
        with gzip.open(file, "rb") as stream:
            content = stream.read(_MOST_PACKED_BYTES + 1)
        if len(content) > _MOST_PACKED_BYTES:
            raise ConfigError(f"{file} holds more than {_MOST_PACKED_BYTES >> 20} MiB of rows")
        lines = list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise ConfigError(f"cannot read the {words} of {file}: {error}") from error
    found = []
    for number, line in enumerate(lines, 2):
        if set(line) != set(columns):
            raise ConfigError(f"{file} must have the columns {', '.join(columns)}")
        try:
            found.append(row_of(line))
        except (ValueError, ConfigError) as error:
            raise ConfigError(f"{file}, line {number}: {error}") from error
    return found


def write_packed_table(file: Path, columns: Sequence[str], rows: Iterable[object]) -> None:
    """Write attributes of rows as a packed table; the same rows give the same bytes.

    Args:
        file: to write.
        columns: names of the attributes.
        rows: that have them.

    Raises:
        ConfigError: the file cannot be written.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(getattr(row, name)) for name in columns] for row in rows)
    packed = gzip.compress(stream.getvalue().encode("utf-8"), compresslevel=9, mtime=0)
    atomic_write(file, packed, error=ConfigError)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def row_weights(rows: Sequence[PublishedRow]) -> list[float]:
    """A weight of each row, by model family and machine type.

    All rows of a family on one machine type weigh 1 together, so that neither a family of many
    sizes nor a machine that a source lists many times outweighs the others. Within, each job (with
    its options and scheme) weighs the same; its repetitions on identical machines share its weight.
    """
    cells = [(row.family, row.machine_type) for row in rows]
    jobs = [
        (row.job, row.task, row.batch, row.size, row.precision, row.grad_accumulation,
         row.activation_checkpointing, row.compiled, row.channels_last, row.scheme, row.library)
        for row in rows
    ]  # fmt: skip
    in_cell: dict[object, Counter[object]] = defaultdict(Counter)
    for cell, job in zip(cells, jobs, strict=True):
        in_cell[cell][job] += 1
    return [
        1.0 / (len(in_cell[cell]) * in_cell[cell][job])
        for cell, job in zip(cells, jobs, strict=True)
    ]
