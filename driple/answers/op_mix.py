"""What a job's time consists of, by kind of op, and how far two jobs are apart.

    OpGraph --op_mix--> shares of time per kind, on one reference device whatever the answer's is
    two mixes --distance_of--> half the sum of the absolute differences, from 0 to 1

The simulator's error belongs to kinds of ops, so a job errs like the jobs that are made of the
same ones. The reference device makes the mix independent of the calibration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.cost import GraphCost
from driple.graph.cost.convolutions import conv_facts
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import CONVOLUTION_FAMILIES, family_of
from driple.graph.signature import OpSignature

__all__ = ["MIX_KINDS", "distance_of", "network_of", "op_mix", "shares_of_time"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MIX_KINDS = (
    "dense_conv", "pointwise_conv", "grouped_conv", "depthwise_conv", "matmul", "attention",
    "recurrent", "norm", "pool", "softmax", "elementwise", "rows", "starts",
)  # fmt: skip
_AT = {name: number for number, name in enumerate(MIX_KINDS)}
_RECURRENT = ("lstm", "gru", "rnn")
_ROWS = ("gather", "embedding", "scatter", "sparse", "segment")
_FAMILY = {
    "normalisation": "norm", "pooling": "pool", "softmax": "softmax", "matmul": "matmul",
}  # fmt: skip
# FLOP/s, bytes/s and seconds of a start of the reference, about an RTX 3090.
_FLOPS, _BYTES_PER_S, _START_S = 4e13, 6e11, 8e-6
_LEAST_RECURRENT = 0.15  # of the time of products, from which on a network is recurrent
# Share of softmax from which on a network has attention without a kernel of its own: published
# transformers have 0.02 and more, the softmax of a loss 0.001 and less.
_LEAST_SOFTMAX = 0.01
_CONVOLUTIONS = ("dense_conv", "pointwise_conv", "grouped_conv", "depthwise_conv")


def op_mix(graph: OpGraph, cost: GraphCost) -> tuple[float, ...]:
    """Share of the time of each of `MIX_KINDS`, summing to 1.

    Args:
        graph: of one worker's step.
        cost: of this graph.
    """
    moved = cost.bytes_read + cost.bytes_written
    return shares_of_time(
        kinds_of(graph.signatures)[graph.signature_of],
        cost.flops,
        moved,
        cost.executions.astype(np.float64),
    )


def shares_of_time(
    kinds: IntArray, flops: FloatArray, moved: FloatArray, runs: FloatArray
) -> tuple[float, ...]:
    """Share of the time of each kind, summing to 1.

    Args:
        kinds: shape [n], position of each op in `MIX_KINDS`.
        flops: shape [n], of one execution.
        moved: shape [n], bytes of one execution.
        runs: shape [n], executions in a step.
    """
    there = (moved > 0) & (runs > 0)
    each_s = np.where(there, np.maximum(flops / _FLOPS, moved / _BYTES_PER_S) * runs, 0.0)
    sums = np.bincount(kinds, weights=each_s, minlength=len(MIX_KINDS)).astype(np.float64)
    # Kernels that are shorter than a start wait for the host: that time belongs to no kind.
    waits = np.where(there, np.maximum(_START_S * runs - each_s, 0.0), 0.0)
    sums[_AT["starts"]] += waits.sum()
    total = float(sums.sum())
    if total <= 0:
        return (*(0.0,) * (len(MIX_KINDS) - 1), 1.0)
    return tuple((sums / total).tolist())


def kinds_of(signatures: Sequence[OpSignature]) -> IntArray:
    """Position in `MIX_KINDS` of each op."""
    return np.array([_kind_of(op) for op in signatures], dtype=np.int64)


def distance_of(mix: Sequence[float], others: FloatArray) -> FloatArray:
    """Distance of one mix from each of others, shape [n], from 0 to 1.

    Args:
        mix: shape [k].
        others: shape [n, k].
    """
    apart: FloatArray = np.abs(others - np.asarray(mix)).sum(axis=1) / 2
    return apart


def network_of(mix: Sequence[float]) -> str:
    """Kind of network, by what its products are.

    `convolutional`, `transformer`, `recurrent`, or `other`: matrix products without attention, as
    in recommenders.
    """
    products = sum(mix[_AT[name]] for name in _CONVOLUTIONS)
    matmul, attention = mix[_AT["matmul"]], mix[_AT["attention"]]
    recurrent = mix[_AT["recurrent"]]
    total = products + matmul + attention + recurrent
    if total <= 0:
        return "other"
    if recurrent > _LEAST_RECURRENT * total:
        return "recurrent"
    if products > total / 2:
        return "convolutional"
    attends = attention > 0 or mix[_AT["softmax"]] >= _LEAST_SOFTMAX
    return "transformer" if attends else "other"


def _kind_of(op: OpSignature) -> int:
    """Position of an op in `MIX_KINDS`."""
    name, family = op.kind, family_of(op.kind)
    base = name.removesuffix("_gradient").removeprefix("block_").removesuffix("_cell")
    if name.startswith("attention"):
        kind = "attention"
    elif base in _RECURRENT or name.startswith("cudnn_rnn"):
        kind = "recurrent"
    elif family in CONVOLUTION_FAMILIES:
        kind = _convolution(op)
    elif name.startswith(_ROWS):
        kind = "rows"
    else:
        kind = _FAMILY.get(family, "elementwise")
    return _AT[kind]


def _convolution(op: OpSignature) -> str:
    facts = conv_facts(op)
    if facts is None:
        return "dense_conv"
    if facts.is_depthwise:
        return "depthwise_conv"
    if facts.groups > 1:
        return "grouped_conv"
    return "pointwise_conv" if all(side == 1 for side in facts.window) else "dense_conv"
