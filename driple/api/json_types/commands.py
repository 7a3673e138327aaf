"""The JSON of commands that list, make, measure and train; `print_json` adds the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from driple.api.json_types.shared import TargetsJson, UnitsJson
from driple.catalog.listing import CheckpointRow, DeviceRow, InstanceRow, LinkRow, SettingRow
from driple.catalog.machine_file import (
    Collective,
    CopyRate,
    KernelTime,
    LoaderRate,
    MachineFacts,
    MachineHost,
    MachineProcessor,
    OpTime,
)
from driple.codec import Names
from driple.dataset.example import Detail
from driple.dataset.summary import DatasetSummary
from driple.estimate import Estimate, Source
from driple.evaluation.json_types import LearningCurveJson
from driple.evaluation.leakage import Leakage
from driple.inspector.host import HostTuning
from driple.trace.provenance import Provenance

__all__ = [
    "BuildJson",
    "DataListJson",
    "DataMadeJson",
    "DataSetJson",
    "DataSimulatedJson",
    "EnvJson",
    "JobsJson",
    "LabelJson",
    "ListJson",
    "MachineJson",
    "MeasureJson",
    "RecordJson",
    "RecordStepsJson",
    "TraceJson",
    "TrainJson",
    "TransferJson",
]

LISTS = ("devices", "links", "instances", "settings", "checkpoints")


class ListJson(TypedDict):
    """What Driple knows by name."""

    kind: Annotated[str, Names(LISTS)]
    rows: Sequence[DeviceRow | LinkRow | InstanceRow | SettingRow | CheckpointRow]


class JobsJson(TypedDict):
    """Names of workloads."""

    workloads: Sequence[str]


class BuildJson(TypedDict):
    """A graph that was built, a folder of graphs, or samples."""

    output: str
    workload: NotRequired[str]
    parameters: NotRequired[int]
    samples: NotRequired[int]
    setting: NotRequired[str]
    graphs: NotRequired[int]


class DataListJson(TypedDict):
    """Data sets in or below a folder."""

    data_sets: Sequence[DatasetSummary]


class DataSetJson(TypedDict):
    """A data set.

    Attributes:
        families: number of workloads of each model family.
        about: provenance of the labels.
    """

    name: str
    setting: str
    examples: int
    families: Mapping[str, int]
    about: Provenance


class LabelJson(TypedDict):
    """The label of one workload: what its run used.

    Attributes:
        details: facts of the workload.
    """

    workload: str
    family: str
    setting: str
    label_source: Source
    targets: TargetsJson
    units: UnitsJson
    iteration_time_s: Estimate
    details: Mapping[str, Detail]


class DataMadeJson(TypedDict):
    """A data set that was written.

    Attributes:
        runs: behind the labels; null if that is not known.
    """

    folder: str
    setting: str
    examples: int
    runs: int | None


class DataSimulatedJson(TypedDict):
    """Data sets that were simulated."""

    folders: Sequence[str]
    examples: int


class TraceJson(TypedDict):
    """A job trace that was written."""

    trace: str
    steps: int
    ops: int
    iteration_time_s: Estimate
    servers: int
    left_out_steps: int


class TrainJson(TypedDict):
    """An inspector that was trained.

    Attributes:
        metrics: errors on the test split.
        test_impossible: impossible predictions in the test split; null without one.
    """

    checkpoint: str
    metrics: Mapping[str, float]
    test_impossible: int | None


class TransferJson(TypedDict):
    """An inspector that was adapted to a setting.

    Attributes:
        no_learning_curve: why there is none; null if there is one.
        source_knows: overlap of the test set with the training part of the source; null if unknown.
    """

    checkpoint: str
    metrics: Mapping[str, float]
    test_impossible: int
    seconds: float
    epochs: int
    learning_curve: LearningCurveJson | None
    no_learning_curve: str | None
    source_knows: Leakage | None


class MachineJson(TypedDict):
    """A measured machine.

    Attributes:
        devices: rows of a catalogue, with the factors of each kind of GPU.
        written: the file.
    """

    devices: Sequence[Mapping[str, object]]
    machine: MachineFacts | None
    host: MachineHost | None
    processor: MachineProcessor | None
    ops: Sequence[OpTime]
    kernels: Sequence[KernelTime]
    copies: Sequence[CopyRate]
    collectives: Sequence[Collective]
    loader: Sequence[LoaderRate]
    written: str


class MeasureJson(TypedDict):
    """A campaign of measurements.

    Attributes:
        dataset: folder of the data set that its labels were merged into.
        host: what a few workloads tell of this machine, with --calibrate.
    """

    setting: str
    workloads: int
    failed: Sequence[str]
    campaign: str
    dataset: NotRequired[str]
    examples: NotRequired[int]
    host: NotRequired[HostTuning]


class RecordStepsJson(TypedDict):
    """Steps of a recorded job.

    Attributes:
        low_s: 10th percentile of marked steps; of a period, its doubt.
        high_s: 90th percentile of marked steps.
        ambiguous_s: other periods that fit nearly as well.
    """

    source: Literal["marked", "period"]
    iteration_time_s: Estimate
    low_s: float
    high_s: float
    num_steps: int
    ambiguous_s: Sequence[float]


class RecordJson(TypedDict):
    """A record of a job.

    Attributes:
        status: exit status of the command; null of a process that was watched.
        seconds: length of the record.
        sampler_pct: CPU time of the recorder, percent of a core.
        steps: null where none are marked and nothing repeats.
        missing: counters that were not recorded, and why.
    """

    folder: str
    status: int | None
    seconds: float
    samples: int
    sampler_pct: float | None
    steps: RecordStepsJson | None
    missing: Mapping[str, str]
    log: Sequence[str]


class EnvJson(TypedDict):
    """What works on this machine.

    Attributes:
        extras: `installed`, or what is missing.
        counters: of `driple record`: `works` with names, or why not.
        measuring: tools that `driple measure` needs, and whether they are there.
        checkpoints: settings with an inspector.
    """

    driple: str
    python: str
    extras: Mapping[str, str]
    cores: int | None
    gpus: Sequence[str]
    counters: Mapping[str, str]
    measuring: Mapping[str, bool]
    checkpoints: Sequence[str]
