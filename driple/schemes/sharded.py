"""What replicas that share out states, gradients or parameters have in common.

    zero1  states                             zero2  states and gradients
    fsdp   states, gradients and parameters   hsdp   the same within each machine

With P bytes of parameters and as many of gradients, a device of n sends 2 (n - 1) / n P with zero1
and zero2, as with an all-reduce, and 3 (n - 1) / n P with fsdp; it keeps P + G + S of parameters,
gradients and states with ddp, P + G + S/n, P + (G + S)/n and (P + G + S)/n (Rajbhandari et al.,
SC 2020, section 7 and table 1).
"""

from __future__ import annotations

from dataclasses import replace

from driple.cluster.cluster import Cluster
from driple.graph.opgraph import Layout
from driple.remarks import Remark
from driple.schemes.ddp import Ddp
from driple.schemes.layouts import Layouts
from driple.schemes.scheme import RunsLike
from driple.schemes.timeline import StepUpdate

__all__ = ["Sharded", "shard_of"]


class Sharded(Ddp):
    """Replicas that share out a part of what each would hold."""

    name = ""
    _exchange = ""  # what each worker does, as remarks name it

    def runs_like(self, num_workers: int) -> RunsLike:
        """Sharded training; memory of replicas."""
        usual = super().runs_like(num_workers)
        return usual if num_workers < 2 else replace(usual, times="sharded")

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Of PyTorch models."""
        return is_model

    def assumption(self, layout: Layout, num_workers: int) -> Remark | None:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(layout, self._exchange)


def shard_of(update: StepUpdate, count: int) -> StepUpdate:
    """The update of a shard of the parameters, one of `count`."""
    return replace(update, update_s=tuple(seconds / count for seconds in update.update_s))
