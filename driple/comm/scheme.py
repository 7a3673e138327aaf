"""What a scheme of distributed training is: one class with these members, registered by its name.

    SchemeStep (roles, plans, links, rates) -> Scheme.simulate -> a WorkerRecord per worker

A new scheme is one file with such a class and a row in `driple.comm.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from driple.cluster.topology import Topology
from driple.comm.all_reduce import AllReduceStep
from driple.comm.links import ReachedLink
from driple.comm.records import WorkerRecord
from driple.errors import SettingError
from driple.graph.opgraph import Layout
from driple.step.plan import StepPlan

__all__ = ["Layouts", "Scheme", "SchemeStep", "ServerRates", "link_of", "messages_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRates:
    """What parameter servers and their machines pass.

    Attributes:
        bridge_bytes_per_s: rate between two roles of one machine, each way.
        role_bytes_per_s: most that one role passes, each way.
        apply_s_per_byte: seconds of a server for a byte of a gradient.
        copy_s_per_byte: seconds of each worker for a byte between host and device; empty without
            servers.
    """

    bridge_bytes_per_s: float
    role_bytes_per_s: float
    apply_s_per_byte: float
    copy_s_per_byte: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemeStep:
    """A training step, ready to be simulated with any scheme.

    Attributes:
        topology: who runs where.
        plans: what each worker computes and sends.
        within: link between the devices of one machine; None if it is not known, or not needed.
        between: network between machines; None for a single one.
        all_reduce: updates on the workers, jitter and overlap.
        servers: rates of parameter servers.
        synchronous: whether workers on servers wait for each other.
        are_alike: whether all workers have one device.
    """

    topology: Topology
    plans: tuple[StepPlan, ...]
    within: ReachedLink | None
    between: ReachedLink | None
    all_reduce: AllReduceStep
    servers: ServerRates
    synchronous: bool
    are_alike: bool


class Scheme(Protocol):
    """Behaviour of one scheme.

    Attributes:
        name: that settings and `--scheme` use.
        uses_servers: whether parameter servers hold and update the variables.
    """

    name: str
    uses_servers: bool

    def assumption(self, layout: Layout, num_workers: int) -> str:
        """One sentence on a graph that is laid out for another scheme; empty if it fits."""

    def error_kind(self, num_workers: int) -> str:
        """Kind of the checked runs that state its error: `single`, `ring`, `servers` or its own."""

    def link_loads(
        self, topology: Topology, link: float, bridge: float
    ) -> tuple[float, float] | None:
        """Seconds per byte of gradients at workers and at servers; None without a closed form."""

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """What every worker does, step after step."""


class Layouts:
    """Sentences about graphs that are made for another kind of cluster."""

    _UNDISTRIBUTED: Mapping[str, str] = MappingProxyType(
        {
            "unplaced": "the graph names no device",
            "one_machine": "the graph is of one machine",
        }
    )
    _ON_SERVERS = "its variables and their updates are placed on the parameter servers"
    _ALONE = "the device updates all variables itself; nothing crosses the network"
    _NO_SERVERS = "the graph has parameter servers, this setting has none"

    @classmethod
    def on_servers(cls, layout: Layout) -> str:
        """On a setting with parameter servers."""
        if layout == "all_reduce":
            return (
                "the graph adds up gradients by all-reduce, this setting has parameter servers: "
                f"{cls._ON_SERVERS}, and workers wait for each other"
            )
        found = cls._UNDISTRIBUTED.get(layout)
        return f"{found}: {cls._ON_SERVERS}" if found else ""

    @classmethod
    def without_servers(cls, layout: Layout, exchange: str) -> str:
        """On several workers without servers, where `exchange` says what happens instead."""
        found = cls._NO_SERVERS if layout == "servers" else cls._UNDISTRIBUTED.get(layout)
        return f"{found}: {exchange}" if found else ""

    @classmethod
    def alone(cls, layout: Layout) -> str:
        """On one device."""
        if layout == "servers":
            return f"{cls._NO_SERVERS}: {cls._ALONE}"
        if layout == "all_reduce":
            return f"the graph adds up gradients of several workers: {cls._ALONE}"
        return ""


def link_of(step: SchemeStep, *, between: bool) -> ReachedLink | None:
    """The link that gradients cross within machines, or between them; None if they cross none.

    Raises:
        SettingError: they cross a link that is not known.
    """
    topology = step.topology
    crossed = topology.num_sharing > 1 if between else topology.devices_per_machine > 1
    found = step.between if between else step.within
    if crossed and found is None:
        where = "between machines" if between else "within a machine"
        raise SettingError(f"the link {where} is not known; name it, as in 2x8xV100/NVLink+100G")
    return found if crossed else None


def messages_of(step: SchemeStep) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Bytes that are exchanged, and tensors, of each message of a step; shapes [num_messages]."""
    messages = [message for segment in step.plans[0].segments for message in segment.sends]
    sizes = step.all_reduce.share * np.array([one.nbytes for one in messages], dtype=np.float64)
    return sizes, np.array([one.tensors for one in messages], dtype=np.int64)
