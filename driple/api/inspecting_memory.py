"""`inspect --memory`: memory of one device over a step, what is there at the peak, and where.

Job, Setting -> StepTimeline of the device -> InspectedMemory: kinds, modules, a curve
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from driple.api.memory import JobMemory, memory_beside, memory_dict
from driple.cluster.setting import Setting
from driple.graph.step_facts import Phase
from driple.jobs.load import Job
from driple.memory.graph_lifetimes import with_lifetimes
from driple.memory.modules import modules_joined
from driple.memory.on_device import device_timeline
from driple.memory.place import MemoryPlace
from driple.memory.timeline import StepTimeline
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.api.json_types.inspect import StepMemoryJson

__all__ = ["InspectedMemory", "inspected_memory"]

_CURVE_POINTS = 200
_PHASES: Mapping[int, str] = {
    Phase.FORWARD: "forward pass",
    Phase.BACKWARD: "backward pass",
    Phase.UPDATE: "update",
    Phase.RECOMPUTE: "backward pass (recomputing)",
}
_NOTES: Mapping[str, tuple[Remark, ...]] = {
    "tensorflow": (remark("whole_gpu_taken"), remark("order_of_ops")),
}
_UPDATE = "the optimizer's update"


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedMemory:
    """Memory of a job on one device.

    Attributes:
        beside: the three numbers and whether it fits; None on a processor.
        timeline: over one step.
        peak_op: op at the peak; empty in the update.
        peak_module: its module or name scope; empty if unknown.
        peak_phase: part of the step.
        phases: part of the step at each node; empty if unknown.
        has_update: whether parameters are updated at the end.
        notes: what else a user should know.
    """

    beside: JobMemory | None
    timeline: StepTimeline
    peak_op: str
    peak_module: str
    peak_phase: str
    phases: tuple[str, ...] = ()
    has_update: bool = True
    notes: tuple[Remark, ...] = ()

    def to_dict(self, depth: int) -> StepMemoryJson:
        """The `memory` of `driple inspect --memory --json`."""
        line = self.timeline
        points = _curve_points(line)
        return {
            "estimate": memory_dict(self.beside),
            "notes": self.notes,
            "peak_bytes": line.peak_bytes,
            "peak_at": line.peak_at,
            "peak_phase": self.peak_phase,
            "peak_op": self.peak_op,
            "peak_module": self.peak_module,
            "at_peak_bytes": line.at_peak(),
            "modules": [
                {"module": one.module, "count": one.count, "bytes": one.by_kind}
                for one in modules_joined(line.modules, depth)
            ],
            "curve": {
                "node": points,
                "bytes": {
                    kind: line.nbytes[points, i].tolist() for i, kind in enumerate(line.kinds)
                },
            },
        }


def inspected_memory(job: Job, setting: Setting) -> InspectedMemory:
    """The memory of a job over a step on one device of a setting.

    Raises:
        GraphError: the graph does not show how long its tensors live, or the memory of the scheme
            is unknown.
    """
    graph = with_lifetimes(job.graph)
    line = device_timeline(graph, setting, MemoryPlace.of_job(job, setting)[0])
    names = tuple(_PHASES.get(one, "") for one in graph.phases.tolist())
    at = line.peak_at
    in_update = line.is_peak_in_update and job.trains
    at = min(at, graph.num_nodes - 1)
    module = ""
    if len(graph.module_of) and graph.module_of[at] >= 0:
        module = graph.modules[graph.module_of[at]]
    elif not graph.modules:
        module = graph.names[at].rpartition("/")[0]
    return InspectedMemory(
        beside=memory_beside(replace(job, graph=graph), setting),
        timeline=line,
        peak_op="" if in_update else graph.op_types[at],
        peak_module="" if in_update else module,
        peak_phase=_UPDATE if in_update else names[at] if names else "",
        phases=names,
        has_update=job.trains,
        notes=_NOTES.get(graph.framework, ()),
    )


def _curve_points(line: StepTimeline) -> list[int]:
    """At most some hundred nodes: of each stretch of the step the one with the most."""
    total = line.total_bytes
    edges = np.linspace(0, len(total), min(len(total), _CURVE_POINTS) + 1).astype(int)
    return [int(a + total[a:b].argmax()) for a, b in pairwise(edges.tolist()) if b > a]
