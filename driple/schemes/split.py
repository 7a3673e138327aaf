"""Replicas of several devices each: the scheme `split`.

    devices  0 1 2 3 4 5 6 7 on tp2-pp2: tensor groups 01 23 45 67, replicas 0145 2367,
                                         stages 0123 4567, gradients 02 13 46 57

Neighbouring devices are a tensor group, neighbouring tensor groups a context group, then come
replicas, as Megatron-LM places them; neighbours are an expert group, too. A tensor group adds up
activations, for which its devices wait; an expert group exchanges tokens; a stage hands activations
and their gradients to its neighbour, each device its share. Gradients are added up by the devices
with the same parameters, in buckets beside the last backward pass, as in `ddp`, or shared out among
them, as in `zero1`, `zero2` and `fsdp`: those of experts by fewer devices. Groups on the same
machine share its network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import SPLIT, Degrees
from driple.errors import SettingError
from driple.schemes.collectives import CollectiveKind, DeviceGroup, Hop
from driple.schemes.ddp import Ddp
from driple.schemes.fsdp import Fsdp
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import RunsLike, SchemeStep, Sharding, bytes_of, group_of, messages_of
from driple.schemes.timeline import StepCollectives, Workers, simulate_together
from driple.schemes.zero1 import Zero1
from driple.schemes.zero2 import Zero2
from driple.step.exchange import BUCKETS, ExchangeRule
from driple.step.plan import Message, StepPlan

__all__ = [
    "DENSE",
    "EXPERTS",
    "SplitGroups",
    "SplitScheme",
    "split_groups",
    "states_rule",
    "states_sharding",
]

FloatArray = npt.NDArray[np.float64]


DENSE, EXPERTS = range(2)
"""Groups that add up gradients, as messages of a plan name them."""
_STATES: dict[str, Ddp] = {one.name: one for one in (Ddp(), Zero1(), Zero2(), Fsdp())}


_ALONE = DeviceGroup(count=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitGroups:
    """Who exchanges with whom.

    Attributes:
        tensor: devices that share the matrices of each block.
        context: devices that share the tokens of a sample.
        expert: devices that share the experts of a layer.
        replicas: devices with the same share of the same stage.
        expert_replicas: devices with the same experts of the same stage.
        handing: hop from each stage to the next, for one device among all that hand on at once;
            one fewer than stages.
    """

    tensor: DeviceGroup
    replicas: DeviceGroup
    context: DeviceGroup = _ALONE
    expert: DeviceGroup = _ALONE
    expert_replicas: DeviceGroup = _ALONE
    handing: tuple[Hop, ...] = ()

    def named(self, group: str) -> DeviceGroup:
        """The group of an exchange of activations: `tensor`, `context` or `expert`."""
        return {"tensor": self.tensor, "context": self.context, "expert": self.expert}[group]

    def handed_s(self, nbytes: float, hop: int) -> float:
        """Seconds in which a device's share of activations goes from one stage to the next.

        Args:
            nbytes: of the share.
            hop: number of the earlier stage.
        """
        link = self.handing[hop]
        return link.latency_s + nbytes / link.bytes_per_s


def split_groups(step: SchemeStep) -> SplitGroups:
    """The groups of a step on its machines.

    Raises:
        SettingError: the setting does not name a link that is crossed.
    """
    topology = step.topology
    everyone = group_of(step)
    degrees = topology.degrees
    of_stage = len(topology.workers) // degrees.pipeline
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
    if degrees.virtual > 1:  # the last device hands to the first one
        hops = [*handing, max(handing, key=lambda hop: 1 / hop.bytes_per_s)] * degrees.virtual
        handing = hops[: degrees.pipeline * degrees.virtual - 1]

    def part(count: int, stride: int) -> DeviceGroup:
        return _part(everyone, count, stride, per_machine)

    return SplitGroups(
        tensor=part(degrees.tensor, 1),
        context=part(degrees.context, degrees.tensor),
        expert=part(degrees.expert, 1),
        replicas=part(of_stage // degrees.tensor, degrees.tensor),
        expert_replicas=part(of_stage // degrees.expert, degrees.expert),
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
    """The scheme `split`: a replica is several devices, or its experts are on several.

    A device holds all parameters, gradients and states of its shard of a stage, or shares them out
    among the devices that hold the same. Gradients lie side by side, so that buckets are parts of
    them, and are in fp32 beside an optimizer with masters.
    """

    name = SPLIT
    sharding: Sharding | None = Sharding(has_wide_gradients=True)

    def sharding_of(self, degrees: Degrees) -> Sharding | None:
        """What a device holds: of `zero1` Megatron's distributed optimizer, of others their own."""
        shared = _STATES[degrees.states].sharding
        if shared is None or shared.is_whole or self.sharding is None:
            return self.sharding
        if shared.shards_gradients:
            return shared
        return replace(self.sharding, shards_states=True)

    def runs_like(self, num_workers: int) -> RunsLike:
        """A kind of its own; memory as on one device, in a wider interval."""
        return RunsLike(
            times="split",
            memory="single",
            is_nearest_memory=True,
        )

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Not by its name: `driple.planning.degrees` chooses its degrees."""
        return False

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        topology, groups = step.topology, split_groups(step)
        of_stage = len(topology.workers) // topology.degrees.pipeline
        stages = []
        for begin in range(0, len(topology.workers), of_stage):
            part = slice(begin, begin + of_stage)
            stages.append(
                Workers(
                    update=replace(step.update, update_s=step.update.update_s[part]),
                    exchange=_collectives(step, step.plans[begin], groups),
                    plans=step.plans[part],
                )
            )
        by_group = simulate_together(stages, num_steps, seed)
        return [record for records in by_group for record in records]


def states_sharding(states: str) -> Sharding:
    """What replicas of several devices share out, by the name of the scheme that does."""
    return _STATES[states].sharding or Sharding()


def states_rule(states: str) -> ExchangeRule:
    """How a replica of one stage groups its gradients."""
    return _STATES[states].rule("buckets") or BUCKETS


def _collectives(step: SchemeStep, plan: StepPlan, groups: SplitGroups) -> StepCollectives:
    """Gathers of parameters and sums of gradients of one stage."""
    sharding = states_sharding(step.topology.degrees.states)
    messages = messages_of(plan)
    if sharding.is_whole:
        return StepCollectives(
            send_s=_of_groups("seconds", "all_reduce", messages, groups, step.share),
            send_bytes=_of_groups("sent_bytes", "all_reduce", messages, groups, step.share),
        )
    after = () if sharding.shards_parameters else messages[len(messages) - plan.num_last_sends :]
    return StepCollectives(
        gather_s=_of_groups("seconds", "all_gather", plan.pulls, groups),
        gather_bytes=_of_groups("sent_bytes", "all_gather", plan.pulls, groups),
        send_s=_of_groups("seconds", "reduce_scatter", messages, groups, step.share),
        send_bytes=_of_groups("sent_bytes", "reduce_scatter", messages, groups, step.share),
        after_s=_of_groups("seconds", "all_gather", after, groups, step.share),
        after_bytes=_of_groups("sent_bytes", "all_gather", after, groups, step.share),
    )


def _of_groups(
    what: Literal["seconds", "sent_bytes"],
    kind: CollectiveKind,
    messages: Sequence[Message],
    groups: SplitGroups,
    share: float = 1.0,
) -> FloatArray:
    """Seconds, or bytes that a device sends, of the collective of each message in its group."""
    sizes = share * bytes_of(messages)
    own = np.array([one.server for one in messages], dtype=np.int64)
    amounts = np.zeros(len(sizes))
    for number, group in ((DENSE, groups.replicas), (EXPERTS, groups.expert_replicas)):
        chosen = own == number
        amounts[chosen] = getattr(group, what)(kind, sizes[chosen])
    return amounts
