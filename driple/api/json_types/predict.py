"""The JSON of `driple predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from driple.analytic.advice import BOTTLENECKS
from driple.analytic.closed_forms import MethodError
from driple.answers.error_statement import StatedErrorJson
from driple.answers.slow_hosts import SlowHost
from driple.api.json_types.memory import MemoryJson
from driple.api.json_types.shared import JobJson, StepPartJson, TargetsJson, UnitsJson
from driple.api.quantiles import Quantiles
from driple.api.throughput import Throughput
from driple.codec import Names
from driple.estimate import Estimate, Interval, Method, Source
from driple.inspector.host import HostTuning
from driple.inspector.trained_on import TrainedOn
from driple.remarks import Remark
from driple.step.phases import STEP_PHASES
from driple.step.profile import Burst
from driple.trace.targets import RESOURCES

__all__ = [
    "AnswerJson",
    "CheckpointJson",
    "CountersJson",
    "DisagreementJson",
    "GraphJson",
    "JobsAnsweredJson",
    "MeasuredJson",
    "MeasuredRowJson",
    "MethodAnswerJson",
    "PredictJson",
    "ResourceUseJson",
    "StepJson",
    "WorkJson",
    "WorkerJson",
]


class ResourceUseJson(TypedDict):
    """How a resource is used in one step.

    bursts_per_step times (burst_duration + idle_duration) of the targets is the step.

    Attributes:
        mean: over the step, in the unit of the resource.
    """

    bursts_per_step: int
    mean: float
    bursts: Sequence[Burst]


class CountersJson(TypedDict):
    """Means that NVML and nvidia-smi would show, whose windows are longer than most steps.

    Kernels of an exchange count as any other.

    Attributes:
        window_s: null where no source states it.
    """

    window_s: float | None
    device_util_pct: float
    device_mem_util_pct: float


class StepJson(TypedDict):
    """One simulated step of a GPU, from which the simulator's targets come.

    Attributes:
        phases_s: seconds in which kernels of each phase run, and seconds of waiting for other
            devices (exchange) and for the host; they add up to the step. computing: forward and
            backward in turn.
    """

    step_s: float
    phases_s: Annotated[Mapping[str, float], Names(STEP_PHASES, all_present=False)]
    resources: Annotated[Mapping[str, ResourceUseJson], Names(RESOURCES)]
    counters: CountersJson


class MethodAnswerJson(TypedDict):
    """What one method answers.

    Attributes:
        p90_error_pct: nine of ten errors are smaller, percent of the true time.
        parts_s: seconds of each part of a step.
        error: error of a closed form on published runs.
        workload: the measured workload with this graph.
    """

    iteration_time_s: Estimate
    p90_error_pct: float | None
    parts_s: Mapping[str, float] | None
    error: MethodError | None
    workload: str | None


class DisagreementJson(TypedDict):
    """Two methods whose times differ by more than their errors.

    Attributes:
        factor: longer over shorter time.
    """

    methods: Sequence[Method]
    factor: float


class WorkJson(TypedDict):
    """What the closed forms count in the job."""

    forward_flops: float
    parameter_bytes: float
    pushes: int
    ops_of_unknown_flops: Mapping[str, int]
    bytes_share_of_unknown: float


class WorkerJson(TypedDict):
    """One simulated worker."""

    device: str
    iteration_time_s: Estimate


class GraphJson(TypedDict):
    """Size of the graph, as an inspector reads it."""

    nodes: int
    edges: int
    groups: int
    unknown_op_types: Mapping[str, int]


class CheckpointJson(TypedDict):
    """The inspector that answered.

    Attributes:
        metrics: errors on its test split.
        outdated: why it should be trained anew; null if it should not.
    """

    setting: str
    provenance: Source
    trained_on: TrainedOn
    metrics: Mapping[str, float | None]
    outdated: Remark | None


class MeasuredRowJson(TypedDict):
    """One number, predicted and measured; null where it is not known.

    Attributes:
        resource: `step`, `memory` or a resource: means over the time of steps.
    """

    resource: Annotated[str, Names(("step", "memory", *RESOURCES))]
    unit: str
    predicted: float | None
    interval: Interval | None
    measured: float | None


class MeasuredJson(TypedDict):
    """The record of the same job.

    Attributes:
        differences: what differs, and what that says.
        missing: resources that were not recorded, and why.
        targets: the twelve measured numbers; null if a resource is missing.
    """

    rows: Sequence[MeasuredRowJson]
    steps_by: Literal["marked", "period"]
    num_steps: int
    differences: Sequence[Remark]
    missing: Mapping[str, str]
    targets: TargetsJson | None


class AnswerJson(TypedDict):
    """All that is known of one job on one setting.

    Attributes:
        reason: why this method was chosen; null if the user chose it.
        iteration_time_s: null if a field of the training config changes it and was not read.
        iteration_time_quantiles_s: that follow from the interval; null where it has no level.
        throughput: of all workers together; null if the batch size is unknown.
        memory: of one device; null on processors.
        targets: null of closed forms.
        methods: each method that was asked.
        silent: why other methods did not answer.
        trust: which method is trusted most; null with one method.
        slow_host: the step on the slowest known host.
        bottleneck: what holds a setting with servers back; null elsewhere.
        model_flops_utilisation_pct: percent; null where it is not known.
        step_parts: where the time of a step goes; null on processors and with servers.
        is_guess: whether the interval of the step time is wider than a factor of 6.
        workers: each simulated worker.
        measured: the record beside this answer; null without one.
    """

    job: JobJson
    setting: str
    method: Annotated[str, Names(("inspector", "simulator", "analytic", "all"))]
    reason: Remark | None
    iteration_time_s: Estimate | None
    iteration_time_quantiles_s: Quantiles | None
    throughput: Throughput | None
    memory: MemoryJson | None
    targets: TargetsJson | None
    units: UnitsJson
    step: StepJson | None
    methods: Mapping[Method, MethodAnswerJson]
    silent: Mapping[str, str]
    disagreements: Sequence[DisagreementJson]
    trust: Remark | None
    assumptions: Sequence[Remark]
    warnings: Sequence[Remark]
    remarks: Sequence[Remark]
    stated_error: StatedErrorJson | None
    host: HostTuning | None
    slow_host: SlowHost | None
    closed_form_s: Estimate | None
    bottleneck: Annotated[str, Names(tuple(BOTTLENECKS))] | None
    model_flops_utilisation_pct: float | None
    step_parts: Sequence[StepPartJson] | None
    is_guess: bool
    communication_ratio: float | None
    work: WorkJson | None
    workers: Sequence[WorkerJson]
    graph: GraphJson | None
    checkpoint: CheckpointJson | None
    measured: MeasuredJson | None


class PredictJson(TypedDict):
    """The answers, setting by setting, for each job."""

    question: Literal["predict"]
    answers: Sequence[AnswerJson]


class JobsAnsweredJson(TypedDict):
    """What `predict --jobs` has written.

    Attributes:
        question: name of the question.
        output: path of the file.
        lines: lines of the file of jobs, empty ones included.
        rows: rows of the output.
        errors: rows with a reason in place of an answer.
        resumed_at: lines that an interrupted run had answered.
    """

    question: Literal["predict_jobs"]
    output: str
    lines: int
    rows: int
    errors: int
    resumed_at: int
