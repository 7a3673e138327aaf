"""One device's share of a training step, by all degrees together.

OpGraph, Degrees -> DeviceShard: context_shard, then expert_shard, then tensor_shard
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import Degrees
from driple.graph.opgraph import OpGraph
from driple.step.context_shard import context_shard
from driple.step.expert_shard import expert_shard
from driple.step.step_flow import GroupExchange, StepFlow
from driple.step.tensor_shard import tensor_shard

__all__ = ["DeviceShard", "device_shard"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceShard:
    """What a device has of a step, before the blocks are dealt to stages.

    Attributes:
        graph: ops, parameters and gradients of the device; lifetimes are left out where it differs
            from the whole step.
        node_share: shape [num_nodes], share of what each node makes that the device has.
        exchanges: with the other devices of its groups.
        is_expert: shape [p], parameters that the device of an expert group has a share of, and
            fewer devices a copy of.
    """

    graph: OpGraph
    node_share: npt.NDArray[np.float64]
    exchanges: tuple[GroupExchange, ...]
    is_expert: npt.NDArray[np.bool_]


def device_shard(graph: OpGraph, degrees: Degrees, order: IntArray) -> DeviceShard:
    """The share of one device.

    Args:
        graph: of the whole step, with named parameters.
        degrees: of tensor, context and expert parallelism.
        order: of execution, shape [num_nodes].

    Raises:
        GraphError: the graph cannot be split so; the nearest degrees that fit are named.
    """
    tokens = context_shard(graph, degrees.context, exchanges_heads=degrees.exchanges_heads)
    experts = expert_shard(tokens.graph, degrees.expert, order)
    matrices = tensor_shard(experts.graph, degrees.tensor, order)
    is_expert = np.zeros(len(graph.parameters.names), dtype=np.bool_)
    if degrees.expert * degrees.tensor > 1:
        is_expert = StepFlow(graph, "experts are looked for,").expert_parameters
    exchanges = [*tokens.exchanges, *experts.exchanges]
    if degrees.tensor > 1:  # tokens of experts, and heads of attention, are shares already
        exchanges = [replace(one, nbytes=one.nbytes / degrees.tensor) for one in exchanges]
    return DeviceShard(
        graph=matrices.graph,
        node_share=tokens.node_share * experts.node_share * matrices.node_share,
        exchanges=(*exchanges, *matrices.exchanges),
        is_expert=is_expert,
    )
