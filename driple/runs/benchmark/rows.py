"""Rows of the benchmark: a job, a setting, and the seconds that one step of it took.

FILE.csv --read_rows--> BenchmarkRow, BenchmarkRow, ...

Needed are the columns `job`, `setting` and `seconds`; the others of `COLUMNS` may be there. Further
ones are not read, which a remark says; one that is called almost as one of these is refused. A job
is named as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path
from zlib import crc32

from driple.runs.benchmark.tables import Line, ignored_columns, read_table
from driple.runs.step_key import attention_of
from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import CatalogError, ConfigError, SettingError
from driple.schemes.registry import scheme_named
from driple.simulate.gpu_kernels import LIBRARIES

__all__ = [
    "ALL_REDUCE",
    "COLUMNS",
    "MODES",
    "SCHEMES",
    "BenchmarkRow",
    "Place",
    "at_setting",
    "family_of_job",
    "fold_of",
    "place_of",
    "read_rows",
    "unique_ids",
]

COLUMNS = (
    "id", "job", "setting", "seconds", "family", "source", "mode", "framework", "library",
    "precision", "compiled", "domain", "layout", "batch_size", "seq_len", "input", "optimizer",
    "grad_accumulation", "activation_checkpointing", "weight",
)  # fmt: skip
MODES = ("train", "forward")
ALL_REDUCE = "ddp"  # how tables name a group of rows, whose scheme may have another name
# How the work is distributed, as tables group it.
SCHEMES = {
    "single": "one device",
    ALL_REDUCE: "all-reduce",
    "sharded": "sharded (ZeRO, FSDP)",
    "servers": "parameter servers",
}
_GROUP_OF = {"servers": "servers", "ring": ALL_REDUCE}  # by kind of runs that a scheme is like
_PRECISIONS = (
    "fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16", "fp8", "amp-fp8", "half", "",
)  # fmt: skip
FOLDS = 10
_SEVERAL = 2  # devices, so that a scheme is not that of one device alone


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRow:
    """One measured step.

    Attributes:
        row_id: a name of its own in the table.
        job: as on the command line, such as `timm:resnet50`.
        setting: full name of the cluster and the scheme.
        seconds: measured.
        family: of models that are held out together.
        source: who measured it.
        mode: `train`, or `forward` of a forward pass alone.
        framework: `pytorch`, `tensorflow`, ...
        library: generation of the framework, one of `LIBRARIES`; empty for the present one.
        domain: `vision`, `language`, ...; empty if it is not stated.
        precision: as of a job; empty if it is not stated.
        compiled: whether a compiler fused the ops.
        layout: of images, `channels_last` or `nchw`; empty if it is not stated.
        batch_size: samples of each device in one pass; None if the job has its own.
        seq_len: tokens of a sample; None if the job has its own.
        input_shape: one sample, such as (3, 224, 224); None if the job has its own.
        optimizer: empty if the job has its own.
        grad_accumulation: passes of an update.
        activation_checkpointing: empty if the job has its own.
        weight: of the row among those of its family on its setting.
        device: of the setting.
        num_devices: of the setting.
        num_machines: of the setting.
        scheme: one of `SCHEMES`.
        where: file and line of its table; empty for a row that is not of one.
    """

    row_id: str
    job: str
    setting: str
    seconds: float
    family: str
    source: str
    mode: str
    framework: str
    library: str
    domain: str
    precision: str
    compiled: bool
    layout: str
    batch_size: int | None
    seq_len: int | None
    input_shape: tuple[int, ...] | None
    optimizer: str
    grad_accumulation: int
    activation_checkpointing: str
    weight: float
    device: str
    num_devices: int
    num_machines: int
    scheme: str
    where: str = field(default="", compare=False)

    @property
    def named(self) -> str:
        """How errors name it: file and line of its table, else its id."""
        return self.where or f"row {self.row_id}"

    @property
    def seconds_per_sample(self) -> float:
        """Measured seconds of one sample, by which configurations of a model are ranked."""
        return self.seconds / self.samples

    @property
    def samples(self) -> int:
        """Samples of a step on all devices."""
        return prod((self.batch_size or 1, self.num_devices, self.grad_accumulation))

    @property
    def step_key(self) -> tuple[object, ...]:
        """What decides the step of one device: rows of one key have one graph."""
        return (
            self.job, self.mode, self.framework, self.library, self.precision,
            self.compiled, self.layout, self.batch_size, self.seq_len, self.input_shape,
            self.optimizer, self.grad_accumulation, self.activation_checkpointing, self.capability,
        )  # fmt: skip

    @property
    def capability(self) -> int:
        """Of the device, for the kernels that a PyTorch model has on it; see `StepKey`."""
        return attention_of(self.job, self.library, device_named(self.device).architecture.name)

    @property
    def machine_type(self) -> tuple[str, int, int, str]:
        """Rows of one machine type weigh together as much as those of another."""
        return self.device, self.num_devices, self.num_machines, self.scheme


def read_rows(file: Path, remark: Callable[[str], None] = lambda _: None) -> list[BenchmarkRow]:
    """The rows of a table.

    Args:
        file: of the table.
        remark: called with a sentence on columns that are not read, if there are any.

    Raises:
        ConfigError: the table, or a cell of it, is not as described, or a column is called almost
            as one that is read; the message names the line and the column.
    """
    lines = read_table(file, ("job", "setting", "seconds"))
    ignored = ignored_columns(lines, COLUMNS, ("device",))
    if ignored:
        remark(ignored)
    return unique_ids([_row(line) for line in lines], str(file))


def unique_ids(rows: Sequence[BenchmarkRow], where: str) -> list[BenchmarkRow]:
    """The rows, if no two have one id.

    Raises:
        ConfigError: two have.
    """
    seen: set[str] = set()
    for row in rows:
        if row.row_id in seen:
            raise ConfigError(f"{where}: two rows have the id {row.row_id}; give each its own")
        seen.add(row.row_id)
    return list(rows)


def fold_of(family: str, folds: Mapping[str, int] | None = None) -> int:
    """Fold in which a family is held out: of the file, or fixed by its name if it is not there."""
    known = None if folds is None else folds.get(family)
    return crc32(family.encode()) % FOLDS if known is None else known


def _row(line: Line) -> BenchmarkRow:
    job = line.text("job")
    if not job:
        raise line.error("job", "the cell is empty; name a job as on the command line")
    place = line.text("setting")
    try:
        known = place_of(place)
    except (SettingError, CatalogError, ConfigError) as error:
        raise line.error("setting", str(error)) from error
    row = BenchmarkRow(
        row_id=line.text("id", str(line.number)),
        job=job,
        setting=known.name,
        seconds=line.number_of("seconds"),
        family=line.text("family", family_of_job(job)),
        source=line.text("source", "given"),
        mode=line.choice("mode", MODES, "train"),
        framework=line.text("framework", "pytorch"),
        library=line.choice("library", ("", *LIBRARIES), ""),
        domain=line.text("domain"),
        precision=line.choice("precision", _PRECISIONS, ""),
        compiled=line.is_set("compiled"),
        layout=line.choice("layout", ("", "nchw", "channels_last"), ""),
        batch_size=line.whole("batch_size"),
        seq_len=line.whole("seq_len"),
        input_shape=_shape(line),
        optimizer=line.text("optimizer"),
        grad_accumulation=line.whole("grad_accumulation") or 1,
        activation_checkpointing=line.text("activation_checkpointing"),
        weight=line.number_of("weight", 1.0),
        device=known.device,
        num_devices=known.num_devices,
        num_machines=known.num_machines,
        scheme=known.scheme,
        where=f"{line.where} ({line.text('id')})" if line.text("id") else line.where,
    )
    given = line.text("device")
    if given and given != row.device:
        raise line.error("device", f"is {given[:40]!r}, the setting {place} has a {row.device}")
    return row


def family_of_job(job: str) -> str:
    """Family of a job that a table gives none: the name up to the first digit, `_`, `-` or `.`."""
    name = job.partition(":")[2] or job
    name = name.rpartition("/")[2].lower()
    end = next((i for i, c in enumerate(name) if i and (c.isdigit() or c in "_-.")), len(name))
    return name[:end]


def _shape(line: Line) -> tuple[int, ...] | None:
    text = line.text("input")
    if not text:
        return None
    try:
        shape = tuple(int(side) for side in text.replace("x", ",").split(","))
    except ValueError:
        shape = (0,)
    if any(side < 1 for side in shape):
        raise line.error("input", f"needs a shape of one sample such as 3,224,224, got {text[:40]}")
    return shape


@dataclass(frozen=True, slots=True)
class Place:
    """What of a setting decides the group of a row.

    Attributes:
        name: full name of the setting.
        device: of its workers.
        num_devices: all of them.
        num_machines: that hold them.
        scheme: one of `SCHEMES`.
    """

    name: str
    device: str
    num_devices: int
    num_machines: int
    scheme: str


@cache
def place_of(text: str) -> Place:
    """The place that a setting's name stands for.

    Raises:
        SettingError: no such setting, or one whose machines are not known.
        ConfigError: the name is empty.
        CatalogError: the catalogue lacks a fact about the device.
    """
    if not text:
        raise ConfigError("the cell is empty; name a cluster, such as 1xA100 or 4x8xH100")
    setting = Setting.parse(text)
    kind = scheme_named(setting.scheme.name).runs_like(_SEVERAL).times
    scheme = _GROUP_OF.get(kind, "sharded")
    if setting.num_workers == 1 and scheme != "servers":
        scheme = "single"
    topology = topology_of(setting)
    return Place(setting.name, setting.device, setting.num_workers, topology.num_machines, scheme)


def at_setting(row: BenchmarkRow, text: str) -> BenchmarkRow:
    """The row on another setting.

    Raises:
        SettingError: no such setting.
    """
    known = place_of(text)
    return replace(
        row,
        setting=known.name,
        device=known.device,
        num_devices=known.num_devices,
        num_machines=known.num_machines,
        scheme=known.scheme,
    )
