"""Replicas that share out states, gradients and parameters: `zero1`, `zero2`, `fsdp`, `hsdp`.

    zero1  gradients: reduce-scatter beside the (last) backward pass; update of a shard; all-gather
           of the new parameters
    zero2  the same, but gradients are reduce-scattered in every pass of gradient accumulation
    fsdp   ZeRO-3: each block's parameters are gathered before its forward and backward pass, one
           block ahead; its gradients are reduce-scattered after it; update of a shard
    hsdp   fsdp within each machine; shards of gradients are added up between machines

With P bytes of parameters and as many of gradients, a device of n sends 2 (n - 1) / n P with zero1
and zero2, as with an all-reduce, and 3 (n - 1) / n P with fsdp (Rajbhandari et al., SC 2020,
section 7). Blocks that stay gathered, as FSDP keeps the root, are gathered once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.cluster.schemes import FSDP, HSDP, ZERO1, ZERO2
from driple.graph.opgraph import Layout
from driple.schemes.collectives import Group
from driple.schemes.ddp import Ddp
from driple.schemes.hierarchical import two_levels
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import (
    Layouts,
    ProgramExchange,
    SchemeStep,
    bytes_of,
    group_of,
    messages_of,
)
from driple.schemes.timeline import Exchange, StepUpdate, simulate_timeline
from driple.step.exchange import BUCKETS, ExchangeRule

__all__ = ["Fsdp", "Hsdp", "Zero1", "Zero2"]


class _Sharded(Ddp):
    """What these schemes share."""

    name = ""
    _exchange = ""

    def assumption(self, layout: Layout, num_workers: int) -> str:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(layout, self._exchange)

    def error_kind(self, num_workers: int) -> str:
        """Its own kind; `single` for one device."""
        return self.name if num_workers > 1 else "single"


class Zero1(_Sharded):
    """The scheme `zero1`: each device updates a shard of the parameters."""

    name = ZERO1
    _exchange = "each worker updates a shard of all variables and gathers the others"

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Buckets, in the last pass."""
        return BUCKETS

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        group = group_of(step)
        sizes = step.share * bytes_of(messages_of(step.plans[0]))
        # The new parameters are gathered bucket by bucket, in the type in which the model has them.
        exchange = Exchange(
            send_s=group.seconds("reduce_scatter", sizes),
            send_bytes=group.sent_bytes("reduce_scatter", sizes),
            after_s=group.seconds("all_gather", self._gathered(sizes, step)),
            after_bytes=group.sent_bytes("all_gather", self._gathered(sizes, step)),
        )
        return simulate_timeline(
            _shard_of(step.update, group.count), exchange, step.plans, num_steps, seed
        )

    def _gathered(
        self, sizes: np.ndarray[tuple[int], np.dtype[np.float64]], step: SchemeStep
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Bytes of each gather of new parameters: each bucket once, however many passes sent it."""
        last = step.plans[0].num_last_sends
        return sizes[len(sizes) - last :]


class Zero2(Zero1):
    """The scheme `zero2`: as `zero1`, and each device keeps a shard of the gradients alone."""

    name = ZERO2

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Buckets, in every pass."""
        return replace(BUCKETS, each_pass=True)


class Fsdp(_Sharded):
    """The scheme `fsdp` (ZeRO-3): each device keeps a shard of everything."""

    name = FSDP
    _exchange = "each worker keeps a shard of all variables and gathers the others block by block"

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Blocks, in every pass."""
        return ExchangeRule(grouping="blocks", each_pass=True)

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        group = group_of(step)
        exchange = self._collectives(step, group)
        return simulate_timeline(
            _shard_of(step.update, group.count), exchange, step.plans, num_steps, seed
        )

    def _collectives(self, step: SchemeStep, shards: Group) -> Exchange:
        """Gathers and reduce-scatters among the devices that share the parameters out."""
        gathered = bytes_of(step.plans[0].pulls)
        sizes = step.share * bytes_of(messages_of(step.plans[0]))
        return Exchange(
            gather_s=shards.seconds("all_gather", gathered),
            gather_bytes=shards.sent_bytes("all_gather", gathered),
            send_s=shards.seconds("reduce_scatter", sizes),
            send_bytes=shards.sent_bytes("reduce_scatter", sizes),
        )


class Hsdp(Fsdp):
    """The scheme `hsdp`: `fsdp` within each machine, replicas between machines."""

    name = HSDP
    _exchange = (
        "each worker keeps a shard of all variables, gathers the others from its machine block by "
        "block, and adds up gradients between machines"
    )

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
            _shard_of(step.update, levels.within.count), exchange, step.plans, num_steps, seed
        )


def _shard_of(update: StepUpdate, count: int) -> StepUpdate:
    """The update of a shard of the parameters."""
    return replace(update, update_s=tuple(seconds / count for seconds in update.update_s))
