"""Interface of a scheme of distributed training: a class with these members, registered by name.

    SchemeStep (roles, plans, links, rates) -> Scheme.simulate -> a WorkerRecord per worker
    Scheme.sharding       -> what a device holds, of which `driple.memory` makes bytes over time
    Scheme.is_planned -> whether `plan` tries it
    Scheme.runs_like  -> which published runs give the errors of its answers

A new scheme is one file with such a class and a row in `driple.schemes.registry`. No other module
compares names of schemes; a test enforces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import Degrees
from driple.cluster.topology import Topology
from driple.errors import SettingError
from driple.graph.opgraph import Layout
from driple.remarks import Remark
from driple.schemes.collectives import DeviceGroup
from driple.schemes.fair_shares import SharedLink
from driple.schemes.links import ReachedLink
from driple.schemes.records import WorkerRecord
from driple.schemes.timeline import StepUpdate
from driple.step.exchange import ExchangeRule
from driple.step.plan import Message, StepPlan

__all__ = [
    "RUN_KINDS",
    "ProgramExchange",
    "RunsLike",
    "Scheme",
    "SchemeStep",
    "ServerRates",
    "Sharding",
    "bytes_of",
    "group_of",
    "link_of",
    "messages_of",
]

# How a program exchanges gradients without servers: in buckets (PyTorch), fused while others are on
# their way (Horovod), or tensor by tensor (tf_cnn_benchmarks with variable_update=replicated).
ProgramExchange = Literal["buckets", "horovod", "tensors"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRates:
    """Rates of parameter servers and their machines.

    Attributes:
        bridge_bytes_per_s: rate between two roles of one machine, each way.
        role_copy_bytes_per_s: rate at which a role copies what crosses links between machines, each
            way, in series with the link.
        apply_s_per_byte: time of a server to apply one byte of gradient, seconds.
        copy_s_per_byte: time of each worker to copy one byte between host and device, seconds;
            empty without servers.
    """

    bridge_bytes_per_s: float
    role_copy_bytes_per_s: float
    apply_s_per_byte: float
    copy_s_per_byte: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemeStep:
    """A training step, ready to be simulated with any scheme.

    Attributes:
        topology: machine of each worker and server.
        plans: step plan of each worker.
        within: link between the devices of one machine; None if it is unknown or not needed.
        between: network between machines; None for one machine.
        host: link of a device to its host's memory, which everything crosses on its way to the
            network; None if it is unknown.
        update: updates on the workers, jitter and overlap.
        share: fraction of the gradients' bytes that is exchanged: a half if they are cast to half
            precision before.
        program: how the program exchanges gradients without servers.
        servers: rates of parameter servers.
        synchronous: whether workers on servers wait for each other.
        are_alike: whether all workers have the same device.
    """

    topology: Topology
    plans: tuple[StepPlan, ...]
    within: ReachedLink | None
    between: ReachedLink | None
    update: StepUpdate
    servers: ServerRates
    synchronous: bool
    are_alike: bool
    host: ReachedLink | None = None
    share: float = 1.0
    program: ProgramExchange = "buckets"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharding:
    """What one device holds of a model.

    Attributes:
        shards_parameters: whether it keeps a shard of the parameters and gathers each block while
            it is used; else it keeps all of them.
        shards_gradients: whether it keeps a shard of the gradients.
        shards_states: whether it keeps, and updates, a shard of the optimizer's states.
        updates: whether devices update parameters; else they have no states.
        keeps_buckets: whether buckets of all gradients stay beside the gradients, as with DDP's
            `gradient_as_bucket_view=False`.
        within_machine: whether shards are those of the devices of one machine, not of all.
        states_on_host: whether states and shards of gradients are kept, and updated, on the host.
        parameters_on_host: whether shards of parameters are kept there.
        bucket_elements: gradients of a buffer that lasts as long as the step, as DeepSpeed's
            `reduce_bucket_size`; None without.
        has_wide_shards: whether shards of parameters and gradients are in fp32 where the optimizer
            updates a copy in fp32, in place of that copy, as FSDP keeps them.
        has_wide_gradients: whether gradients are added up in fp32 where the optimizer updates a
            copy in fp32, as Megatron-LM's main gradients are.
        reuse_elements: a block of parameters stays gathered if less than that is computed before
            its next use.
        updates_in_backward: whether a gradient is freed as soon as its parameter is updated.
    """

    shards_parameters: bool = False
    shards_gradients: bool = False
    shards_states: bool = False
    updates: bool = True
    keeps_buckets: bool = False
    within_machine: bool = False
    states_on_host: bool = False
    parameters_on_host: bool = False
    bucket_elements: int | None = None
    has_wide_shards: bool = False
    has_wide_gradients: bool = False
    reuse_elements: int = 0
    updates_in_backward: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether more devices hold as much each."""
        return not (self.shards_parameters or self.shards_gradients or self.shards_states)

    def num_shards(self, num_devices: int, per_machine: int) -> int:
        """Devices that share out what is sharded, of all and of those of one machine."""
        return per_machine if self.within_machine else num_devices


