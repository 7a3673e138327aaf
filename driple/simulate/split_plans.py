"""Plans of devices that split a model among them: tensor shards, and stages of a pipeline.

PreparedJob, degree -> shard of the step -> times, with the sums that its group waits for
                    -> stages -> a plan for each worker
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driple.cluster.topology import Topology
from driple.remarks import Remark, remark
from driple.schemes.scheme import SchemeStep
from driple.schemes.split import SplitGroups, split_groups
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.prepared_job import PreparedJob
from driple.step.exchange import BUCKETS, passes_of, plan_exchange
from driple.step.plan import OpTimes, StepPlan
from driple.step.stages import plan_stages, stages_of
from driple.step.tensor_shard import TensorShard

__all__ = ["SplitPlans", "split_assumptions", "split_plans", "with_split_plans"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitPlans:
    """What the devices of a replica do in a step.

    Attributes:
        plans: of a device of each stage.
        update_s: seconds of such a device to update its share of the parameters.
    """

    plans: tuple[StepPlan, ...]
    update_s: tuple[float, ...]


def split_plans(job: PreparedJob, device: CalibratedDevice, groups: SplitGroups) -> SplitPlans:
    """Plans for each stage of a pipeline, or of one stage.

    Args:
        job: the whole training job.
        device: of every worker.
        groups: who exchanges with whom.

    Raises:
        GraphError: the graph has no blocks that can be split so.
    """
    shard, sums = job.tensor_shard(groups.tensor.count)
    times = _with_sums(shard, shard.times(device), groups, sums)
    update_s = shard.update_seconds(device)
    traffic = shard.graph.traffic.without_states()
    graph = replace(shard.graph, traffic=traffic)
    if not groups.handing:
        plan = plan_exchange(graph, times, BUCKETS, shard.order)
        return SplitPlans(plans=(plan,), update_s=(update_s,))
    stages = stages_of(graph, times, 1 + len(groups.handing), shard.order)
    handed = [groups.handed(one.handed_bytes, i) for i, one in enumerate(stages[:-1])]
    plans = plan_stages(
        stages,
        passes_of(graph),
        [seconds for seconds, _ in handed],
        [nbytes for _, nbytes in handed],
    )
    return SplitPlans(
        plans=tuple(plans), update_s=tuple(update_s * one.parameter_share for one in stages)
    )


def _with_sums(
    shard: PreparedJob,
    times: OpTimes,
    groups: SplitGroups,
    sums: TensorShard,
) -> OpTimes:
    """Times in which a device also waits for the sums of its tensor group."""
    reduced, reduced_bytes = sums.reduced, sums.reduced_bytes
    if not len(reduced):
        return times
    turns = shard.executions[reduced]
    sent_bytes, exchange_s = np.zeros((2, len(times.duration_s)))
    exchange_s[reduced] += turns * groups.tensor.seconds("all_reduce", reduced_bytes)
    sent_bytes[reduced] += turns * groups.tensor.sent_bytes("all_reduce", reduced_bytes)
    return replace(
        times,
        duration_s=times.duration_s + exchange_s,
        sent_bytes=sent_bytes,
        exchange_s=exchange_s,
    )


def with_split_plans(step: SchemeStep, job: PreparedJob, device: CalibratedDevice) -> SchemeStep:
    """A step with the plan of each worker, by its stage.

    Raises:
        GraphError: the graph has no blocks that can be split so.
        SettingError: the setting does not name a link that is crossed.
    """
    made = split_plans(job, device, split_groups(step))
    of_stage = len(step.topology.workers) // step.topology.pipeline
    return replace(
        step,
        plans=tuple(plan for plan in made.plans for _ in range(of_stage)),
        update=replace(
            step.update,
            update_s=tuple(seconds for seconds in made.update_s for _ in range(of_stage)),
        ),
    )


def split_assumptions(job: PreparedJob, topology: Topology) -> tuple[Remark, ...]:
    """What an answer about devices that split a model assumes."""
    found = []
    tensor, pipeline = topology.tensor, topology.pipeline
    if tensor * pipeline > 1:
        replicas = len(topology.workers) // (tensor * pipeline)
        found.append(
            remark("batch_of_replica", num_replicas=replicas, num_devices=tensor * pipeline)
        )
    if tensor > 1:
        found.append(remark("no_sequence_parallelism"))
    if tensor > topology.devices_per_machine:
        found.append(
            remark(
                "tensor_group_spans_machines",
                num_devices=tensor,
                devices_per_machine=topology.devices_per_machine,
            )
        )
    if pipeline > 1:
        passes = passes_of(job.graph)
        found.append(remark("pipeline_passes", num_stages=pipeline, num_passes=passes))
    return tuple(found)
