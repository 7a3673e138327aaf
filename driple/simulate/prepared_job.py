"""A graph made ready for simulating it on many settings: what does not change is found once.

OpGraph -> Job: kinds of ops, order of execution, times on each device, plan for each placement
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.errors import GraphError
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.liveness import executed_nodes
from driple.graph.opgraph import OpGraph
from driple.graph.placement import Strategy, gradients_to, place_variables
from driple.remarks import Remark, remark
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import ProgramExchange, Scheme
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.fused import FusedOps, fused_times
from driple.simulate.gpu_kernels import Library, Runtime
from driple.simulate.gpu_times import GpuEfficiency, gpu_op_times, update_seconds
from driple.simulate.kernels import op_times
from driple.simulate.optable import OpTable
from driple.simulate.processor import processor_pace, processor_times, processor_update_s
from driple.step.device_shard import DeviceShard, device_shard
from driple.step.exchange import ExchangeRule, plan_exchange
from driple.step.plan import OpTimes, StepPlan, execution_order, plan_step

if TYPE_CHECKING:
    from driple.jobs.job import Job

__all__ = ["OpKinds", "PreparedJob", "Program", "assumptions_on", "closed_form_assumptions"]

# Seconds that a step may keep a device: not less than the start of one kernel, and no more than a
# day. Outside, sizes or turns of loops in the graph are not those of a training step.
_SHORTEST_STEP_S, _LONGEST_STEP_S = 1e-6, 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What a training program does that its graph does not tell.

    Attributes:
        synchronous: whether workers on servers wait for each other; None: as the graph has it.
        overlapped: whether gradients are exchanged while later ones are computed, as in Horovod and
            PyTorch; else when all are computed.
        ring_share: share of the gradients' bytes that is exchanged: a half if they are cast to half
            precision before.
        exchange: how gradients are exchanged without servers; None: buckets in PyTorch and ONNX,
            Horovod in TensorFlow.
        library: generation of the framework and its libraries; the present one if None.
        fused: whether a compiler fuses the ops (XLA) without groups in the graph.
        offload: what is kept on the host: `states`, `parameters`.
        by_engine: whether an engine of its own (DeepSpeed) updates parameters.
        cuda_graphs: whether the compiled step is replayed as CUDA graphs.
        tensor_overlap: whether devices that share tensors exchange them beside the products.
    """

    synchronous: bool | None = None
    overlapped: bool = True
    ring_share: float = 1.0
    exchange: ProgramExchange | None = None
    library: Library | None = None
    fused: bool = False
    offload: tuple[str, ...] = ()
    by_engine: bool = False
    cuda_graphs: bool = False
    tensor_overlap: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class OpKinds:
    """Kinds of the ops of a graph, and how often each op runs.

    Attributes:
        table: the kinds.
        kind_of: shape [num_nodes], row of each node in the table.
        executions: shape [num_nodes], turns of each node in a step; 0 for what does not run.
        order: shape [num_nodes], order of execution.
        fused: which ops a compiler fuses; None if it fuses none.
    """

    table: OpTable
    kind_of: npt.NDArray[np.integer]
    executions: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    fused: FusedOps | None = None

    @classmethod
    def of(cls, graph: OpGraph, cost: GraphCost) -> OpKinds:
        """The kinds of a graph's ops.

        Args:
            graph: of one worker's step.
            cost: of this graph.
        """
        return cls(
            table=OpTable.of_costs(cost.by_signature),
            kind_of=graph.signature_of,
            executions=graph.executions * executed_nodes(graph),
            order=execution_order(graph),
            fused=FusedOps.of(graph, cost),
        )


