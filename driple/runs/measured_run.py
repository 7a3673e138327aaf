"""The record of a measured run: what was trained, where, and what was measured.

Published tables, our own measurements and users' tables all become `MeasuredRun`. A table that has
more to tell has a subclass that adds its own facts and nothing else. Options of the job have the
names of `driple.jobs.load.JobOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import nan, prod
from typing import TypeVar
from zlib import crc32

from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError
from driple.runs.step_key import attention_of
from driple.schemes.registry import scheme_named

__all__ = [
    "ALL_REDUCE",
    "FOLDS",
    "TASKS",
    "MeasuredRun",
    "family_of_job",
    "fold_of",
    "full_setting_name",
    "unique_ids",
]

_Run = TypeVar("_Run", bound="MeasuredRun")

TASKS = ("train", "forward")
ALL_REDUCE = "ddp"  # how tables name a group of runs, whose scheme may have another name
_GROUP_OF = {"servers": "servers", "ring": ALL_REDUCE}  # by kind of runs that a scheme is like
FOLDS = 10
_SEVERAL = 2  # devices, so that a scheme is not that of one device alone


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRun:
    """One measured run; a fact that nobody stated has its default.

    Attributes:
        id: unique in its table.
        source: who measured it.
        job: as on the command line, such as `timm:resnet50`.
        setting: full name of the cluster and the scheme; empty where no setting has a name for it.
        family: of models that are held out together.
        task: `train`, or `forward` for a forward pass alone.
        framework: `pytorch`, `tensorflow`, ...
        library: generation of the framework, such as `torch2.1`; empty for the present one.
        domain: `vision`, `language`, ...; empty if it is not stated.
        precision: as `--precision`; empty if it is not stated.
        batch_size: samples of each device in one pass; None if the job has its own.
        seq_len: tokens of a sample; None if the job has its own.
        input_shape: one sample, such as (3, 224, 224); None if the job has its own.
        optimizer: as `--optimizer`; empty if the job has its own.
        grad_accumulation: passes of an update.
        activation_checkpointing: as `--activation-checkpointing`; empty if the job has its own.
        compiled: whether a compiler, or kernels written by hand, fused the ops.
        cuda_graphs: whether the fused step is replayed as CUDA graphs.
        channels_last: whether images are stored with their channels last.
        step_s: seconds of a step, or of a forward pass; NaN where it was not timed.
        utilisation_pct: mean utilisation of the devices by NVML, percent; NaN where it was not
            watched.
        allocated_bytes: largest bytes of tensors on a device, by PyTorch; None if not stated.
        reserved_bytes: largest bytes that PyTorch's allocator held.
        device_bytes: largest memory of a device in use by NVML, the driver's included.
        weight: of the run among those of its family on its setting.
        where: file and line of its table; empty for a run that is not of one.
    """

    id: str = ""
    source: str = ""
    job: str = ""
    setting: str = ""
    family: str = ""
    task: str = "train"
    framework: str = "pytorch"
    library: str = ""
    domain: str = ""
    precision: str = ""
    batch_size: int | None = None
    seq_len: int | None = None
    input_shape: tuple[int, ...] | None = None
    optimizer: str = ""
    grad_accumulation: int = 1
    activation_checkpointing: str = ""
    compiled: bool = False
    cuda_graphs: bool = False
    channels_last: bool = False
    step_s: float = nan
    utilisation_pct: float = nan
    allocated_bytes: float | None = None
    reserved_bytes: float | None = None
    device_bytes: float | None = None
    weight: float = 1.0
    where: str = field(default="", compare=False)

    @property
    def named(self) -> str:
        """How errors name it: file and line of its table, else its id."""
        return self.where or f"row {self.id}"

    @property
    def device(self) -> str:
        """Name of the workers' device."""
        return _setting(self.setting).device

    @property
    def num_devices(self) -> int:
        """Workers of the setting."""
        return _setting(self.setting).num_workers

    @property
    def num_machines(self) -> int:
        """Machines that hold the workers."""
        return _num_machines(self.setting)

    @property
    def scheme(self) -> str:
        """How the work is distributed, such as `single` or `ddp`."""
        return _scheme(self.setting)

    @property
    def samples(self) -> int:
        """Samples of a step on all devices."""
        return prod((self.batch_size or 1, self.num_devices, self.grad_accumulation))

    @property
    def step_key(self) -> tuple[object, ...]:
        """What decides the step of one device: runs of one key have one graph."""
        return (
            self.job, self.task, self.framework, self.library, self.precision, self.compiled,
            self.cuda_graphs, self.channels_last, self.batch_size, self.seq_len, self.input_shape,
            self.optimizer, self.grad_accumulation, self.activation_checkpointing, self.capability,
        )  # fmt: skip

    @property
    def capability(self) -> int:
        """Of the device, for the kernels that a PyTorch model has on it; see `StepKey`."""
        return attention_of(self.job, self.library, device_named(self.device).architecture.name)

    @property
    def machine_type(self) -> tuple[str, int, int, str]:
        """Runs on one machine type weigh together as much as those on another."""
        return self.device, self.num_devices, self.num_machines, self.scheme


@cache
def _setting(name: str) -> Setting:
    return Setting.parse(name)


@cache
def _num_machines(name: str) -> int:
    return topology_of(_setting(name)).num_machines


@cache
def _scheme(name: str) -> str:
    setting = _setting(name)
    kind = scheme_named(setting.scheme.name).runs_like(_SEVERAL).times
    scheme = _GROUP_OF.get(kind, "sharded")
    return "single" if setting.num_workers == 1 and scheme != "servers" else scheme


@cache
def full_setting_name(text: str) -> str:
    """Full name of a setting whose machines are known.

    Raises:
        SettingError: no such setting, or one whose machines are not known.
        ConfigError: the text is empty.
        CatalogError: the catalogue lacks a fact about the device.
    """
    if not text:
        raise ConfigError("the cell is empty; name a cluster, such as 1xA100 or 4x8xH100")
    setting = Setting.parse(text)
    topology_of(setting)
    return setting.name


def unique_ids(runs: Sequence[_Run], where: str) -> list[_Run]:
    """The runs, if no two have one id.

    Raises:
        ConfigError: two have.
    """
    seen: set[str] = set()
    for run in runs:
        if run.id in seen:
            raise ConfigError(f"{where}: two rows have the id {run.id}; give each its own")
        seen.add(run.id)
    return list(runs)


def fold_of(family: str, folds: Mapping[str, int] | None = None) -> int:
    """Fold in which a family is held out: of the file, or fixed by its name if it is not there."""
    known = None if folds is None else folds.get(family)
    return crc32(family.encode()) % FOLDS if known is None else known


def family_of_job(job: str) -> str:
    """Family of a job that a table gives none: the name up to the first digit, `_`, `-` or `.`."""
    name = job.partition(":")[2] or job
    name = name.rpartition("/")[2].lower()
    end = next((i for i, c in enumerate(name) if i and (c.isdigit() or c in "_-.")), len(name))
    return name[:end]
