"""Plans of devices that split a model among them: shards of a step, and stages of a pipeline.

PreparedJob, Degrees -> shard of the step -> times, with the exchanges that its groups wait for
                     -> stages -> a plan for each worker
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import Degrees
from driple.cluster.topology import Topology
from driple.remarks import Remark, remark
from driple.schemes.collectives import DeviceGroup
from driple.schemes.scheme import SchemeStep
from driple.schemes.split import (
    DENSE,
    EXPERTS,
    SplitGroups,
    split_groups,
    states_rule,
    states_sharding,
)
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.prepared_job import PreparedJob
from driple.step.exchange import passes_of, plan_exchange
from driple.step.plan import Message, OpTimes, StepPlan
from driple.step.stages import blocks_per_stage, plan_stages, stages_of
from driple.step.step_flow import PRODUCTS, GroupExchange

__all__ = ["SplitPlans", "split_assumptions", "split_plans", "with_split_plans"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_TENSOR = "tensor"  # name of the group that shares out matrices
# Of exchanges beside products, by what async TP gains in torchtitan: Llama 3.1 8B on 64 H100 (tp8)
# 1.10 times the tokens, 70B on 256 1.09 (benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md),
# which are 31 and 42 % of the exchanges' time here.
_HIDDEN_SHARE = 0.37


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitPlans:
    """What the devices of a replica do in a step.

    Attributes:
        plans: of a device of each stage; interleaved, of each device of the pipeline.
        update_s: seconds of such a device to update its share of the parameters.
    """

    plans: tuple[StepPlan, ...]
    update_s: tuple[float, ...]


def split_plans(
    job: PreparedJob, device: CalibratedDevice, groups: SplitGroups, degrees: Degrees
) -> SplitPlans:
    """Plans for each stage of a pipeline, or of one stage.

    Args:
        job: the whole training job.
        device: of every worker.
        groups: who exchanges with whom.
        degrees: how the model is split.

    Raises:
        GraphError: the graph cannot be split so.
    """
    own_job, shard = job.shard(degrees)
    times = _with_exchanges(own_job, own_job.times(device), groups, shard.exchanges)
    table = own_job.graph.parameters
    owners = np.where(shard.is_expert, EXPERTS, DENSE).astype(np.int64)
    if not len(table.gradients):
        owners = np.zeros(0, dtype=np.int64)
    share = _updated_share(table.nbytes, owners, groups, degrees)
    update_s = share * own_job.update_seconds(device)
    traffic = own_job.graph.traffic.without_states()
    graph = replace(own_job.graph, traffic=traffic)
    known = owners if shard.is_expert.any() else None
    if degrees.pipeline == 1:
        plan = plan_exchange(graph, times, states_rule(degrees.states), own_job.order, known)
        return SplitPlans(plans=(plan,), update_s=(update_s,))
    count = degrees.pipeline * degrees.virtual
    stages = stages_of(graph, times, count, own_job.order, known)
    handed = [one.handed_bytes for one in stages[:-1]]
    plans = plan_stages(
        stages,
        passes_of(graph),
        [groups.handed_s(nbytes, i) for i, nbytes in enumerate(handed)],
        handed,
        degrees.virtual,
    )
    held = [
        sum(one.parameter_share for one in stages[i :: degrees.pipeline])
        for i in range(degrees.pipeline)
    ]
    if states_sharding(degrees.states).shards_parameters:
        plans = [_gathered(one, graph.parameters.nbytes, owners, part)
                 for one, part in zip(plans, held, strict=True)]  # fmt: skip
    return SplitPlans(plans=tuple(plans), update_s=tuple(update_s * part for part in held))


def _updated_share(
    nbytes: IntArray, owners: IntArray, groups: SplitGroups, degrees: Degrees
) -> float:
    """Share of a device's parameters that it updates itself."""
    total = int(nbytes.sum())
    if states_sharding(degrees.states).is_whole or not total or not len(owners):
        return 1.0
    counts = np.where(owners == EXPERTS, groups.expert_replicas.count, groups.replicas.count)
    return float((nbytes / counts).sum() / total)


def _gathered(plan: StepPlan, nbytes: IntArray, owners: IntArray, part: float) -> StepPlan:
    """A stage that gathers its parameters once a step, before its first forward pass.

    FSDP keeps the parameters of a stage gathered for all micro-batches (torchtitan's
    `reshard_after_forward` with a pipeline).
    """
    sizes = np.bincount(owners, weights=nbytes.astype(np.float64), minlength=2)
    pulls = tuple(
        Message(group, part * size) for group, size in enumerate(sizes.tolist()) if size > 0
    )
    waits, *others = plan.segments
    needing = tuple(replace(one, needs=len(pulls)) for one in others)
    return replace(plan, pulls=pulls, segments=(waits, *needing))


