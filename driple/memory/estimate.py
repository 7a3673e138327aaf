"""Memory of a device that a training job needs: allocated, reserved, and what the device shows.

    Job, Setting -> MemoryEstimate

`allocated` is what PyTorch reports as `torch.cuda.max_memory_allocated`: the most bytes of tensors
that live at once in a step (`timeline`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from driple.catalog import Catalog
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.jobs.job import Job
from driple.memory.timeline import ModuleBytes, StepTimeline, step_timeline

__all__ = ["Bytes", "Fits", "MemoryEstimate", "memory_of", "memory_of_graph"]

Fits = Literal["yes", "likely not", "no"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes:
    """A number of bytes with its interval.

    Attributes:
        value: bytes.
        lower: lower end of the 90 % interval; None if the error is unknown.
        upper: upper end.
    """

    value: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryEstimate:
    """What one device of a setting needs for a job.

    Attributes:
        allocated: most bytes of tensors at once.
        reserved: bytes that the framework's allocator takes from the device; None if unknown.
        device_total: bytes in use that the device shows; None if unknown.
        is_lower_bound: whether sizes or turns are unknown, so that the known part is given.
        capacity_bytes: memory of the device; None if unknown.
        fits: whether it is enough; None if unknown.
        margin_bytes: what is left of it, negative if it is too small; None if unknown.
        parts: bytes at the peak of allocated bytes, by kind.
        modules: what is allocated there, by module and kind, the largest first.
        largest: what is largest, in words.
        source: what the numbers rest on, and how large their error is.
    """

    allocated: Bytes
    reserved: Bytes | None = None
    device_total: Bytes | None = None
    is_lower_bound: bool = False
    capacity_bytes: float | None = None
    fits: Fits | None = None
    margin_bytes: float | None = None
    parts: Mapping[str, float]
    modules: tuple[ModuleBytes, ...] = ()
    largest: str = ""
    source: str = ""


def memory_of(job: Job, setting: Setting, catalog: Catalog | None = None) -> MemoryEstimate:
    """Memory that one device of a setting needs for a job.

    Args:
        job: training, or a forward pass.
        setting: cluster and scheme.
        catalog: devices; as installed by default.

    Raises:
        GraphError: the graph does not show how long its tensors live.
    """
    return memory_of_graph(job.graph, setting, catalog)


def memory_of_graph(
    graph: OpGraph,
    setting: Setting,
    catalog: Catalog | None = None,
) -> MemoryEstimate:
    """Do the work of `memory_of` for the graph of one worker's step."""
    timeline = step_timeline(graph)
    return MemoryEstimate(
        allocated=Bytes(value=timeline.peak_bytes),
        is_lower_bound=graph.report.has_unknown,
        parts=timeline.at_peak(),
        modules=timeline.modules,
        largest=largest_words(timeline),
        source="lifetimes of the step's tensors",
    )


def largest_words(timeline: StepTimeline) -> str:
    """What is largest at the peak, such as `activations (most of layers.0.mlp)`."""
    kind, nbytes = max(timeline.at_peak().items(), key=lambda item: item[1])
    if not nbytes:
        return ""
    most = next((one for one in timeline.modules if one.kind == kind), None)
    return f"{kind} (most of {most.module})" if most and most.module else kind
