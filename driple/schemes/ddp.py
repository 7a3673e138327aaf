"""Replicas that add up gradients by all-reduce: the scheme `ddp`.

PyTorch: buckets of 25 MiB in order of readiness, the first of 1 MiB, each an all-reduce beside
the backward pass; only the last pass of gradient accumulation exchanges
Horovod: what is ready while another message is on its way is fused, up to 64 MiB
tf_cnn_benchmarks, variable_update=replicated: an all-reduce of each tensor after the backward
pass
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import DDP, Degrees
from driple.cluster.topology import Topology
from driple.graph.opgraph import Layout
from driple.remarks import Remark
from driple.schemes.collectives import DeviceGroup
from driple.schemes.fair_shares import SharedLink
from driple.schemes.fusion import fused_plans
from driple.schemes.layouts import Layouts
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import (
    ProgramExchange,
    RunsLike,
    SchemeStep,
    Sharding,
    bytes_of,
    group_of,
    messages_of,
)
from driple.schemes.timeline import StepCollectives, simulate_timeline
from driple.step.exchange import BUCKETS, ExchangeRule

__all__ = ["TENSOR_S", "TENSOR_S_PER_BYTE", "Ddp"]

FloatArray = npt.NDArray[np.float64]

# Programs that exchange tensor by tensor from one process (tf_cnn_benchmarks): seconds of each
# tensor and device, as the executor starts an op of each device for each tensor, and seconds of
# each byte and further device. Both come on top of the collective; chosen on published rings of
# lambda and tf-official.
TENSOR_S = 1e-5
TENSOR_S_PER_BYTE = 4e-12


class Ddp:
    """The scheme `ddp`: all devices have all parameters and add up gradients."""

    name = DDP
    uses_servers = False
    sharding: Sharding | None = Sharding(keeps_buckets=True)

    def sharding_of(self, degrees: Degrees) -> Sharding | None:
        """The same: degrees are for replicas of several devices."""
        return self.sharding

    def runs_like(self, num_workers: int) -> RunsLike:
        """Rings, and memory of replicas."""
        if num_workers < 2:
            return RunsLike(times="single", memory="single")
        return RunsLike(times="ring", memory="ddp")

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Always."""
        return True

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Buckets, or tensors that may be fused."""
        return BUCKETS if program == "buckets" else ExchangeRule(grouping="tensors")

    def assumption(self, layout: Layout, num_workers: int) -> Remark | None:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(layout, "all_reduce")

    def link_loads(
        self, topology: Topology, link: SharedLink, bridge: float
    ) -> tuple[float, float] | None:
        """None: the closed forms cover parameter servers only."""
        return None

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        group, plans = group_of(step), step.plans
        if step.program == "horovod" and group.count > 1:
            plans = fused_plans(plans, lambda sizes: self._seconds(group, step.share * sizes))
        messages = messages_of(plans[0])
        sizes = step.share * bytes_of(messages)
        took_s = self._seconds(group, sizes)
        if step.program == "tensors" and group.count > 1:
            counts = np.array([one.tensors for one in messages])
            took_s = took_s + group.count * TENSOR_S * counts
            took_s = took_s + (group.count - 1) * TENSOR_S_PER_BYTE * sizes
        exchange = StepCollectives(send_s=took_s, send_bytes=self._sent_bytes(group, sizes))
        return simulate_timeline(step.update, exchange, plans, num_steps, seed)

    def _seconds(self, group: DeviceGroup, sizes: FloatArray) -> FloatArray:
        """Duration of the all-reduce of each message, seconds."""
        return group.seconds("all_reduce", sizes)

    def _sent_bytes(self, group: DeviceGroup, sizes: FloatArray) -> FloatArray:
        """Bytes that a device sends of each message."""
        return group.sent_bytes("all_reduce", sizes)
