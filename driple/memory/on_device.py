"""Timeline of one device of a setting, whose scheme may share out the model and add buffers.

OpGraph, Setting -> StepTimeline, with communication buffers as a kind of its own
"""

from __future__ import annotations

from dataclasses import replace

from driple.cluster.setting import Setting
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.memory.device_tensors import device_tensors
from driple.memory.events import bytes_by_kind
from driple.memory.graph_lifetimes import rounding_of
from driple.memory.place import MemoryPlace, modelled_schemes
from driple.memory.split_model import device_steps
from driple.memory.timeline import KINDS, ModuleBytes, StepTimeline, modules_at

__all__ = ["COMMUNICATION", "device_timeline"]

COMMUNICATION = "communication"


def device_timeline(
    graph: OpGraph, setting: Setting, place: MemoryPlace | None = None
) -> StepTimeline:
    """Allocated bytes of one device over a step; of unlike stages, of that with most.

    Args:
        graph: of one worker's step.
        setting: cluster and scheme.
        place: its device, where a job keeps a part of what it holds on the host.

    Raises:
        GraphError: the graph has no lifetimes, or the memory of the scheme is unknown.
    """
    place = place or MemoryPlace.of(setting)
    if place.sharding is None:
        raise GraphError(
            f"the memory of scheme {place.scheme} over a step is not modelled; give a setting with "
            f"one of {', '.join(modelled_schemes())}"
        )
    steps = device_steps(graph, place.degrees)
    stages = [
        bytes_by_kind(
            device_tensors(step, place.sharding, place.shards, place.copies),
            rounding_of(graph.framework),
        )
        for step in steps
    ]
    nbytes = max(stages, key=lambda one: int(one.sum(axis=1).max()))
    timeline = StepTimeline(nbytes=nbytes, modules=(), kinds=(*KINDS, COMMUNICATION))
    return replace(timeline, modules=_shared_out(graph, timeline))


def _shared_out(graph: OpGraph, timeline: StepTimeline) -> tuple[ModuleBytes, ...]:
    """What a device with the whole model has there, in proportion to what this device has."""
    whole = modules_at(graph, timeline.peak_at)
    here = timeline.at_peak()
    sums: dict[str, int] = dict.fromkeys(here, 0)
    for row in whole:
        sums[row.kind] += row.nbytes
    rows = [
        replace(one, nbytes=round(one.nbytes * here[one.kind] / sums[one.kind]))
        for one in whole
        if sums[one.kind] and here[one.kind]
    ]
    rows += [
        ModuleBytes(module="", kind=kind, nbytes=nbytes)
        for kind, nbytes in here.items()
        if nbytes and not sums[kind]
    ]
    return tuple(sorted(rows, key=lambda one: (-one.nbytes, one.module, one.kind)))
