"""Memory of a device that a training job needs: allocated, reserved, and what the device shows.

    Job, Setting -> MemoryEstimate

`allocated` is what PyTorch reports as `torch.cuda.max_memory_allocated`, `reserved` as
`torch.cuda.max_memory_reserved`; `device_total` is what NVML shows for the device: reserved memory,
CUDA context and NCCL's buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.jobs.job import Job
from driple.jobs.training_config import undecided_remark
from driple.memory.calibration import MemoryCalibration, shipped_memory_calibration
from driple.memory.device_tensors import DeviceTensors, device_tensors, host_bytes
from driple.memory.events import bytes_by_kind, played_steps
from driple.memory.graph_lifetimes import rounding_of, with_lifetimes
from driple.memory.memory_estimate import (
    COMMUNICATION_PART,
    OUTSIDE_PART,
    Bytes,
    Fits,
    MemoryEstimate,
)
from driple.memory.modules import most_words
from driple.memory.place import MemoryPlace, modelled_schemes
from driple.memory.split_model import device_steps
from driple.memory.step_memory import StepMemory
from driple.memory.timeline import KINDS, ModuleBytes, step_timeline
from driple.remarks import Remark, remark

__all__ = [
    "error_kind",
    "memory_of",
    "memory_of_graph",
    "memory_of_places",
    "memory_of_step",
    "memory_of_steps",
]  # fmt: skip

IntArray = npt.NDArray[np.int64]

_PARTS = (*KINDS, COMMUNICATION_PART)
NEWEST = "torch2"  # generation of PyTorch, unless a job states another
_KEPT_GRAPHS = 2
_NUM_KEPT = 3  # parameters, gradients, states
_OF_MODULES = ("activations", "temporary")
_ReadSteps = tuple[tuple[StepMemory, ...], tuple[ModuleBytes, ...]]
_TIGHTEST: tuple[Fits | None, ...] = ("no", "likely not", None, "yes")


def memory_of(
    job: Job,
    setting: Setting,
    *,
    capacity_bytes: float | None = None,
) -> MemoryEstimate:
    """Memory that a job needs on one device of a setting: the one with least room.

    Args:
        job: training, or a forward pass.
        setting: cluster and scheme.
        capacity_bytes: memory of the worker's device where it is known better than from the
            catalogue.

    Raises:
        GraphError: the graph does not show how long its tensors live.
        CatalogError: the catalogue does not state the memory of the device.
    """
    unread = job.open_fields("memory")
    if unread:
        return MemoryEstimate(allocated=None, source=undecided_remark(unread))
    library = job.library or NEWEST
    places = MemoryPlace.of_job(job, setting, capacity_bytes)
    made = _of_graph(job.graph, places, library)
    return _at_most(made) if job.compiled else made


def memory_of_graph(
    graph: OpGraph,
    setting: Setting,
    *,
    capacity_bytes: float | None = None,
    library: str = NEWEST,
) -> MemoryEstimate:
    """Do the work of `memory_of` for the graph of one worker's step."""
    return _of_graph(graph, MemoryPlace.of_kinds(setting, capacity_bytes), library)


def _of_graph(graph: OpGraph, places: Sequence[MemoryPlace], library: str) -> MemoryEstimate:
    steps, modules = _READ.of(graph, places[0])
    made = memory_of_places(steps, places, library=library)
    return replace(made, modules=modules, largest=_largest_words(made, modules))


def _at_most(made: MemoryEstimate) -> MemoryEstimate:
    """The memory of a compiled graph: it needs no more than the same graph that is not."""
    fits: Fits | None = "likely not" if made.fits == "no" else made.fits
    source = remark("memory_of_uncompiled", source=made.source)
    return replace(made, is_upper_bound=True, fits=fits, source=source)


class _Read:
    """Steps of the graphs that were asked for last: a plan asks for one on many settings."""

    def __init__(self) -> None:
        self._kept: list[tuple[OpGraph, Degrees, _ReadSteps]] = []

    def of(self, graph: OpGraph, place: MemoryPlace) -> _ReadSteps:
        """The step of each stage of a graph, and what its modules allocate at the peak."""
        degrees = place.degrees
        for known, of, found in self._kept:
            if known is graph and of == degrees:
                return found
        ordered = with_lifetimes(graph)
        made = device_steps(ordered, degrees), step_timeline(ordered).modules
        self._kept = [*self._kept, (graph, degrees, made)][-_KEPT_GRAPHS:]
        return made


