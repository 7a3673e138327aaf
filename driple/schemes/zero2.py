"""Replicas that share out states and gradients: the scheme `zero2`.

As `zero1`, but gradients are reduce-scattered in every pass of gradient accumulation: they live
until their bucket is reduced, then a shard of them.
"""

from __future__ import annotations

from dataclasses import replace

from driple.cluster.cluster import Cluster
from driple.schemes.scheme import ProgramExchange, Sharding
from driple.schemes.zero1 import Zero1
from driple.step.exchange import BUCKETS, ExchangeRule

__all__ = ["Zero2"]


class Zero2(Zero1):
    """The scheme `zero2`: as `zero1`, and each device keeps a shard of the gradients alone."""

    name = "zero2"
    # By DeepSpeed, as PyTorch has no such scheme: a buffer of gradients (`reduce_bucket_size`).
    sharding: Sharding | None = Sharding(
        shards_gradients=True, shards_states=True, bucket_elements=500_000_000
    )

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Of PyTorch models."""
        return is_model

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """Buckets, in every pass."""
        return replace(BUCKETS, each_pass=True)