class PreparedJob:
    """One training job.

    Attributes:
        graph: of one worker's step.
        kinds: of its ops.
        program: what else the training program does.

    Args:
        graph: of one worker's step.
        kinds: of its ops; by default found in the graph.
        cost: of this graph, where it is known already.
        program: what else the training program does.

    Raises:
        GraphError: the graph does not tell what its ops compute on.
    """

    def __init__(
        self,
        graph: OpGraph,
        *,
        kinds: OpKinds | None = None,
        cost: GraphCost | None = None,
        program: Program = Program(),
    ) -> None:
        self.graph, self.program, self._cost = graph, program, cost
        self.kinds = OpKinds.of(graph, self.cost) if kinds is None else kinds
        self._times: dict[tuple[CalibratedDevice, bool], OpTimes] = {}
        self._plans: dict[tuple[CalibratedDevice, int, Strategy], StepPlan] = {}
        self._shards: dict[Degrees, tuple[PreparedJob, DeviceShard]] = {}
        self._exchanges: dict[tuple[CalibratedDevice, ExchangeRule], StepPlan] = {}

    @classmethod
    def of_job(cls, job: Job) -> PreparedJob:
        """A job as a user gave it, run by the library that it names."""
        program = Program(
            library=job.library,
            cuda_graphs=job.cuda_graphs,
            tensor_overlap=job.tensor_overlap,
            offload=job.offload,
            by_engine=job.bucket_elements is not None,
        )
        return cls(job.graph, cost=job.cost, program=program)

    @property
    def cost(self) -> GraphCost:
        """What each op of the graph costs, worked out once.

        Raises:
            GraphError: the graph does not tell what its ops compute on.
        """
        if self._cost is None:
            self._cost = cost_of_graph(self.graph)
        return self._cost

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Order of execution."""
        return self.kinds.order

    @property
    def executions(self) -> npt.NDArray[np.int64]:
        """Turns of each node in a step; 0 for what does not run."""
        return self.kinds.executions

    @property
    def is_synchronous(self) -> bool:
        """Whether workers on servers wait for each other."""
        if self.program.synchronous is None:
            return self.graph.is_synchronous
        return self.program.synchronous

    @property
    def exchange(self) -> ProgramExchange:
        """How gradients are exchanged without servers."""
        if self.program.exchange is None:
            return "horovod" if self.graph.framework == "tensorflow" else "buckets"
        return self.program.exchange

    def times(self, device: CalibratedDevice, *, updates: bool = True) -> OpTimes:
        """Times of its ops on a device, worked out once for each calibrated device.

        With `updates` the device also applies the gradients, which `update_seconds` adds: the host
        runs ahead in both. Without, parameter servers do.

        A `CalibratedDevice` is a value: one with the same name and another efficiency is another
        device, whose times are worked out anew.
        """
        updates = updates or not isinstance(device.efficiency, GpuEfficiency)
        if (device, updates) not in self._times:
            times = self._priced(device, updates=updates)
            known = len(self.graph.phases) == self.graph.num_nodes
            phases = self.graph.phases if known else None
            self._times[device, updates] = replace(times, phases=phases)
        return self._times[device, updates]

    def _priced(self, device: CalibratedDevice, *, updates: bool) -> OpTimes:
        kinds, efficiency = self.kinds, device.efficiency
        if isinstance(efficiency, GpuEfficiency):
            return gpu_op_times(
                kinds.table,
                kinds.kind_of,
                kinds.executions,
                kinds.fused,
                self.graph.update if updates else None,
                device.spec,
                efficiency,
                self.runtime,
                self.handed_tensors,
            )
        if self.is_on_processor(device):
            pace = processor_pace(device.spec)
            times = processor_times(kinds.table, kinds.kind_of, kinds.executions, pace)
        else:
            times = op_times(kinds.table, kinds.kind_of, kinds.executions, device.spec, efficiency)
        return times if kinds.fused is None else fused_times(times, kinds.fused)

    def is_on_processor(self, device: CalibratedDevice) -> bool:
        """Whether PyTorch's kernels for processors compute it."""
        return device.spec.is_cpu and self.runtime.library != "tensorflow"

    @property
    def handed_tensors(self) -> int:
        """Trained tensors whose gradients the host hands on one by one; TensorFlow's ops do it."""
        trains = self.graph.is_training and self.runtime.library != "tensorflow"
        return len(self.graph.traffic.without_states().sent_bytes) if trains else 0

    @property
    def runtime(self) -> Runtime:
        """Software that runs the step."""
        usual: Library = "tensorflow" if self.graph.framework == "tensorflow" else "torch2"
        compiled = self.program.fused or self.kinds.fused is not None
        return Runtime(
            self.program.library or usual,
            compiled=compiled,
            cuda_graphs=compiled and self.program.cuda_graphs,
        )

    def plan(self, device: CalibratedDevice, num_servers: int, placement: Strategy) -> StepPlan:
        """The step of a worker with this device; without servers, all messages name server 0.

        Raises:
            GraphError: the ops would take no time, or more than a day.
        """
        key = (device, num_servers, placement)
        if key not in self._plans:
            graph = self.graph
            if not num_servers:
                graph = replace(graph, traffic=graph.traffic.without_states())
            traffic = graph.traffic
            holders = place_variables(traffic.received_bytes, max(num_servers, 1), placement)
            takers = gradients_to(traffic.sent_bytes, traffic.received_bytes, holders)
            plan = plan_step(
                graph,
                self.times(device, updates=not num_servers),
                holders.tolist(),
                takers.tolist(),
                self.kinds.order,
            )
            _check_length(plan.compute_s, device.spec.name)
            self._plans[key] = plan
        return self._plans[key]

    def exchange_plan(self, device: CalibratedDevice, rule: ExchangeRule) -> StepPlan:
        """The step of a worker with this device that exchanges without servers.

        Raises:
            GraphError: the ops would take no time, or more than a day.
        """
        key = (device, rule)
        if key not in self._exchanges:
            graph = replace(self.graph, traffic=self.graph.traffic.without_states())
            plan = plan_exchange(graph, self.times(device), rule, self.kinds.order)
            _check_length(plan.compute_s, device.spec.name)
            self._exchanges[key] = plan
        return self._exchanges[key]

    def without_offload(self) -> PreparedJob:
        """The same job on devices that keep states and parameters themselves."""
        if not self.program.offload:
            return self
        program = replace(self.program, offload=())
        return PreparedJob(self.graph, kinds=self.kinds, cost=self._cost, program=program)

    def shard(self, degrees: Degrees) -> tuple[PreparedJob, DeviceShard]:
        """The job of one device of a replica, without regard to stages, and what it exchanges.

        Raises:
            GraphError: the graph cannot be split so.
        """
        key = replace(degrees, pipeline=1, virtual=1, states=Degrees().states)
        if key not in self._shards:
            shard = device_shard(self.graph, key, self.kinds.order)
            job = self if not shard.exchanges else PreparedJob(shard.graph, program=self.program)
            self._shards[key] = (job, shard)
        return self._shards[key]

    def update_seconds(self, device: CalibratedDevice) -> float:
        """Seconds of a device to apply a step's gradients itself, as it does without servers.

        Devices were fitted to steps of which the updates take their bytes alone.
        """
        update, efficiency = self.graph.update, device.efficiency
        if isinstance(efficiency, GpuEfficiency):
            return update_seconds(update, device.spec, efficiency)
        if self.is_on_processor(device):
            pace = processor_pace(device.spec)
            return processor_update_s(update.moved_bytes, self.handed_tensors, pace)
        return update.moved_bytes / (device.spec.bytes_per_s * efficiency.device.memory)


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


