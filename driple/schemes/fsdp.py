"""Replicas that share out everything: the scheme `fsdp` (ZeRO-3).

Each block's parameters are gathered before its forward and its backward pass, one block ahead, and
freed after it; its gradients are reduce-scattered after it; a shard is updated. Blocks that stay
gathered, as FSDP keeps the root, are gathered once.
"""

from __future__ import annotations

from dataclasses import replace

from driple.schemes.collectives import DeviceGroup
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
from driple.schemes.sharded import Sharded, shard_of
from driple.schemes.timeline import StepCollectives, simulate_timeline
from driple.step.exchange import ExchangeRule

__all__ = ["Fsdp"]


class Fsdp(Sharded):
    """The scheme `fsdp` (ZeRO-3): each device keeps a shard of everything."""

    name = "fsdp"
    sharding: Sharding | None = Sharding(
        shards_parameters=True, shards_gradients=True, shards_states=True
    )
    _exchange = "sharded_parameters"

    def runs_like(self, num_workers: int) -> RunsLike:
        """Sharded training, and memory of shards."""
        usual = super().runs_like(num_workers)
        return usual if num_workers < 2 else replace(usual, memory="fsdp")

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Blocks, in every pass."""
        return ExchangeRule(grouping="blocks", each_pass=True)

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        group = group_of(step)
        exchange = self._collectives(step, group)
        return simulate_timeline(
            shard_of(step.update, group.count), exchange, step.plans, num_steps, seed
        )

    def _collectives(self, step: SchemeStep, shards: DeviceGroup) -> StepCollectives:
        """Gathers and reduce-scatters among the devices that share the parameters out."""
        gathered = bytes_of(step.plans[0].pulls)
        sizes = step.share * bytes_of(messages_of(step.plans[0]))
        return StepCollectives(
            gather_s=shards.seconds("all_gather", gathered),
            gather_bytes=shards.sent_bytes("all_gather", gathered),
            send_s=shards.seconds("reduce_scatter", sizes),
            send_bytes=shards.sent_bytes("reduce_scatter", sizes),
        )
