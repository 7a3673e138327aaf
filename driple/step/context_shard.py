"""One device's share of a training step under context parallelism.

    OpGraph, degree -> StepShard: the graph of one device, and what attention exchanges

A device of a group has 1 / n of the tokens of each sample, all parameters and whole gradients of
its tokens, which are added up with those of the replicas. Attention needs all keys and values:

    ring     they go round the group, n - 1 times a share, while attention computes on the share
             that came before; so do they and their gradients in the backward pass. Causal attention
             gives each device an early and a late part (zigzag), so that all compute as much
             (Liu et al., arXiv 2310.01889; Transformer Engine's `p2p`).
    heads    an all-to-all turns shares of tokens into shares of heads before attention, and back
             after it (Jacobs et al., DeepSpeed-Ulysses, arXiv 2309.14509).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.checks import check_whole
from driple.cluster.schemes import divisors_near
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import Phase
from driple.step.shard_shapes import ATTENTIONS, HEADS, divided
from driple.step.step_flow import GroupExchange, StepFlow, StepShard, changed_graph
from driple.step.token_shares import made_share, on_tokens

__all__ = ["context_shard"]


_TOKENS = -2  # dimension of the tokens in the inputs of attention
_QKV = 3  # queries, keys and values come first
_CAUSAL = "causal"


def context_shard(graph: OpGraph, degree: int, *, exchanges_heads: bool = False) -> StepShard:
    """The share of one device of a context-parallel group.

    Args:
        graph: of the whole step, with named parameters.
        degree: devices of the group.
        exchanges_heads: whether attention exchanges heads (Ulysses) in place of a ring.

    Raises:
        GraphError: no attention is one kernel, or the degree does not divide tokens or heads.
    """
    check_whole("context-parallel degree", degree, 1)
    if degree == 1:
        return StepShard(graph=graph, node_share=np.ones(graph.num_nodes), exchanges=())
    name = f"{'ulysses' if exchanges_heads else 'cp'}{degree}"
    flow = StepFlow(graph, f"{name} shares out the tokens of samples,")
    _check_lengths(flow, degree, name, exchanges_heads=exchanges_heads)
    changed: dict[int, OpSignature] = {}
    exchanges: list[GroupExchange] = []
    share = np.ones(graph.num_nodes)
    for node, op in enumerate(flow.ops):
        if flow.only_weight(node) is not None or graph.phases[node] == Phase.UPDATE:
            continue
        if op.kind in ATTENTIONS:
            changed[node] = (_of_heads if exchanges_heads else _of_tokens)(op, degree)
            exchanges += _exchanged(op, node, degree, exchanges_heads=exchanges_heads)
            share[node] = 1 / degree
            continue
        changed[node] = on_tokens(flow, node, degree)
        share[node] = made_share(op, changed[node], degree)
    nothing = np.ones(len(graph.parameters.names))
    sent = np.ones(len(graph.traffic.senders))
    return StepShard(
        graph=changed_graph(graph, changed, share, nothing, sent),
        node_share=share,
        exchanges=tuple(exchanges),
    )


def _check_lengths(flow: StepFlow, degree: int, name: str, *, exchanges_heads: bool) -> None:
    """Refuse lengths and heads that a degree does not divide."""
    attentions = [op for op in flow.ops if op.kind in ATTENTIONS]
    if not attentions:
        raise GraphError(
            f"{name} shares out the tokens of samples, and no attention of this model is one "
            "kernel (scaled_dot_product_attention); leave it out"
        )
    for op in attentions:
        shape, keys = op.inputs[0].shape or (), op.inputs[1].shape or ()
        tokens, parts = shape[_TOKENS], degree if exchanges_heads else 2 * degree
        if tokens % parts:
            why = "" if exchanges_heads else f" 2 x {degree} parts of"
            raise GraphError(
                f"{name} does not divide into{why} the {tokens} tokens of a sample; a length of "
                f"{tokens // parts * parts or parts} or {(tokens // parts + 1) * parts} does"
            )
        heads = min(shape[HEADS], keys[HEADS])
        if exchanges_heads and shape[HEADS] % degree:
            raise GraphError(
                f"{name} does not divide the {shape[HEADS]} heads of attention; "
                f"{divisors_near(heads, degree)} does"
            )


def _of_tokens(op: OpSignature, degree: int) -> OpSignature:
    """Attention of a share of the queries to all keys, or to half of them under a causal mask.

    A query sees half of the keys in the mean, which is what the same work is without a mask.
    """
    is_causal = any(values[0] for name, values in op.numbers if name == _CAUSAL)
    numbers = tuple(row for row in op.numbers if row[0] != _CAUSAL)

    def keys(tensor: Tensor) -> Tensor:
        shape = list(tensor.shape or ())
        shape[_TOKENS] = -(-shape[_TOKENS] // 2) if is_causal else shape[_TOKENS]
        return replace(tensor, shape=tuple(shape))

    queries, *others = op.inputs
    read = (_cut(queries, degree), *map(keys, others[: _QKV - 1]))
    rest = tuple(_cut(one, degree) for one in others[_QKV - 1 :])
    outputs = tuple(_cut(one, degree) for one in op.outputs)
    return replace(op, inputs=(*read, *rest), outputs=outputs, numbers=numbers)


def _of_heads(op: OpSignature, degree: int) -> OpSignature:
    """Attention of a share of the heads to all tokens."""

    def cut(tensor: Tensor) -> Tensor:
        shape = tensor.shape
        if shape is None or len(shape) <= HEADS:
            return tensor
        sizes = list(shape)
        sizes[HEADS] = -(-sizes[HEADS] // degree)
        return replace(tensor, shape=tuple(sizes))

    return replace(op, inputs=tuple(map(cut, op.inputs)), outputs=tuple(map(cut, op.outputs)))


def _cut(tensor: Tensor, degree: int) -> Tensor:
    return divided(tensor, degree, _TOKENS)


def _exchanged(
    op: OpSignature, node: int, degree: int, *, exchanges_heads: bool
) -> list[GroupExchange]:
    """What attention exchanges: keys and values, in the backward pass their gradients, too.

    Ulysses exchanges queries, keys, values and results, in the backward pass the gradients of all
    four.
    """
    queries, keys, values = op.inputs[:_QKV]
    if exchanges_heads:
        nbytes = 2 * queries.nbytes + keys.nbytes + values.nbytes
        return [
            GroupExchange(group="context", kind="all_to_all", node=node, nbytes=nbytes / degree)
        ]
    turns = 1 if op.kind == "attention" else 2
    return [
        GroupExchange(
            group="context",
            kind="ring",
            node=node,
            nbytes=float(turns * (keys.nbytes + values.nbytes)),
            is_hidden=True,
        )
    ]
