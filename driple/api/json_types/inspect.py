"""The JSON of `driple inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from driple.api.inspecting import ParameterFacts
from driple.api.json_types.memory import MemoryJson
from driple.api.json_types.shared import JobJson
from driple.estimate import Estimate
from driple.measure.kineto.gaps import Gap
from driple.memory.least import LeastMemory
from driple.remarks import Remark

__all__ = [
    "InspectJson",
    "MemoryCurveJson",
    "ModuleBytesJson",
    "ModuleJson",
    "ShareJson",
    "StepMemoryJson",
    "TracedJson",
    "TracedRowJson",
]


class ShareJson(TypedDict):
    """Work of one phase or kind of op in a step."""

    name: str
    ops: int
    flops: float
    memory_bytes: float
    time_s: Estimate | None
    time_pct: Estimate | None


class ModuleJson(TypedDict):
    """A module with all that is within it; children down to --depth levels."""

    name: str
    path: str
    ops: int
    flops: float
    memory_bytes: float
    time_s: Estimate | None
    parameters: int
    parameter_bytes: int
    children: Sequence[ModuleJson]


class ModuleBytesJson(TypedDict):
    """Bytes of modules at the peak, by kind.

    Attributes:
        count: modules that are joined here.
    """

    module: str
    count: int
    bytes: Mapping[str, int]


class MemoryCurveJson(TypedDict):
    """Bytes over a step, by kind, at some of its nodes."""

    node: Sequence[int]
    bytes: Mapping[str, Sequence[int]]


class StepMemoryJson(TypedDict):
    """Memory of a device over a step.

    Attributes:
        peak_at: node of the peak.
        at_peak_bytes: bytes at the peak, by kind.
    """

    estimate: MemoryJson | None
    notes: Sequence[Remark]
    peak_bytes: int
    peak_at: int
    peak_phase: str
    peak_op: str
    peak_module: str
    at_peak_bytes: Mapping[str, int]
    modules: Sequence[ModuleBytesJson]
    curve: MemoryCurveJson


class TracedRowJson(TypedDict):
    """A part of a step, predicted and in a trace.

    Attributes:
        count: kernels, or ops of the host, of a step.
    """

    name: str
    predicted_s: Estimate | None
    measured_s: Estimate | None
    count: float | None


class TracedJson(TypedDict):
    """A trace of the PyTorch profiler beside the job; medians over its steps.

    Attributes:
        marked: whether the trace marks its steps; else the whole trace counts as one.
        device: of the trace; null where it has no kernels of a GPU.
        on_gpu: whether times are those of kernels, not of ops on the host.
        busy_s: in which a kernel, or an op, runs.
    """

    steps: int
    marked: bool
    device: str | None
    on_gpu: bool
    step_s: float
    busy_s: float
    kinds: Sequence[TracedRowJson]
    phases: Sequence[TracedRowJson]
    modules: Sequence[TracedRowJson]
    gaps: Sequence[Gap]
    remarks: Sequence[Remark]
    events: int


class InspectJson(TypedDict):
    """A job, read.

    Attributes:
        compute_s: of a step, without communication.
        memory: over a step; null if it was not asked for.
        traced: a trace of the profiler beside it; null if none was given.
        remote_op_types: ops on servers, by type.
    """

    question: Literal["inspect"]
    job: JobJson
    setting: str
    device: str
    compute_s: Estimate | None
    phases: Sequence[ShareJson]
    kinds: Sequence[ShareJson]
    modules: ModuleJson | None
    parameters: ParameterFacts
    assumptions: Sequence[Remark]
    unknown: Sequence[Remark]
    nodes: int
    edges: int
    nodes_in_file: int
    nodes_inlined: int
    nodes_without_shape: int
    dangling_inputs: int
    tensor_bytes: int
    flops: float
    memory_bytes: float
    least_device_memory: LeastMemory | None
    memory: StepMemoryJson | None
    traced: TracedJson | None
    loops_of_unknown_length: int
    layout: str
    is_training: bool
    train_ops: Sequence[str]
    target: str | None
    left_out: Mapping[str, int]
    sent_bytes: int
    received_bytes: int
    sent_bytes_with_servers: int
    received_bytes_with_servers: int
    op_types: Mapping[str, int]
    remote_op_types: Mapping[str, int]
