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

__all__ = ["check_ranks"]

_ANY = 64
_RECURRENT = ((0, 3, 3), (1, 3, 3), (2, 3, 3))
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
        GraphError: which input.
    """
    for position, least, most in _RANKS.get(node.op_type, ()):
        given = inputs[position] if position < len(inputs) else None
        if given is None or (given.shape is not None and least <= given.rank <= most):
            continue
        rank = "an unknown number of" if given.shape is None else str(given.rank)
        wanted = f"{least}" if least == most else f"{least} or more"
        raise GraphError(
            f"node {name_of(node)}, a {node.op_type}: input {position} has {rank} dimension(s), "
            f"must have {wanted}; export the model again"
        )
