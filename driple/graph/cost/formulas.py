"""FLOPs and bytes of one execution of an op, from its kind and the shapes that it computes on.

A multiply-add counts two FLOPs, as in TensorFlow's profiler (`tensorflow/python/profiler/internal/
flops_registry.py`), whose numbers are kept where it has one. The formulas stand in one module for
each field: `linear`, `attention`, `recurrent`, `images`, `sparse`, `elementwise`, `updates`; bytes
in `moves`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.graph.cost.attention import ATTENTION_FLOPS
from driple.graph.cost.complete import completed
from driple.graph.cost.elementwise import ELEMENTWISE_FLOPS
from driple.graph.cost.images import IMAGE_FLOPS
from driple.graph.cost.linear import LINEAR_FLOPS
from driple.graph.cost.moves import MOVES, bytes_moved, is_free
from driple.graph.cost.recurrent import RECURRENT_FLOPS
from driple.graph.cost.shapes import Formula, UnknownShapeError
from driple.graph.cost.sparse import SPARSE_FLOPS
from driple.graph.cost.updates import UPDATES, Update
from driple.graph.datatypes import NUMBER_OF
from driple.graph.signature import OpSignature, Tensor

__all__ = ["OpCost", "cost_of_completed", "cost_of_op", "flops_of_update", "has_formula"]


@dataclass(frozen=True, slots=True)
class OpCost:
    """Cost of one execution.

    Attributes:
        flops: floating-point operations; a multiply-add counts two.
        bytes_read: bytes of memory.
        bytes_written: bytes of memory.
        parameters: elements of the variables that it computes with.
        known: whether there is a formula for the kind, and the graph states the shapes that it
            needs.
    """

    flops: float
    bytes_read: float
    bytes_written: float
    parameters: float
    known: bool = True


_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **ATTENTION_FLOPS,
        **ELEMENTWISE_FLOPS,
        **IMAGE_FLOPS,
        **LINEAR_FLOPS,
        **RECURRENT_FLOPS,
        **SPARSE_FLOPS,
    }
)


def cost_of_op(op: OpSignature) -> OpCost:
    """Cost of one execution of an op; without a formula no FLOPs, and all of its bytes.

    Shapes that the op's other shapes determine are filled in first (`completed`).
    """
    return cost_of_completed(completed(op))


def cost_of_completed(op: OpSignature) -> OpCost:
    """Cost of one execution of an op whose shapes are filled in already (`completed`)."""
    if is_free(op.kind):
        return OpCost(0.0, 0.0, 0.0, 0.0)
    if op.kind in UPDATES:
        return _cost_of_update(op, UPDATES[op.kind])
    flops, known = 0.0, op.kind in MOVES
    if op.kind in _FLOPS:
        try:
            flops, known = float(_FLOPS[op.kind](op)), True
        except UnknownShapeError:
            known = False
    read, written = bytes_moved(op)
    parameters = float(sum(tensor.elements for tensor in op.inputs if tensor.is_parameter))
    return OpCost(flops, read, written, parameters, known)


def flops_of_update(kind: str) -> float:
    """FLOPs for each parameter of an optimizer's update; 0 of what is no update."""
    return float(UPDATES[kind].flops) if kind in UPDATES else 0.0


def has_formula(kind: str) -> bool:
    """Whether the cost of ops of a kind is known, given their shapes."""
    return kind in _FLOPS or kind in UPDATES or kind in MOVES or is_free(kind)


def _cost_of_update(op: OpSignature, update: Update) -> OpCost:
    """Variable and slots are read and written, as far as there is a gradient for them.

    A sparse gradient changes some rows only. Variables may be given by handles, whose shape says
    nothing.
    """
    gradient = op.inputs[update.gradient : update.gradient + 1]
    is_sparse = op.kind.startswith("sparse_")
    whole = () if is_sparse or _is_handle(op.inputs) else op.inputs[:1]
    known = next((tensor for tensor in (*whole, *gradient) if tensor.shape is not None), None)
    if known is None:
        return OpCost(0.0, 0.0, 0.0, 0.0, known=False)
    states = op.inputs[: update.num_variables] if whole else ()
    if len(states) == update.num_variables and all(one.shape is not None for one in states):
        changed = float(sum(one.nbytes for one in states))  # which may have other types
    else:
        changed = float(update.num_variables * known.nbytes)
    given = float(sum(tensor.nbytes for tensor in op.inputs[update.num_variables :]))
    return OpCost(
        flops=float(update.flops * known.elements),
        bytes_read=changed + given,
        bytes_written=changed,
        parameters=float(update.num_variables * known.elements),
    )


def _is_handle(inputs: tuple[Tensor, ...]) -> bool:
    return bool(inputs) and inputs[0].dtype == NUMBER_OF["DT_RESOURCE"]
