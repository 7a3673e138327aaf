"""Hierarchical all-reduce: within machines, then between them, then within again.

    reduce-scatter on the link of each machine -> all-reduce of each shard over the network
    -> all-gather on the link of each machine

With n devices on each of m machines, a device sends 2 (n - 1) / n S within its machine and
2 (m - 1) / m S / n over the network: in total as many bytes as one all-reduce over all devices. The
three phases of a message, and messages, follow each other; phases of different messages do not
overlap. On one machine this is `ddp`; with one device a machine it is `ddp` over the network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.cluster import Cluster
from driple.graph.opgraph import Layout
from driple.remarks import Remark
from driple.schemes.collectives import DeviceGroup
from driple.schemes.ddp import Ddp
from driple.schemes.layouts import Layouts
from driple.schemes.scheme import RunsLike

__all__ = ["Hierarchical", "TwoLevels", "two_levels"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoLevels:
    """The devices of a machine, and one device of each machine.

    Attributes:
        within: devices of one machine.
        between: one device of each machine; the others of a machine use the network beside it.
    """

    within: DeviceGroup
    between: DeviceGroup

    def all_reduce_s(self, sizes: FloatArray) -> FloatArray:
        """Duration of each hierarchical all-reduce, seconds, shape [num_messages]."""
        if self.between.count == 1:
            return self.within.seconds("all_reduce", sizes)
        shards = self.between.seconds("all_reduce", sizes / self.within.count)
        inside = self.within.seconds("reduce_scatter", sizes)
        took_s: FloatArray = inside + shards + self.within.seconds("all_gather", sizes)
        return took_s

    def all_reduce_bytes(self, sizes: FloatArray) -> FloatArray:
        """Bytes that a device sends: all within its machine, a shard between."""
        sent: FloatArray = self.within.sent_bytes("all_reduce", sizes)
        return sent + self.between.sent_bytes("all_reduce", sizes / self.within.count)


def two_levels(group: DeviceGroup) -> TwoLevels:
    """The devices of a group by machine; machines are taken for as large as the largest."""
    per_machine, between = group.per_machine, group.between
    if between is not None:
        between = replace(between, bytes_per_s=between.bytes_per_s / per_machine)
    return TwoLevels(
        within=DeviceGroup(count=per_machine, within=group.within),
        between=DeviceGroup(count=group.machines, machines=group.machines, between=between),
    )


class Hierarchical(Ddp):
    """The scheme `hierarchical`: within machines, then between them."""

    name = "hierarchical"

    def runs_like(self, num_workers: int) -> RunsLike:
        """A kind of its own, since no published run uses it; memory as `ddp`."""
        usual = super().runs_like(num_workers)
        return usual if num_workers < 2 else replace(usual, times=self.name)

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Never: its error is unknown."""
        return False

    def assumption(self, layout: Layout, num_workers: int) -> Remark | None:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(layout, "all_reduce_in_levels")

    def _seconds(self, group: DeviceGroup, sizes: FloatArray) -> FloatArray:
        return two_levels(group).all_reduce_s(sizes)

    def _sent_bytes(self, group: DeviceGroup, sizes: FloatArray) -> FloatArray:
        return two_levels(group).all_reduce_bytes(sizes)
