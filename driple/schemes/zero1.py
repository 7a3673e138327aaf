"""Replicas that share out the optimizer's states: the scheme `zero1`.

reduce-scatter of gradients beside the (last) backward pass -> update of a shard -> all-gather of
the new parameters
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.cluster.cluster import Cluster
from driple.schemes.records import WorkerRecord
from driple.schemes.scheme import (
    ProgramExchange,
    SchemeStep,
    Sharding,
    bytes_of,
    group_of,
    messages_of,
)
from driple.schemes.sharded import Sharded, shard_of
from driple.schemes.timeline import StepCollectives, simulate_timeline
from driple.step.exchange import BUCKETS, ExchangeRule

__all__ = ["Zero1"]

FloatArray = npt.NDArray[np.float64]


class Zero1(Sharded):
    """The scheme `zero1`: each device updates a shard of the parameters."""

    name = "zero1"
    sharding: Sharding | None = Sharding(
        shards_states=True, keeps_buckets=True
    )  # ZeroRedundancyOptimizer
    _exchange = "sharded_states"

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Never: `zero2` shares out more."""
        return False

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Buckets, in the last pass."""
        return BUCKETS

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each."""
        group = group_of(step)
        sizes = step.share * bytes_of(messages_of(step.plans[0]))
        # The new parameters are gathered bucket by bucket, in the type in which the model has them.
        exchange = StepCollectives(
            send_s=group.seconds("reduce_scatter", sizes),
            send_bytes=group.sent_bytes("reduce_scatter", sizes),
            after_s=group.seconds("all_gather", self._gathered(sizes, step)),
            after_bytes=group.sent_bytes("all_gather", self._gathered(sizes, step)),
        )
        return simulate_timeline(
            shard_of(step.update, group.count), exchange, step.plans, num_steps, seed
        )

    def _gathered(self, sizes: FloatArray, step: SchemeStep) -> FloatArray:
        """Bytes of each gather of new parameters: each bucket once, however many passes sent it."""
        last = step.plans[0].num_last_sends
        return sizes[len(sizes) - last :]