def _with_exchanges(
    shard: PreparedJob, times: OpTimes, groups: SplitGroups, exchanges: Sequence[GroupExchange]
) -> OpTimes:
    """Times in which a device also waits for what its groups exchange."""
    if not exchanges:
        return times
    sent_bytes, exchange_s = np.zeros((2, len(times.duration_s)))
    tensors: list[tuple[IntArray, FloatArray]] = []  # what products may hide
    by_kind: dict[tuple[str, str, bool], list[GroupExchange]] = {}
    for exchange in exchanges:
        by_kind.setdefault((exchange.group, exchange.kind, exchange.is_hidden), []).append(exchange)
    for (name, kind, is_hidden), some in by_kind.items():
        group, nodes = groups.named(name), np.array([one.node for one in some])
        sizes = np.array([one.nbytes for one in some], dtype=np.float64)
        turns = shard.executions[nodes]
        took_s = turns * _seconds(group, kind, sizes)
        if is_hidden:
            hides = (group.count - 1) / group.count if kind == "ring" else 1.0
            took_s = np.maximum(took_s - hides * times.duration_s[nodes], 0.0)
        elif name == _TENSOR and shard.program.tensor_overlap:
            tensors.append((nodes, took_s))
        np.add.at(exchange_s, nodes, took_s)
        np.add.at(sent_bytes, nodes, turns * _sent_bytes(group, kind, sizes))
    hidden = _hidden_share(shard, times, sum(float(took_s.sum()) for _, took_s in tensors))
    for nodes, took_s in tensors:
        np.add.at(exchange_s, nodes, -hidden * took_s)
    return replace(
        times,
        duration_s=times.duration_s + exchange_s,
        sent_bytes=sent_bytes,
        exchange_s=exchange_s,
    )


def _hidden_share(shard: PreparedJob, times: OpTimes, exchanged_s: float) -> float:
    """Share of a tensor group's exchanges that the products next to them hide, chunk by chunk.

    They hide no more than they last.
    """
    is_product = np.isin(np.array(shard.graph.kinds), sorted(PRODUCTS))
    products_s = float(times.duration_s[is_product].sum())
    return min(_HIDDEN_SHARE, products_s / exchanged_s) if exchanged_s else 0.0


def _seconds(group: DeviceGroup, kind: str, sizes: FloatArray) -> FloatArray:
    """A ring of shares takes as long as their all-gather."""
    return group.seconds("all_gather" if kind == "ring" else kind, sizes)  # type: ignore[arg-type]


def _sent_bytes(group: DeviceGroup, kind: str, sizes: FloatArray) -> FloatArray:
    return group.sent_bytes("all_gather" if kind == "ring" else kind, sizes)  # type: ignore[arg-type]


def with_split_plans(step: SchemeStep, job: PreparedJob, device: CalibratedDevice) -> SchemeStep:
    """A step with the plan of each worker, by its stage.

    Raises:
        GraphError: the graph cannot be split so.
        SettingError: the setting does not name a link that is crossed.
    """
    degrees = step.topology.degrees
    split = split_plans(job, device, split_groups(step), degrees)
    of_stage = len(step.topology.workers) // degrees.pipeline
    return replace(
        step,
        plans=tuple(plan for plan in split.plans for _ in range(of_stage)),
        update=replace(
            step.update,
            update_s=tuple(seconds for seconds in split.update_s for _ in range(of_stage)),
        ),
    )


def split_assumptions(job: PreparedJob, topology: Topology) -> tuple[Remark, ...]:
    """What an answer about devices that split a model assumes."""
    remarks = []
    degrees = topology.degrees
    if degrees.of_replica > 1:
        replicas = len(topology.workers) // degrees.of_replica
        remarks.append(
            remark("batch_of_replica", num_replicas=replicas, num_devices=degrees.of_replica)
        )
    if degrees.tensor > 1:
        remarks.append(remark("sequence_parallelism"))
    if degrees.expert > 1:
        remarks.append(remark("even_all_to_all", num_devices=degrees.expert))
    if degrees.tensor > topology.devices_per_machine:
        remarks.append(
            remark(
                "tensor_group_spans_machines",
                num_devices=degrees.tensor,
                devices_per_machine=topology.devices_per_machine,
            )
        )
    if degrees.pipeline > 1:
        passes = passes_of(job.graph)
        remarks.append(remark("pipeline_passes", num_stages=degrees.pipeline, num_passes=passes))
        place = np.empty(job.graph.num_nodes, dtype=np.int64)
        place[job.order] = np.arange(len(job.order))
        sizes = blocks_per_stage(job.graph, place, degrees.pipeline * degrees.virtual)
        if len(set(sizes)) > 1:
            remarks.append(remark("uneven_stages", num_blocks=sum(sizes), blocks_per_stage=sizes))
    return tuple(remarks)
