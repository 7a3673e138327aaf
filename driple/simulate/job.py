"""A graph made ready for simulating it on many settings: what does not change is found once.

OpGraph -> Job: kinds of ops, order of execution, times on each device, plan for each placement
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.placement import Strategy, gradients_to, place_variables
from driple.simulate.device import CalibratedDevice
from driple.simulate.kernels import op_times
from driple.simulate.live import executed_nodes
from driple.simulate.optable import OpTable
from driple.simulate.plan import OpTimes, StepPlan, execution_order, plan_step

__all__ = ["Job", "is_synchronous"]

# A graph whose gradients are added up before they are applied waits for all workers.
_ADDS_UP = ("ConditionalAccumulator", "ResourceConditionalAccumulator", "AccumulatorTakeGradient")
# Reads and writes of an optimizer per element of a parameter: gradient, parameter, slots.
_ACCESSES = {
    "ApplyGradientDescent": 3,
    "ApplyMomentum": 5,
    "ApplyRMSProp": 7,
    "ApplyAdam": 7,
}
_USUAL_ACCESSES = 5
# Seconds that a step may keep a device: not less than the start of one kernel, and no more than a
# day. Outside, sizes or turns of loops in the graph are not those of a training step.
_SHORTEST_STEP_S, _LONGEST_STEP_S = 1e-6, 86_400.0


class Job:
    """One training job.

    Attributes:
        graph: of one worker's step.

    Raises:
        GraphError: the graph does not tell what its ops compute on.
    """

    def __init__(self, graph: OpGraph) -> None:
        if len(graph.signature_of) != graph.num_nodes:
            raise GraphError(
                "graph holds no shapes of its ops' inputs, which their times depend on; read it "
                "from its GraphDef again"
            )
        self.graph = graph
        self._times: dict[str, OpTimes] = {}
        self._plans: dict[tuple[str, int, Strategy], StepPlan] = {}

    @cached_property
    def table(self) -> OpTable:
        """Kinds of ops."""
        return OpTable.of(self.graph.signatures)

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Order of execution."""
        return execution_order(self.graph)

    @cached_property
    def executions(self) -> npt.NDArray[np.int64]:
        """Turns of each node in a step; 0 for what nobody reads."""
        return self.graph.executions * executed_nodes(self.graph)

    def forget_times(self) -> None:
        """Have the next simulation work out all times anew: another calibration is coming."""
        self._times.clear()
        self._plans.clear()

    def times(self, device: CalibratedDevice) -> OpTimes:
        """Times of its ops on a device."""
        name = device.spec.name
        if name not in self._times:
            self._times[name] = op_times(
                self.table,
                self.graph.signature_of,
                self.executions,
                device.spec,
                device.efficiency,
            )
        return self._times[name]

    def plan(self, device: CalibratedDevice, num_servers: int, placement: Strategy) -> StepPlan:
        """The step of a worker with this device; without servers, all messages name server 0.

        Raises:
            GraphError: the ops would take no time, or more than a day.
        """
        key = (device.spec.name, num_servers, placement)
        if key not in self._plans:
            traffic = self.graph.traffic
            holders = place_variables(traffic.received_bytes, max(num_servers, 1), placement)
            takers = gradients_to(traffic.sent_bytes, traffic.received_bytes, holders)
            plan = plan_step(
                self.graph, self.times(device), holders.tolist(), takers.tolist(), self.order
            )
            _check_length(plan.compute_s, device.spec.name)
            self._plans[key] = plan
        return self._plans[key]

    def update_seconds(self, device: CalibratedDevice) -> float:
        """Seconds of a device to apply a step's gradients itself, as it does without servers."""
        found = {
            name: ops.num_nodes
            for ops in self.graph.remote
            for name in _ACCESSES
            if ops.op_type in {name, f"Resource{name}"}
        }
        name = max(found, key=lambda one: found[one], default="")
        moved = _ACCESSES.get(name, _USUAL_ACCESSES) * self.graph.received_bytes
        reached = device.efficiency.device
        starting_s = found.get(name, 0) * reached.start_s
        return moved / (device.spec.bytes_per_s * reached.memory) + starting_s


def _check_length(compute_s: float, device: str) -> None:
    """Raise GraphError unless a step's computing takes a believable time."""
    if compute_s < _SHORTEST_STEP_S:
        raise GraphError(
            f"a step of the graph would take {compute_s:.3g} s on {device}, as its ops have no "
            "work of known size; write the graph of a training step with "
            "as_graph_def(add_shapes=True)"
        )
    if not compute_s <= _LONGEST_STEP_S:
        raise GraphError(
            f"a step of the graph would take {compute_s:.3g} s on {device}, at most "
            f"{_LONGEST_STEP_S:.0f} are simulated; its tensor sizes or the turns of its loops are "
            "not those of a training step"
        )


def is_synchronous(graph: OpGraph) -> bool:
    """Whether the gradients of all workers are added up before they are applied."""
    return any(ops.op_type in _ADDS_UP for ops in graph.remote)
