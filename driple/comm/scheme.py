"""Interface of a scheme of distributed training: a class with these members, registered by name.

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
    """Rates of parameter servers and their machines.

    Attributes:
        bridge_bytes_per_s: rate between two roles of one machine, each way.
        role_bytes_per_s: upper bound on one role's traffic, each way.
        apply_s_per_byte: time of a server to apply one byte of gradient, seconds.
        copy_s_per_byte: time of each worker to copy one byte between host and device, seconds;
            empty without servers.
    """

    bridge_bytes_per_s: float
    role_bytes_per_s: float
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
        all_reduce: updates on the workers, jitter and overlap.
        servers: rates of parameter servers.
        synchronous: whether workers on servers wait for each other.
        are_alike: whether all workers have the same device.
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
        name: name in settings and in `--scheme`.
        uses_servers: whether parameter servers hold and update the variables.
    """

    name: str
    uses_servers: bool

    def assumption(self, layout: Layout, num_workers: int) -> str:
        """One sentence on a graph that was built for another scheme; empty if it fits."""

    def error_kind(self, num_workers: int) -> str:
        """Kind of published runs that give its error: `single`, `ring`, `servers`, or its own."""

    def link_loads(
        self, topology: Topology, link: float, bridge: float
    ) -> tuple[float, float] | None:
        """Seconds per byte of gradients at workers and at servers; None without a closed form."""

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker, step by step; a record each."""


class Layouts:
    """Sentences about graphs that were built for another kind of cluster."""

    _UNDISTRIBUTED: Mapping[str, str] = MappingProxyType(
        {
            "unplaced": "the graph names no device",
            "one_machine": "the graph is of one machine",
        }
    )
    _ONE_DEVICE = "the model is of one device"
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
        undistributed = {**cls._UNDISTRIBUTED, "one_device": cls._ONE_DEVICE}
        found = undistributed.get(layout)
        return f"{found}: {cls._ON_SERVERS}" if found else ""

    @classmethod
    def without_servers(cls, layout: Layout, exchange: str) -> str:
        """On several workers without servers; `exchange` describes the exchange that is assumed."""
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
        SettingError: the setting does not name that link.
    """
    topology = step.topology
    crossed = topology.num_sharing > 1 if between else topology.devices_per_machine > 1
    found = step.between if between else step.within
    if crossed and found is None:
        where = "between machines" if between else "within a machine"
        raise SettingError(f"the link {where} is not known; name it, as in 2x8xV100/NVLink+100G")
    return found if crossed else None


def messages_of(step: SchemeStep) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Bytes and number of tensors of each message of a step; shapes [num_messages]."""
    messages = [message for segment in step.plans[0].segments for message in segment.sends]
    sizes = step.all_reduce.share * np.array([one.nbytes for one in messages], dtype=np.float64)
    return sizes, np.array([one.tensors for one in messages], dtype=np.int64)
