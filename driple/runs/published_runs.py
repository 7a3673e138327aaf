"""Published steps of PyTorch and other frameworks, cleaned and labelled, and as users ask for them.

    pytorch_rows.csv.gz, pytorch_forward.csv.gz --read_published--> PublishedRun, ...
    PublishedRun, ... --as_asked--> MeasuredRun, ... on settings that have a name

A published run is one training step (or forward pass) with the JOB that Driple takes, the options
of that job, and the cluster that it ran on. A run that no fit and no check can use stays in the
table and says why (`unused_why`). `scripts/published/pytorch_rows.py` makes the tables.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from types import MappingProxyType

from driple.catalog import find_device, find_link
from driple.checks import check_choice, check_number, check_whole
from driple.cluster.schemes import SchemeChoice
from driple.errors import CatalogError, ConfigError, SettingError
from driple.graph.low_precision import LOW_PRECISIONS
from driple.runs.measured_run import FOLDS, TASKS, MeasuredRun, full_setting_name, unique_ids
from driple.runs.tables import PUBLISHED, read_records
from driple.schemes.registry import replica_schemes

__all__ = [
    "FACTS",
    "FORWARD_FILE",
    "PRECISIONS",
    "TRAINING_FILE",
    "PublishedRun",
    "as_asked",
    "library_of",
    "on_setting",
    "read_published",
    "setting_name",
]

TRAINING_FILE = "pytorch_rows.csv.gz"
FORWARD_FILE = "pytorch_forward.csv.gz"
# Facts of both tables, in the order of their columns.
FACTS = (
    "id", "source", "source_file", "date", "framework", "library", "device", "num_devices",
    "per_machine", "link_within", "link_between", "scheme", "dp", "tp", "pp", "cp", "ep", "model",
    "family", "fold", "job", "task", "batch_size", "size", "precision", "optimizer",
    "grad_accumulation", "activation_checkpointing", "compiled", "channels_last", "implementation",
    "data", "step_s", "peak_mem_gib", "peak_mem_kind", "utilisation_pct", "unused_why",
)  # fmt: skip

# Driple's precisions; rows in 8 and 4 bits are in no fit (`scripts.checks.low_rows` predicts them).
_SIMULATED = ("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16")
PRECISIONS = (*_SIMULATED, *LOW_PRECISIONS, "fp4", "")
_SCHEMES = ("none", *replica_schemes(), "tp", "pp", "tp+pp")
_OPTIMIZERS = (
    "sgd", "momentum", "momentum-fused", "adam", "adam-fused", "adamw", "adamw-fused", "rmsprop",
    "lamb", "lars", "lion", "novograd", "none", "",
)  # fmt: skip
_NEAREST_OPTIMIZER = MappingProxyType({
    "lamb": "adamw", "lars": "momentum", "novograd": "adam",
    "none": "",
})  # fmt: skip
_PEAK_MEMORY_KINDS = ("", "allocated", "reserved", "device")
_DATA = ("", "synthetic", "real")
_CHECKPOINTING = ("none", "full", "selective")
_MOST_DEVICES = 100_000
_LONGEST_S = 3600.0
_PLAIN = ("none", SchemeChoice.usual().name)
# The first releases of later generations, of NVIDIA's containers and of PyTorch itself.
_GENERATIONS = (
    ("torch2", (25, 5), (2, 8)), ("torch2.7", (23, 10), (2, 2)), ("torch2.1", (23, 1), (2, 0)),
    ("torch1", (0, 0), (0, 0)),
)  # fmt: skip
_NGC, _TORCH = re.compile(r"ngc(\d+)\.(\d+)"), re.compile(r"torch(\d+)\.(\d+)")
_VISION = frozenset({
    "ssd300", "ssd", "maskrcnn", "retinanet", "unet", "stable-diffusion", "vit", "insightface",
})  # fmt: skip
_SPEECH = frozenset({"tacotron2", "waveglow", "fastpitch", "jasper", "quartznet", "rnnt"})
_RECOMMENDER = frozenset({
    "ncf", "neumf", "dlrm", "dlrmv2", "dcnv2", "wide-and-deep", "vae-cf",
})  # fmt: skip
_VOLUMES = frozenset({"unet3d", "nnunet", "vnet"})  # of medical images


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRun(MeasuredRun):
    """One published measurement, with what its table alone has; other facts as in `MeasuredRun`.

    Attributes:
        source_file: where it stands in that source.
        date: as the source states it; empty if it does not.
        device: by its name in the catalogue; empty if the catalogue has none.
        num_devices: number of devices.
        per_machine: devices of a machine.
        link_within: catalogue's name of the link within a machine; empty if not known.
        link_between: name of the link of a machine to the others; empty if not known.
        scheme: one of `_SCHEMES`; `tp` and `pp` are tensor and pipeline parallelism.
        dp: data-parallel replicas.
        tp: devices of a tensor-parallel group.
        pp: stages of a pipeline.
        cp: devices that share a sequence.
        ep: devices that share the experts of a layer.
        model: as the source writes it.
        fold: 0 to 9, of the family; None while a table is made.
        size: tokens of a sample, or side of a square image; None for the job's usual size.
        implementation: words on the kernels: `apex-o2`, `flash`, `cuda-graphs`, `te`, `xla`.
        data: `synthetic` or `real` input; empty if not known.
        peak_mem_gib: largest memory of a device, GiB.
        peak_mem_kind: `allocated` and `reserved` by PyTorch, or `device` (with context, by NVML).
        unused_why: why no fit and no check can use the row; empty if they can.

    Raises:
        ConfigError: a value that none of these can be, or that a usable row lacks.
    """

    source_file: str = ""
    date: str = ""
    device: str = ""
    num_devices: int = 1
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
    fold: int | None = None
    size: int | None = None
    activation_checkpointing: str = "none"
    implementation: str = ""
    data: str = ""
    peak_mem_gib: float | None = None
    peak_mem_kind: str = ""
    unused_why: str = ""

    def __post_init__(self) -> None:
        for name, choices in (
            ("scheme", _SCHEMES),
            ("task", TASKS),
            ("precision", PRECISIONS),
            ("optimizer", _OPTIMIZERS),
            ("activation_checkpointing", _CHECKPOINTING),
            ("data", _DATA),
            ("peak_mem_kind", _PEAK_MEMORY_KINDS),
        ):
            check_choice(name, getattr(self, name), choices)
        for name in (
            "num_devices",
            "per_machine",
            "dp",
            "tp",
            "pp",
            "cp",
            "ep",
            "grad_accumulation",
        ):
            check_whole(name, getattr(self, name), 1, _MOST_DEVICES)
        for name, most in (("batch_size", 10**9), ("size", 10**7)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1, most)
        if self.fold is not None:
            check_whole("fold", self.fold, 0, FOLDS - 1)
        self._check_measured()
        if not self.id or not self.source:
            raise ConfigError("id and source must not be empty")
        if self.device and find_device(self.device) is None:
            raise ConfigError(f"device {self.device!r} is not in the catalogue (driple devices)")
        for name in ("link_within", "link_between"):
            if getattr(self, name) and find_link(getattr(self, name)) is None:
                raise ConfigError(f"{name} {getattr(self, name)!r} is no link of the catalogue")
        if self.usable:
            self._check_usable()

    def _check_measured(self) -> None:
        if not isnan(self.step_s):
            check_number("step_s", self.step_s, above=0, most=_LONGEST_S)
        if not isnan(self.utilisation_pct):
            check_number("utilisation_pct", self.utilisation_pct, least=0, most=100)
        if self.peak_mem_gib is not None:
            check_number("peak_mem_gib", self.peak_mem_gib, least=0, most=1e4)

    def _check_usable(self) -> None:
        needed = ("device", "job", "family", "batch_size", "precision", "library")
        lacking = [name for name in needed if getattr(self, name) in ("", None)]
        lacking += ["step_s"] if isnan(self.step_s) else []
        if lacking:
            raise ConfigError(f"{', '.join(lacking)} must be given, or unused_why say why not")
        if self.precision not in _SIMULATED:
            raise ConfigError(f"precision of a usable row must be simulated, got {self.precision}")
        groups = self.dp * self.tp * self.pp * self.cp
        if groups != self.num_devices:
            raise ConfigError(f"dp x tp x pp x cp must be devices {self.num_devices}, got {groups}")
        if (self.scheme == "none") != (self.num_devices == 1):
            raise ConfigError(f"scheme {self.scheme} does not go with {self.num_devices} devices")
        if self.num_devices % self.per_machine and self.num_devices > self.per_machine:
            raise ConfigError(
                f"{self.num_devices} devices do not fill machines of {self.per_machine}"
            )

    @property
    def usable(self) -> bool:
        """Whether a fit or a check can use the row."""
        return not self.unused_why

    @property
    def replays_graphs(self) -> bool:
        """Whether the host replays the whole step as CUDA graphs."""
        return self.compiled and "cuda-graphs" in self.implementation.split()

    @property
    def job_optimizer(self) -> str:
        """The nearest of Driple's optimizers; empty without an update, or if it is not known."""
        return _NEAREST_OPTIMIZER.get(self.optimizer, self.optimizer)


