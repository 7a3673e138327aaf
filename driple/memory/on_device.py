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
from driple.memory.graph_lifetimes import rounding_of, with_lifetimes
from driple.memory.place import MemoryPlace, modelled_schemes
from driple.memory.step_memory import StepMemory
from driple.memory.timeline import KINDS, ModuleBytes, StepTimeline, modules_at
from driple.step.plan import execution_order
from driple.step.tensor_shard import tensor_shard

__all__ = ["COMMUNICATION", "device_timeline"]

COMMUNICATION = "communication"


def device_timeline(
    graph: OpGraph, setting: Setting, place: MemoryPlace | None = None
) -> StepTimeline:
    """Allocated bytes of one device over a step.

    Args:
        graph: of one worker's step.
        setting: cluster and scheme.
        place: its device, where a job keeps a part of what it holds on the host.

    Raises:
        GraphError: the graph has no lifetimes, or the memory of the scheme is unknown.
    """
    place = place or MemoryPlace.of(setting)
    degree = setting.scheme.tensor
    if degree > 1 and setting.scheme.pipeline == 1:
        place, graph = place.of_tensor_group(degree), with_lifetimes(graph)
        graph = tensor_shard(graph, degree, execution_order(graph)).graph
    if place.sharding is None:
        raise GraphError(
            f"the memory of {setting.name} over a step is not modelled; give a setting with one of "
            f"{', '.join(modelled_schemes())} or tp"
        )
    tensors = device_tensors(StepMemory.of(graph), place.sharding, place.shards, place.replicas)
    nbytes = bytes_by_kind(tensors, rounding_of(graph.framework))
    made = StepTimeline(nbytes=nbytes, modules=(), kinds=(*KINDS, COMMUNICATION))
    return replace(made, modules=_shared_out(graph, made))


def _shared_out(graph: OpGraph, timeline: StepTimeline) -> tuple[ModuleBytes, ...]:
    """What a device with the whole model has there, in proportion to what this device has."""
    whole = modules_at(graph, timeline.peak_at)
    here = timeline.at_peak()
    sums: dict[str, int] = dict.fromkeys(here, 0)
    for one in whole:
        sums[one.kind] += one.nbytes
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
