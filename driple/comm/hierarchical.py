"""Hierarchical ring all-reduce: within machines, then between them, then within again.

    reduce-scatter on the link of each machine -> all-reduce of each shard over the network
    -> all-gather on the link of each machine

With n devices on each of m machines, a message of S bytes takes

    2 (n - 1) / n S / B_within + 2 (m - 1) / m S / B_between

as the n shards of a machine share its network. The three phases of a message, and messages, follow
each other; phases of different messages do not overlap. Each tensor takes the latency of both links
once. On one machine this is the ring; with one device a machine it is the ring over the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import HIERARCHICAL
from driple.cluster.topology import Topology
from driple.comm.all_reduce import simulate_all_reduce
from driple.comm.records import WorkerRecord
from driple.comm.ring import RingExchange
from driple.comm.scheme import Layouts, SchemeStep, link_of
from driple.graph.opgraph import Layout

__all__ = ["Hierarchical", "HierarchicalExchange"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class HierarchicalExchange:
    """Rings within machines and between them.

    Attributes:
        within: the ring within a machine; None if each machine has one device.
        between: the ring between machines; None for one machine.
    """

    within: RingExchange | None
    between: RingExchange | None

    def seconds(self, sizes: FloatArray, tensors: IntArray) -> FloatArray:
        """Duration of each message, seconds, shape [num_messages]."""
        took_s: FloatArray = np.zeros(len(sizes))
        for ring in (self.within, self.between):
            if ring is not None:
                took_s = took_s + ring.seconds(sizes, tensors)
        return took_s

    def passed_bytes(self, sizes: FloatArray) -> FloatArray:
        """Bytes of each message that a worker sends: all within its machine, a shard between."""
        passed: FloatArray = np.zeros(len(sizes))
        if self.within is not None:
            passed = passed + self.within.passed_bytes(sizes)
        if self.between is not None:
            count = self.within.count if self.within else 1
            passed = passed + self.between.passed_bytes(sizes / count)
        return passed


class Hierarchical:
    """The scheme `hierarchical`: rings within machines, then between them."""

    name = HIERARCHICAL
    uses_servers = False

    def assumption(self, layout: Layout, num_workers: int) -> str:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(
            layout,
            "each worker updates all variables itself; gradients go round within machines, then "
            "between them",
        )

    def error_kind(self, num_workers: int) -> str:
        """Its own kind, since no published run uses it; `single` for one device."""
        return "hierarchical" if num_workers > 1 else "single"

    def link_loads(
        self, topology: Topology, link: float, bridge: float
    ) -> tuple[float, float] | None:
        """None: the closed forms cover parameter servers only."""
        return None

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        per_machine, machines = step.topology.devices_per_machine, step.topology.num_sharing
        found: list[RingExchange | None] = []
        for link, count in (
            (link_of(step, between=False), per_machine),
            (link_of(step, between=True), machines),
        ):
            found.append(
                None
                if link is None
                else RingExchange(
                    count=count,
                    bytes_per_s=link.bytes_per_s(count),
                    tensor_s=link.efficiency.tensor_s,
                )
            )
        exchange = HierarchicalExchange(within=found[0], between=found[1])
        return simulate_all_reduce(step.all_reduce, exchange, step.plans, num_steps, seed)