RUN_KINDS = ("single", "ring", "sharded", "split", "servers")
"""Kinds of published runs whose errors belong to step times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsLike:
    """Kinds of published runs whose errors belong to answers under a scheme.

    Attributes:
        times: for step times: one of `RUN_KINDS`, or a kind of the scheme's own in words.
        memory: for memory: `single`, `ddp` or `fsdp`.
        is_nearest_memory: whether `memory` is the nearest kind, since no run is of this scheme.
    """

    times: str
    memory: str
    is_nearest_memory: bool = False


class Scheme(Protocol):
    """Behaviour of one scheme.

    Attributes:
        name: name in settings and in `--scheme`.
        uses_servers: whether parameter servers hold and update the variables.
    """

    name: str
    uses_servers: bool

    @property
    def sharding(self) -> Sharding | None:
        """What a device holds; None if its memory is not modelled."""

    def sharding_of(self, degrees: Degrees) -> Sharding | None:
        """The same where devices share a replica, or share out what replicas would hold."""

    def runs_like(self, num_workers: int) -> RunsLike:
        """Kinds of published runs whose errors belong to answers on so many devices."""

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Whether `plan` tries it of its own accord.

        Args:
            cluster: of two devices or more.
            is_model: whether the job is a PyTorch model; else it is a graph that is as it is.
        """

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """How messages of a step are grouped; None with parameter servers."""

    def assumption(self, layout: Layout, num_workers: int) -> Remark | None:
        """A remark on a graph that was built for another scheme; None if it fits."""

    def link_loads(
        self, topology: Topology, link: SharedLink, bridge: float
    ) -> tuple[float, float] | None:
        """Seconds per byte of gradients at workers and at servers; None without a closed form."""

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker, step by step; a record each."""


def link_of(step: SchemeStep, *, between: bool) -> ReachedLink | None:
    """The link that gradients cross within machines, or between them; None if they cross none.

    Raises:
        SettingError: the setting does not name that link.
    """
    topology = step.topology
    crossed = topology.num_sharing > 1 if between else topology.devices_per_machine > 1
    link = step.between if between else step.within
    if crossed and link is None:
        where = "between machines" if between else "within a machine"
        raise SettingError(f"the link {where} is not known; name it, as in 2x8xV100/NVLink+100G")
    return link if crossed else None


def group_of(step: SchemeStep) -> DeviceGroup:
    """All devices of a step, as one group of a collective.

    The network of a machine is no faster than the links of its devices to the host together, unless
    it is stated what it reaches.

    Raises:
        SettingError: the setting does not name a link that is crossed.
    """
    topology = step.topology
    within, between = link_of(step, between=False), link_of(step, between=True)
    hop = None
    if between is not None:
        hop = between.hop(topology.num_sharing)
        if step.host is not None and between.link.efficiency is None:
            most = topology.devices_per_machine * step.host.bytes_per_s(1)
            hop = replace(hop, bytes_per_s=min(hop.bytes_per_s, most))
    return DeviceGroup(
        count=len(topology.workers),
        machines=topology.num_sharing,
        within=None if within is None else within.hop(topology.devices_per_machine),
        between=hop,
    )


def bytes_of(messages: Iterable[Message]) -> npt.NDArray[np.float64]:
    """Bytes of each message; shape [num_messages]."""
    return np.array([one.nbytes for one in messages], dtype=np.float64)


def messages_of(plan: StepPlan) -> list[Message]:
    """Messages of gradients of a step, in order."""
    return [message for segment in plan.segments for message in segment.sends]
