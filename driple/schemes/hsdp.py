"""Replicas between machines that share out everything within each: the scheme `hsdp`.

`fsdp` within each machine; shards of gradients are added up between machines.
"""

from __future__ import annotations

from dataclasses import replace

from driple.cluster.cluster import Cluster
from driple.schemes.fsdp import Fsdp
from driple.schemes.hierarchical import two_levels
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import SchemeStep, Sharding, bytes_of, group_of, messages_of
from driple.schemes.sharded import shard_of
from driple.schemes.timeline import simulate_timeline

__all__ = ["Hsdp"]


class Hsdp(Fsdp):
    """The scheme `hsdp`: `fsdp` within each machine, replicas between machines."""

    name = "hsdp"
    sharding: Sharding | None = Sharding(
        shards_parameters=True, shards_gradients=True, shards_states=True, within_machine=True
    )
    _exchange = "sharded_in_machines"

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Of PyTorch models on several machines of several devices."""
        several = len(cluster.machines) > 1 and len(cluster.machines[0].devices) > 1
        return several and super().is_planned(cluster, is_model=is_model)

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        levels = two_levels(group_of(step))
        inside = self._collectives(step, levels.within)
        shards = step.share * bytes_of(messages_of(step.plans[0])) / levels.within.count
        exchange = replace(
            inside,
            send_s=inside.send_s + levels.between.seconds("all_reduce", shards),
            send_bytes=inside.send_bytes + levels.between.sent_bytes("all_reduce", shards),
        )
        return simulate_timeline(
            shard_of(step.update, levels.within.count), exchange, step.plans, num_steps, seed
        )
