"""Replicas of several devices each, by tensor and pipeline parallelism: the scheme `split`.

    devices  0 1 2 3 4 5 6 7 on tp2-pp2: tensor groups 01 23 45 67, replicas 0145 2367,
                                         stages 0123 4567, gradients 02 13 46 57

Neighbouring devices are a tensor group, neighbouring groups the replicas of one stage, as
Megatron-LM places them. A tensor group adds up activations, for which its devices wait; a stage
hands activations and their gradients to its neighbour, each device of a tensor group a share of
them, which the group then gathers; gradients are added up by the replicas of a stage, in buckets
beside its last backward pass, as in `ddp`. Groups on the same machine share its network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import SPLIT
from driple.errors import SettingError
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.ddp import Ddp
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import RunsLike, SchemeStep, Sharding, bytes_of, group_of, messages_of
from driple.schemes.timeline import StepCollectives, StepUpdate, Workers, simulate_together

__all__ = ["SplitGroups", "SplitScheme", "split_groups"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitGroups:
    """Who exchanges with whom.

    Attributes:
        tensor: devices that share the matrices of each block.
        replicas: devices with the same share of the same stage.
        handing: hop from each stage to the next, for one device among all that hand on at once;
            one fewer than stages.
    """

    tensor: DeviceGroup
    replicas: DeviceGroup
    handing: tuple[Hop, ...]

    def handed(self, nbytes: float, hop: int) -> tuple[float, float]:
        """Seconds in which activations go from one stage to the next, and bytes that a device
        sends meanwhile.

        Args:
            nbytes: of the whole tensor.
            hop: number of the earlier stage.
        """
        share = nbytes / self.tensor.count
        one, whole = self.handing[hop], np.array([nbytes])
        seconds = one.latency_s + share / one.bytes_per_s
        gathers_s = float(self.tensor.seconds("all_gather", whole)[0])
        return seconds + gathers_s, share + float(self.tensor.sent_bytes("all_gather", whole)[0])


def split_groups(step: SchemeStep) -> SplitGroups:
    """The groups of a step on its machines.

    Raises:
        SettingError: the setting does not name a link that is crossed.
    """
    topology = step.topology
    everyone = group_of(step)
    of_stage = len(topology.workers) // topology.pipeline
    per_machine = topology.devices_per_machine
    handing = []
    for begin in range(of_stage, len(topology.workers), of_stage):
        crosses = any(
            topology.worker_machine[begin + i] != topology.worker_machine[begin - of_stage + i]
            for i in range(of_stage)
        )
        hop = everyone.within
        if crosses and everyone.between is not None:
            hop = _shared(everyone.between, min(of_stage, per_machine))
        if hop is None:
            raise SettingError("the link between stages is not known; name it, as in 8xV100/NVLink")
        handing.append(hop)
    return SplitGroups(
        tensor=_part(everyone, topology.tensor, 1, per_machine),
        replicas=_part(everyone, of_stage // topology.tensor, topology.tensor, per_machine),
        handing=tuple(handing),
    )


def _part(everyone: DeviceGroup, count: int, stride: int, per_machine: int) -> DeviceGroup:
    """Devices that lie `stride` apart, one of as many such groups as a machine has room for."""
    inside = max(1, min(count, per_machine // stride))
    machines = -(-count // inside)
    between = everyone.between if machines > 1 else None
    return DeviceGroup(
        count=count,
        machines=machines,
        within=everyone.within if inside > 1 else None,
        between=None if between is None else _shared(between, per_machine // inside),
    )


def _shared(hop: Hop, users: int) -> Hop:
    """A hop that several groups of a machine use at once."""
    return replace(hop, bytes_per_s=hop.bytes_per_s / max(users, 1))


class SplitScheme(Ddp):
    """The scheme `split`: tensor and pipeline parallelism, replicas of which are `ddp`.

    A device holds all parameters, gradients and states of its shard of a stage. Gradients lie side
    by side, so that buckets are parts of them, and are in fp32 beside an optimizer with masters.
    """

    name = SPLIT
    sharding: Sharding | None = Sharding(has_wide_gradients=True)

    def runs_like(self, num_workers: int) -> RunsLike:
        """A kind of its own: no stated error is of it."""
        return RunsLike(
            times="tensor or pipeline parallelism", memory="single", is_nearest_memory=True
        )

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Never: its degrees are the user's choice."""
        return False

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        topology = step.topology
        group = split_groups(step).replicas
        of_stage = len(topology.workers) // topology.pipeline
        stages = []
        for begin in range(0, len(topology.workers), of_stage):
            part = slice(begin, begin + of_stage)
            sizes = step.share * bytes_of(messages_of(step.plans[begin]))
            stages.append(
                Workers(
                    update=_part_of(step.update, part),
                    exchange=StepCollectives(
                        send_s=self._seconds(group, sizes),
                        send_bytes=self._sent_bytes(group, sizes),
                    ),
                    plans=step.plans[part],
                )
            )
        found = simulate_together(stages, num_steps, seed)
        return [record for records in found for record in records]


def _part_of(update: StepUpdate, part: slice) -> StepUpdate:
    return replace(update, update_s=update.update_s[part])