_READ = _Read()


def memory_of_steps(
    job: Job, steps: Sequence[StepMemory], places: Sequence[MemoryPlace]
) -> MemoryEstimate:
    """Memory of a job whose steps are known, on the device with least room.

    Args:
        job: whose steps they are; a compiled one needs at most as much.
        steps: see `memory_of_places`.
        places: see `memory_of_places`.
    """
    made = memory_of_places(steps, places, library=job.library or NEWEST)
    return _at_most(made) if job.compiled else made


def memory_of_places(
    steps: Sequence[StepMemory], places: Sequence[MemoryPlace], *, library: str = NEWEST
) -> MemoryEstimate:
    """Memory of a step on the device with least room, of one device of each kind and stage.

    Args:
        steps: of a device that holds the whole model, or of one of each stage.
        places: one for each kind of device, such as `MemoryPlace.of_kinds` gives.
        library: generation of PyTorch that runs it.
    """
    made = [memory_of_step(step, place, library=library) for place in places for step in steps]
    return min(made, key=lambda one: (_TIGHTEST.index(one.fits), one.margin_bytes or 0.0))


def memory_of_step(
    step: StepMemory,
    place: MemoryPlace,
    calibration: MemoryCalibration | None = None,
    *,
    masters: bool = False,
    library: str = NEWEST,
) -> MemoryEstimate:
    """Memory of a step on a device.

    Args:
        step: of a device that holds the whole model, or its shard of a stage.
        place: where it runs.
        calibration: constants; those that ship by default.
        masters: whether parameters in half precision have a copy in single precision.
        library: generation of PyTorch that runs it.
    """
    sharding = place.sharding
    if sharding is None:
        return MemoryEstimate(
            allocated=None,
            capacity_bytes=place.capacity_bytes,
            source=remark(
                "memory_not_estimated",
                scheme=place.scheme,
                kind=place.kind,
                known=tuple(modelled_schemes()),
            ),
            device=place.device,
        )
    known = calibration or shipped_memory_calibration()
    tensors = device_tensors(step, sharding, place.shards, place.copies, masters=masters)
    peaks = _peaks(step, place, known, tensors, library=library)
    made = _estimate(step, place, known, peaks)
    if not place.offload:
        return made
    on_host = host_bytes(step, sharding, place.shards) * place.per_machine
    room = place.host_capacity_bytes
    made = replace(made, host_bytes=on_host, host_capacity_bytes=room)
    if room is None or on_host <= room:
        return made
    margin = min(room - on_host, made.margin_bytes or 0.0)
    return replace(made, fits="no", margin_bytes=margin)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Peaks:
    """Peaks of a device before any error.

    Attributes:
        allocated: bytes of tensors, with workspaces of libraries.
        reserved: bytes of the allocator.
        outside: bytes outside of it.
        by_kind: shape [kinds], bytes at the peak of allocated bytes.
        runs: whether all requests are met within the usable memory; None if it is unknown.
    """

    allocated: float
    reserved: float
    outside: float
    by_kind: IntArray
    runs: bool | None


def _peaks(
    step: StepMemory,
    place: MemoryPlace,
    known: MemoryCalibration,
    tensors: DeviceTensors,
    *,
    library: str,
) -> _Peaks:
    rounding = rounding_of(step.framework)
    kinds = bytes_by_kind(tensors, rounding)
    at_peak: IntArray = kinds[int(kinds.sum(axis=1).argmax())]
    if place.capacity_bytes is None:  # a processor
        return _Peaks(
            allocated=float(at_peak.sum()),
            reserved=float(at_peak.sum()),
            outside=0.0,
            by_kind=at_peak,
            runs=None,
        )
    workspace = known.workspace_of(place.generation)
    outside = known.context_of(place.generation)
    outside += known.group_bytes if place.exchanges else 0.0
    room = place.capacity_bytes * known.usable_share - outside - workspace
    is_tensorflow = step.framework == "tensorflow"
    found = played_steps(tensors, expandable=is_tensorflow, rounding=rounding)
    kept = float(at_peak[:_NUM_KEPT].sum())
    cache = known.cache_of(library) * max(found.allocated_bytes - kept, 0.0)
    reserved, runs = found.reserved_bytes + cache, True
    if reserved > room:
        pressed = (
            played_steps(tensors, capacity_bytes=room, rounding=rounding)
            if found.allocated_bytes < room
            else None
        )
        runs = pressed is not None and not pressed.failed
        reserved = min(reserved, max(room, found.allocated_bytes)) if runs else reserved
    return _Peaks(
        allocated=found.allocated_bytes + workspace,
        reserved=reserved + workspace,
        outside=outside,
        by_kind=at_peak,
        runs=runs,
    )