def read_published(file: Path, *, usable_only: bool = False) -> list[PublishedRun]:
    """The runs of a table, in its order.

    Args:
        file: `pytorch_rows.csv.gz`, `pytorch_forward.csv.gz`, or a table of the same columns.
        usable_only: leave out the runs that say why they are unused.

    Raises:
        ConfigError: the file cannot be read, lacks a column, or holds a run that cannot be.
    """
    runs = unique_ids(read_records(file, PublishedRun, FACTS, PUBLISHED), str(file))
    unfolded = next((run.id for run in runs if run.usable and run.fold is None), None)
    if unfolded is not None:
        raise ConfigError(f"{file}: fold of {unfolded} must be given, or unused_why say why not")
    return [run for run in runs if run.usable] if usable_only else runs


def as_asked(runs: Sequence[PublishedRun]) -> list[MeasuredRun]:
    """The runs as users ask for them, in the same order; without those that no setting can name.

    Args:
        runs: usable ones.
    """
    weights = _weights(runs)
    asked = [on_setting(run, weight) for run, weight in zip(runs, weights, strict=True)]
    return [run for run in asked if run is not None]


def setting_name(run: PublishedRun) -> str:
    """The setting of a run, as a user types it.

    >>> # 2 machines of 8, ZeRO-2: 2x8xA100/NVLink-A100+100G@zero2
    """
    machines, rest = divmod(run.num_devices, run.per_machine)
    if rest or machines <= 1:
        machines, each = 1, run.num_devices
    else:
        each = run.per_machine
    many = f"{machines}x" if machines > 1 else ""
    links = []
    if each > 1 and run.link_within:
        links.append(run.link_within)
    if machines > 1 and run.link_between:
        links.append(run.link_between)
    joined = f"/{'+'.join(links)}" if links else ""
    scheme = "" if run.scheme in _PLAIN else f"@{run.scheme}"
    return f"{many}{each}x{run.device}{joined}{scheme}"


