"""Ranks that the rules of layers rely on; onnx infers shapes of many nodes without asking for them.

node, its inputs -> nothing, or a `GraphError`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from driple.errors import GraphError
from driple.graph.onnx.library import name_of
from driple.graph.onnx.tape import StepTensor
from driple.units import counted

__all__ = ["check_ranks"]

_ANY = 64
_RECURRENT = ((0, 3, 3), (1, 3, 3), (2, 3, 3))
_WITH_AXIS = frozenset({"LpNormalization"})  # that ONNX's own rules do not check
# Input, least and greatest rank.
_RANKS: Mapping[str, tuple[tuple[int, int, int], ...]] = MappingProxyType(
    {
        "Conv": ((1, 3, _ANY),),
        "ConvTranspose": ((1, 3, _ANY),),
        "MatMul": ((0, 1, _ANY), (1, 1, _ANY)),
        "LSTM": _RECURRENT,
        "GRU": _RECURRENT,
        "RNN": _RECURRENT,
        "LpNormalization": ((0, 1, _ANY),),
    }
)


def check_ranks(node: Any, inputs: Sequence[StepTensor | None]) -> None:
    """Refuse a node whose inputs have too few dimensions, too many, or an unknown number.

    Raises:
        GraphError: which input, or an axis that it does not have.
    """
    for position, least, most in _RANKS.get(node.op_type, ()):
        given = inputs[position] if position < len(inputs) else None
        if given is None or (given.shape is not None and least <= given.rank <= most):
            continue
        rank = "of unknown rank" if given.shape is None else f"of rank {given.rank}"
        wanted = f"{least}" if least == most else f"{least} or more"
        raise GraphError(
            f"node {name_of(node)}, a {node.op_type}: input {position} is {rank}, must be of rank "
            f"{wanted}; export the model again"
        )
    if node.op_type in _WITH_AXIS:
        _check_axis(node, inputs[0])


def _check_axis(node: Any, given: StepTensor | None) -> None:
    axis = next((int(each.i) for each in node.attribute if each.name == "axis"), -1)
    rank = 0 if given is None else given.rank
    if not -rank <= axis < rank:
        raise GraphError(
            f"node {name_of(node)}, a {node.op_type}: its axis is {axis}, and its input has "
            f"{counted(rank, 'dimension')}; the file is corrupt"
        )