def _estimate(
    step: StepMemory, place: MemoryPlace, known: MemoryCalibration, peaks: _Peaks
) -> MemoryEstimate:
    parts = dict(zip(_PARTS, (float(one) for one in peaks.by_kind), strict=True))
    if place.capacity_bytes is None:
        return MemoryEstimate(
            allocated=Bytes(value=peaks.allocated),
            is_lower_bound=step.is_lower_bound,
            parts=parts,
            source=remark("memory_of_tensors"),
        )
    parts["temporary"] += peaks.allocated - sum(parts.values())  # workspaces, rounding
    parts[OUTSIDE_PART] = peaks.outside
    usable = place.capacity_bytes * known.usable_share
    total = peaks.reserved + peaks.outside
    need = (peaks.allocated + peaks.outside) / usable
    kind = error_kind(place, images=step.has_images)

    def bounds(value: float, number: str) -> Bytes:
        found = _bytes(value, known, number, kind, place.widening)
        return replace(found, upper=None) if step.is_lower_bound else found

    return MemoryEstimate(
        allocated=bounds(peaks.allocated, "allocated"),
        reserved=bounds(peaks.reserved, "reserved"),
        device_total=bounds(total, "device_total"),
        is_lower_bound=step.is_lower_bound,
        capacity_bytes=place.capacity_bytes,
        usable_bytes=usable,
        fits=_fits(need, peaks.runs, step.is_lower_bound, known),
        margin_bytes=known.no_above * usable - (peaks.allocated + peaks.outside),
        parts=parts,
        source=_source(known, kind, place),
        device=place.device,
    )


def error_kind(place: MemoryPlace, *, images: bool) -> str:
    """Kind of published runs whose errors belong to an answer: scheme, and kind of samples.

    Samples of text and sound differ in length, images in a batch do not.
    """
    return f"{place.error_kind} {'images' if images else 'others'}"


def _fits(
    need: float, runs: bool | None, is_lower_bound: bool, known: MemoryCalibration
) -> Fits | None:
    """Whether the usable memory is enough.

    Args:
        need: tensors and what is outside the allocator, as a share of the usable memory.
        runs: whether the allocator met all requests.
        is_lower_bound: whether the need may be larger.
        known: constants.
    """
    if need >= known.no_above:
        return "no"
    if is_lower_bound:
        return None
    return "yes" if need <= known.yes_below and runs else "likely not"


def _bytes(
    value: float, known: MemoryCalibration, number: str, kind: str, widening: float
) -> Bytes:
    error = known.error_of(number, kind)
    if error is None:
        return Bytes(value=value)
    return Bytes(value=value, lower=error.low**widening * value, upper=error.high**widening * value)


def _source(known: MemoryCalibration, kind: str, place: MemoryPlace) -> Remark:
    """What the numbers rest on."""
    error = known.error_of("device_total", kind)
    if error is None:
        return remark("memory_by_lifetimes")
    if place.is_nearest_kind:
        return remark(
            "memory_by_lifetimes_nearest",
            kind=place.kind,
            num_runs=error.runs,
            median_pct=error.median_pct,
            p90_pct=error.p90_pct,
        )
    return remark(
        "memory_by_lifetimes_checked",
        num_runs=error.runs,
        median_pct=error.median_pct,
        p90_pct=error.p90_pct,
    )


def _largest_words(made: MemoryEstimate, modules: Sequence[ModuleBytes]) -> str:
    """What is largest at the peak, such as `activations (most of layers.0.mlp)`."""
    inside = {part: value for part, value in made.parts.items() if part != OUTSIDE_PART}
    part = max(inside, key=lambda one: inside[one], default="")
    if not part or inside[part] <= 0:
        return ""
    words = "optimizer states" if part == "optimizer" else part
    most = most_words(modules, part) if part in _OF_MODULES else ""
    return f"{words} (most of {most})" if most else words
