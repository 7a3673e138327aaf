"""Fusion groups of a compiled step: ops that `torch.compile` computes by one kernel.

    Record -> number of each node's group, -1 for none

The rules are Inductor's, as far as shapes decide them:
  1. Element-wise ops, copies, casts, fills and reductions (sums, norms, softmax, dropout) may join;
     matrix products, convolutions, attention, recurrent layers, pools, sorts and scatters never do.
  2. An op joins the group of an op that it reads if both run over the same elements: an
     element-wise op after an element-wise op, a reduction after those that make its input, an
     element-wise op after the reduction whose result it applies to those elements (a norm).
  3. The group runs where its first op would: all else that a later member reads must have been made
     before that. So groups never wait for each other in a circle.
  4. Forward and backward pass are compiled apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driple.graph.opkind import family_of
from driple.graph.signature import OpSignature
from driple.graph.torch.recorder import Record

__all__ = ["fusion_groups"]

_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_logical",
     "reduce_norm", "reduce_variance", "bias_gradient", "softmax", "log_softmax",
     "softmax_gradient", "log_softmax_gradient"}
)  # fmt: skip
# Element-wise by family, and yet kernels of their own or taken from a library.
_ALONE = frozenset(
    {"sort", "top_k", "search_sorted", "bucketize", "nonzero", "random_choice", "permutation",
     "cumulative", "cumulative_logsumexp", "ctc_loss", "scatter_add", "scatter_write",
     "scatter_new", "embedding_gradient", "histogram", "fft", "real_fft", "cholesky", "lu", "qr",
     "svd", "eigen", "symmetric_eigen", "matrix_inverse", "solve", "solve_triangular", "other",
     "unique", "resize_linear_gradient", "resize_cubic_gradient", "resize_nearest_gradient",
     "image_transform", "extract_patches"}
)  # fmt: skip
_FUSED_FAMILIES = ("elementwise", "normalisation", "softmax")


@dataclass(slots=True)
class _Group:
    """Ops that one kernel computes: where it runs, over how many elements, and in which pass."""

    number: int
    first: int
    elements: int
    phase: int


def fusion_groups(record: Record) -> Sequence[int]:
    """Number of the group of each node, -1 where it is a kernel of its own."""
    signatures = list(record.signatures)
    sources: dict[int, list[int]] = {}
    for source, target in record.edges:
        sources.setdefault(target, []).append(source)
    group_of: dict[int, _Group] = {}
    groups = 0
    for node, number in enumerate(record.signature_of):
        op = signatures[number]
        if not _can_fuse(op):
            continue
        read = sources.get(node, [])
        elements, phase = _elements(op), record.phases[node]
        joined = _joined(read, group_of, elements, phase)
        if joined is None:
            joined = _Group(groups, node, elements, phase)
            groups += 1
        group_of[node] = joined
    return _numbered(group_of, len(record.signature_of))


def _joined(
    read: Sequence[int], group_of: Mapping[int, _Group], elements: int, phase: int
) -> _Group | None:
    """The latest group that an op reading these nodes may join."""
    candidates = {
        group.number: group
        for source in read
        if (group := group_of.get(source)) is not None
        and group.elements == elements
        and group.phase == phase
    }
    for number in sorted(candidates, reverse=True):
        group = candidates[number]
        outside = (source for source in read if group_of.get(source) is not group)
        # What another group makes is there when that group's kernel has run, at its first op.
        if all(_made_at(source, group_of) < group.first for source in outside):
            return group
    return None


def _made_at(node: int, group_of: Mapping[int, _Group]) -> int:
    group = group_of.get(node)
    return node if group is None else group.first


def _numbered(group_of: Mapping[int, _Group], count: int) -> list[int]:
    """Groups of two ops and more, numbered from 0 in the order of their first op."""
    members: dict[int, int] = {}
    for group in group_of.values():
        members[group.number] = members.get(group.number, 0) + 1
    kept = [number for number in sorted(members) if members[number] > 1]
    place = {number: position for position, number in enumerate(kept)}
    numbers = [-1] * count
    for node, group in group_of.items():
        numbers[node] = place.get(group.number, -1)
    return numbers


def _can_fuse(op: OpSignature) -> bool:
    return op.kind not in _ALONE and family_of(op.kind) in _FUSED_FAMILIES


def _elements(op: OpSignature) -> int:
    """Elements that the op's loop runs over: of its input if it is a reduction."""
    elements = max((one.elements for one in op.outputs), default=0)
    if op.kind in _REDUCTIONS or family_of(op.kind) == "normalisation":
        return max((one.elements for one in op.inputs), default=elements)
    return elements
