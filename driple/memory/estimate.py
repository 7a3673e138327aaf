"""Memory of a device that a training job needs: allocated, reserved, and what the device shows.

    Job, Setting -> MemoryEstimate

`allocated` is what PyTorch reports as `torch.cuda.max_memory_allocated`, `reserved` as
`torch.cuda.max_memory_reserved`; `device_total` is what NVML shows for the device: reserved memory,
CUDA context and NCCL's buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.jobs.job import Job
from driple.jobs.training_config import undecided_remark
from driple.memory.allocator import AllocatorPeak
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
from driple.schemes.scheme import Sharding

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
_MOST_HELD = 16  # of a step: kinds of clusters on which devices hold it in one way
_NUM_KEPT = 3  # parameters, gradients, states
_OF_MODULES = ("activations", "temporary")
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
    estimate = _of_graph(job.graph, places, library)
    return _at_most(estimate) if job.compiled else estimate


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
    read = _read(graph, places[0].degrees)
    estimate = memory_of_places(read.steps, places, library=library)
    return replace(estimate, modules=read.modules, largest=_largest_words(estimate, read))


def _at_most(estimate: MemoryEstimate) -> MemoryEstimate:
    """The memory of a compiled graph: it needs no more than the same graph that is not."""
    fits: Fits | None = "likely not" if estimate.fits == "no" else estimate.fits
    source = remark("memory_of_uncompiled", source=estimate.source)
    return replace(estimate, is_upper_bound=True, fits=fits, source=source)


@dataclass(frozen=True, kw_only=True, slots=True)
class _ReadSteps:
    """What a graph and the degrees of its split decide.

    Attributes:
        steps: of each stage.
        modules: what the whole model's modules allocate at the peak.
        most: where most of a kind is, as far as it was asked for.
    """

    steps: tuple[StepMemory, ...]
    modules: tuple[ModuleBytes, ...]
    most: dict[str, str] = field(default_factory=dict)


def _read(graph: OpGraph, degrees: Degrees) -> _ReadSteps:
    """The steps of a graph, kept as long as it is: questions ask for one job on many settings."""
    known = _READ.setdefault(graph, {})
    if degrees not in known:
        ordered = with_lifetimes(graph)
        known[degrees] = _ReadSteps(
            steps=device_steps(ordered, degrees), modules=step_timeline(ordered).modules
        )
    return known[degrees]


_READ: WeakKeyDictionary[OpGraph, dict[Degrees, _ReadSteps]] = WeakKeyDictionary()


def memory_of_steps(
    job: Job, steps: Sequence[StepMemory], places: Sequence[MemoryPlace]
) -> MemoryEstimate:
    """Memory of a job whose steps are known, on the device with least room.

    Args:
        job: whose steps they are; a compiled one needs at most as much.
        steps: see `memory_of_places`.
        places: see `memory_of_places`.
    """
    estimate = memory_of_places(steps, places, library=job.library or NEWEST)
    return _at_most(estimate) if job.compiled else estimate


def memory_of_places(
    steps: Sequence[StepMemory], places: Sequence[MemoryPlace], *, library: str = NEWEST
) -> MemoryEstimate:
    """Memory of a step on the device with least room, of one device of each kind and stage.

    Args:
        steps: of a device that holds the whole model, or of one of each stage.
        places: one for each kind of device, such as `MemoryPlace.of_kinds` gives.
        library: generation of PyTorch that runs it.
    """
    estimates = [memory_of_step(step, place, library=library) for place in places for step in steps]
    return min(estimates, key=lambda one: (_TIGHTEST.index(one.fits), one.margin_bytes or 0.0))


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
    held = _held(step, sharding, place, masters=masters)
    peaks = _peaks(step, place, known, held, library=library)
    estimate = _estimate(step, place, known, peaks)
    if not place.offload:
        return estimate
    on_host = host_bytes(step, sharding, place.shards) * place.per_machine
    room = place.host_capacity_bytes
    estimate = replace(estimate, host_bytes=on_host, host_capacity_bytes=room)
    if room is None or on_host <= room:
        return estimate
    margin = min(room - on_host, estimate.margin_bytes or 0.0)
    return replace(estimate, fits="no", margin_bytes=margin)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    """What a device holds over a step, whatever the size of its memory.

    Attributes:
        tensors: of the step on one device.
        by_kind: shape [kinds], bytes at the peak.
        played: peaks of an allocator without limit; None of a processor.
    """

    tensors: DeviceTensors
    by_kind: IntArray
    played: AllocatorPeak | None


def _held(step: StepMemory, sharding: Sharding, place: MemoryPlace, *, masters: bool) -> _Held:
    """The same for all clusters on which devices hold as much; the newest few are kept."""
    # More devices hold as much each where nothing is shared out, and there are several.
    shards, copies = place.shards, place.copies
    if sharding.is_whole:
        shards, copies = 1, min(copies, 2)
    is_processor = place.capacity_bytes is None
    key = (sharding, shards, copies, masters, is_processor)
    kept: _Held | None = step.known.get(key)
    if kept is not None:
        return kept
    rounding = rounding_of(step.framework)
    tensors = device_tensors(step, sharding, shards, copies, masters=masters)
    kinds = bytes_by_kind(tensors, rounding)
    is_tensorflow = step.framework == "tensorflow"
    held = _Held(
        tensors=tensors,
        by_kind=kinds[int(kinds.sum(axis=1).argmax())],
        played=None
        if is_processor
        else played_steps(tensors, expandable=is_tensorflow, rounding=rounding),
    )
    for oldest in list(step.known)[: 1 - _MOST_HELD]:  # threads of a server may do so at once
        step.known.pop(oldest, None)
    step.known[key] = held
    return held


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
    held: _Held,
    *,
    library: str,
) -> _Peaks:
    at_peak, peak = held.by_kind, held.played
    if place.capacity_bytes is None or peak is None:  # a processor
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
    kept = float(at_peak[:_NUM_KEPT].sum())
    cache = known.cache_of(library) * max(peak.allocated_bytes - kept, 0.0)
    reserved, runs = peak.reserved_bytes + cache, True
    if reserved > room:
        pressed = (
            played_steps(held.tensors, capacity_bytes=room, rounding=rounding_of(step.framework))
            if peak.allocated_bytes < room
            else None
        )
        runs = pressed is not None and not pressed.failed
        reserved = min(reserved, max(room, peak.allocated_bytes)) if runs else reserved
    return _Peaks(
        allocated=peak.allocated_bytes + workspace,
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
        interval = _bytes(value, known, number, kind, place.widening)
        return replace(interval, upper=None) if step.is_lower_bound else interval

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


def _largest_words(estimate: MemoryEstimate, read: _ReadSteps) -> str:
    """What is largest at the peak, such as `activations (most of layers.0.mlp)`."""
    inside = {part: value for part, value in estimate.parts.items() if part != OUTSIDE_PART}
    part = max(inside, key=lambda one: inside[one], default="")
    if not part or inside[part] <= 0:
        return ""
    words = "optimizer states" if part == "optimizer" else part
    if part not in _OF_MODULES:
        return words
    if part not in read.most:
        read.most[part] = most_words(read.modules, part)
    return f"{words} (most of {read.most[part]})" if read.most[part] else words