def assumptions_on(
    graph: OpGraph, setting: Setting, *, synchronous: bool | None = None
) -> tuple[Remark, ...]:
    """What a simulation assumes where a graph does not fit a setting, or leaves a choice open.

    A graph that is placed on parameter servers and adds up no gradients is of asynchronous
    training; one without servers shows neither.

    Args:
        graph: of one worker's step.
        setting: the cluster.
        synchronous: whether workers wait for each other, where the training program says it.
    """
    remarks = _placement(graph, setting)
    if synchronous is None and _leaves_open(graph) and _scheme_of(setting).uses_servers:
        remarks += (remark("taken_for_asynchronous"),) if setting.num_workers > 1 else ()
    return remarks


def closed_form_assumptions(graph: OpGraph, setting: Setting) -> tuple[Remark, ...]:
    """What a closed form of synchronous training assumes of a graph on a setting."""
    remarks = _placement(graph, setting)
    if graph.is_synchronous:
        return remarks
    if _leaves_open(graph):
        return (*remarks, remark("taken_for_synchronous"))
    return (*remarks, remark("asynchronous_graph"))


def _placement(graph: OpGraph, setting: Setting) -> tuple[Remark, ...]:
    """Where variables are, if the graph is made for another kind of cluster."""
    assumption = _scheme_of(setting).assumption(graph.layout, setting.num_workers)
    return () if assumption is None else (assumption,)


def _scheme_of(setting: Setting) -> Scheme:
    return scheme_named(setting.scheme.name)


def _leaves_open(graph: OpGraph) -> bool:
    """Whether nothing in the graph says if workers wait for each other."""
    return graph.layout in ("unplaced", "one_machine", "one_device") and not graph.is_synchronous
