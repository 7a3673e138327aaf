"""FLOPs of segments, scatters, sparse tensors, candidate sampling and CTC.

A sum over segments adds each of its elements once. A sparse tensor is given as indices, values and
shape: what is computed on it counts its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2, prod
from types import MappingProxyType

from driple.graph.cost.shapes import Formula, elements_in, elements_out, shape_in
from driple.graph.signature import OpSignature

__all__ = ["SCATTER_FLOPS", "SEGMENTS_BY_INDEX", "SPARSE_FLOPS", "picked_elements"]

_STATES = 6  # additions, comparisons and exponentials for a state of CTC's recursion
_LOGITS = 7  # for a logit of CTC: its softmax (5) and its gradient (2)
_CANDIDATE = 4  # draw, power, and the expected count by a logarithm and a quotient


def picked_elements(op: OpSignature) -> int:
    """Elements of the rows that indices (second input) pick from the first input."""
    return elements_in(op, 1) * prod(shape_in(op, 0, 1)[1:])


def _segments(op: OpSignature) -> float:
    return float(elements_in(op, 0))


def _segments_by_index(op: OpSignature) -> float:
    return float(picked_elements(op))


def _scatter(op: OpSignature) -> float:
    """Variable or tensor, indices, updates: one operation for each element of the updates."""
    return float(elements_in(op, 2))


def _values(flops: float) -> Formula:
    """Cost per value of a sparse tensor; its indices are the first input."""
    return lambda op: flops * elements_in(op, 1)


def _sparse_sum(op: OpSignature) -> float:
    return float(elements_in(op, 1) + elements_in(op, 4))


def _ctc(op: OpSignature) -> float:
    """Logits are [steps, batch, classes]; both recursions run over 2 labels + 1 states per step."""
    steps, batch, _ = shape_in(op, 0, 3)[:3]
    states = 2 * elements_in(op, 2) + batch
    return float(_LOGITS * elements_in(op, 0) + 2 * steps * states * _STATES)


def _candidates(op: OpSignature) -> float:
    return float(_CANDIDATE * sum(elements_out(op, i) for i in range(2)))


def _accidental_hits(op: OpSignature) -> float:
    """Each of the true classes is looked up among the candidates."""
    return float(elements_in(op, 0) + elements_in(op, 1))


def _search(op: OpSignature) -> float:
    """Sorted values, [batch, n], are halved for each that is sought."""
    return elements_in(op, 1) * log2(max(shape_in(op, 0, 1)[-1], 2))


# Sums over rows that indices pick, and their gradients: data, indices, segments.
SEGMENTS_BY_INDEX = frozenset({"sparse_segment_reduce"})
# Scatters that compute; those that only write are moves.
SCATTER_FLOPS: Mapping[str, Formula] = MappingProxyType(
    dict.fromkeys(("scatter_add", "scatter_arithmetic", "tensor_scatter"), _scatter)
)
SPARSE_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **SCATTER_FLOPS,
        **dict.fromkeys(SEGMENTS_BY_INDEX, _segments_by_index),
        **dict.fromkeys(
            ("segment_reduce", "scatter_reduce_rows", "embedding_gradient", "histogram"), _segments
        ),
        "sparse_histogram": _values(1),
        "histogram_fixed": lambda op: 3.0 * elements_in(op, 0),
        "sparse_fill_empty_rows_gradient": _values(1),
        "sparse_add": _sparse_sum,
        "sparse_add_gradient": lambda op: float(elements_in(op, 0)),
        "sparse_dense_elementwise": _values(1),
        "sparse_reduce": _values(1),
        "sparse_softmax": _values(5),
        "ctc_loss": _ctc,
        "candidate_sampling": _candidates,
        "accidental_hits": _accidental_hits,
        "search_sorted": _search,
    }
)
