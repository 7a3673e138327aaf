"""Layout that `torch.compile` gives the images of a step: channels last, or as the program has.

    OpGraph, SignatureCosts --compiled_costs--> SignatureCosts whose signatures name the layout

The rules are Inductor's (`GraphLowering.decide_layout_opt`), which weighs the FLOPs of convolutions
by how much each kind gained in its authors' benchmarks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

import numpy as np

from driple.graph.cost import SignatureCosts
from driple.graph.cost.convolutions import CHANNELS_LAST, ConvFacts, conv_facts
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import CONVOLUTION_FAMILIES, family_of
from driple.graph.signature import OpSignature
from driple.graph.step_facts import Phase

__all__ = ["compiled_costs"]

_MOST_NODES = 300  # ops for each convolution, from which on none changes its layout
_SMALL = 64  # channels
_NARROWS = 2  # channels read over those made
_TIMES: Mapping[str, float] = MappingProxyType(
    {"grouped": 1.358, "small": 0.783, "narrowing": 0.725, "usual": 0.823}
)
"""Time of a forward pass's convolutions with channels last over that with channels apart."""
_IMAGE_KINDS = frozenset(
    {"batch_norm", "batch_norm_gradient", "group_norm", "group_norm_gradient", "max_pool",
     "max_pool_gradient", "avg_pool", "avg_pool_gradient", "resize_nearest", "resize_linear",
     "resize_cubic"}
)  # fmt: skip


def compiled_costs(graph: OpGraph, costs: SignatureCosts) -> SignatureCosts:
    """The costs of a graph's signatures, which name the layout that the compiler gives them.

    Args:
        graph: of a step, or of a forward pass.
        costs: of its signatures; a layout changes none of them.
    """
    is_forward = graph.phases == Phase.FORWARD
    runs = np.bincount(graph.signature_of[is_forward], minlength=len(costs.signatures)).tolist()
    facts = [
        (found, count)
        for op, count in zip(costs.signatures, runs, strict=True)
        if count and (found := conv_facts(op)) is not None
    ]
    chosen = _is_last_for_training if graph.is_training else _is_last_for_inference
    convolutions = sum(count for _, count in facts)
    if not convolutions or is_forward.sum() >= _MOST_NODES * convolutions or not chosen(facts):
        return costs
    return replace(costs, signatures=tuple(map(_with_channels_last, costs.signatures)))


def _is_last_for_inference(convolutions: Sequence[tuple[ConvFacts, int]]) -> bool:
    flops = [(_kind(one), count * _multiply_adds(one)) for one, count in convolutions]
    return sum(_TIMES[kind] * some for kind, some in flops) <= sum(some for _, some in flops)


def _is_last_for_training(convolutions: Sequence[tuple[ConvFacts, int]]) -> bool:
    kinds = {_kind(one) for one, _ in convolutions}
    narrows = any(_narrows(one) for one, _ in convolutions)
    return not narrows and "grouped" not in kinds and kinds != {"small"}


def _kind(one: ConvFacts) -> str:
    if one.groups > 1 and one.in_per_group > 1:
        return "grouped"
    if one.in_per_group <= _SMALL and one.groups * one.out_per_group <= _SMALL:
        return "small"
    return "narrowing" if _narrows(one) else "usual"


def _narrows(one: ConvFacts) -> bool:
    made = one.groups * one.out_per_group
    return made * _NARROWS <= one.in_per_group and one.window[0] > 1


def _multiply_adds(one: ConvFacts) -> float:
    made = one.groups * one.out_per_group
    return float(one.batch * one.out_pixels * made * one.in_per_group * prod(one.window))


def _with_channels_last(op: OpSignature) -> OpSignature:
    is_of_images = family_of(op.kind) in CONVOLUTION_FAMILIES or op.kind in _IMAGE_KINDS
    if not is_of_images or CHANNELS_LAST in op.numbers:
        return op
    return replace(op, numbers=tuple(sorted((*op.numbers, CHANNELS_LAST))))