def on_setting(run: PublishedRun, weight: float) -> MeasuredRun | None:
    """The run as a user asks for it; None of a cluster that no setting can name.

    The library becomes its generation, and the optimizer the nearest of Driple's.
    """
    if run.tp * run.pp * run.cp > 1:
        return None
    try:
        setting = full_setting_name(setting_name(run))
    except (SettingError, CatalogError, ConfigError):
        return None
    vision = _domain(run) == "vision" and run.family not in _VOLUMES
    return MeasuredRun(
        id=run.id,
        source=run.source,
        job=run.job,
        setting=setting,
        family=run.family,
        task=run.task,
        framework=run.framework,
        library=library_of(run.library),
        domain=_domain(run),
        precision=run.precision,
        batch_size=run.batch_size,
        seq_len=None if vision else run.size,
        input_shape=(3, run.size, run.size) if vision and run.size else None,
        optimizer=run.job_optimizer,
        grad_accumulation=run.grad_accumulation,
        activation_checkpointing=run.activation_checkpointing,
        compiled=run.compiled,
        cuda_graphs=run.replays_graphs,
        channels_last=run.channels_last,
        step_s=run.step_s,
        utilisation_pct=run.utilisation_pct,
        weight=weight,
    )


def _weights(runs: Sequence[PublishedRun]) -> list[float]:
    """A weight of each run, by model family and machine type.

    All runs of a family on one machine type weigh 1 together, so that neither a family of many
    sizes nor a machine that a source lists many times outweighs the others. Within, each job (with
    its options and scheme) weighs the same; its repetitions on identical machines share its weight.
    """
    cells = [
        (run.family, run.device, run.num_devices, run.per_machine, run.link_within,
         run.link_between)
        for run in runs
    ]  # fmt: skip
    jobs = [
        (run.job, run.task, run.batch_size, run.size, run.precision, run.grad_accumulation,
         run.activation_checkpointing, run.compiled, run.channels_last, run.scheme, run.library)
        for run in runs
    ]  # fmt: skip
    in_cell: dict[object, Counter[object]] = defaultdict(Counter)
    for cell, job in zip(cells, jobs, strict=True):
        in_cell[cell][job] += 1
    return [
        1.0 / (len(in_cell[cell]) * in_cell[cell][job])
        for cell, job in zip(cells, jobs, strict=True)
    ]


def library_of(name: str) -> str:
    """Generation of a run's library, such as `torch1.12` or `ngc22.09`; empty if it is another's.

    NVIDIA's containers have PyTorch 2 from 23.01 on, 2.2 from 23.10 on, and 2.8 from 25.05 on.
    """
    ngc, torch = _NGC.fullmatch(name), _TORCH.match(name)
    if name == "ngc":
        return "torch1"
    match = ngc or torch
    if match is None:
        return ""
    release = int(match[1]), int(match[2])
    return next(
        generation
        for generation, container, version in _GENERATIONS
        if release >= (version if ngc is None else container)
    )


def _domain(run: PublishedRun) -> str:
    """What a model computes on."""
    kind, _, name = run.job.partition(":")
    if kind in ("timm", "torchvision") or run.family in _VISION | _VOLUMES or name in _VISION:
        return "vision"
    if run.family in _SPEECH:
        return "speech"
    return "recommender" if run.family in _RECOMMENDER else "language"
