"""A step of two layers as a graph, node by node, with lifetimes that are stated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import (
    OptimizerUpdate,
    ParameterTable,
    Phase,
    TensorLifetimes,
    TensorRole,
)

__all__ = ["FLOAT", "HALF", "Life", "lifetimes_of", "two_layers"]

FLOAT, HALF = NUMBER_OF["DT_FLOAT"], NUMBER_OF["DT_HALF"]
Life = tuple[int, int, int, TensorRole]  # bytes, made by, freed after


def lifetimes_of(lives: Sequence[Life]) -> TensorLifetimes:
    """Tensors one by one."""
    table = np.array(lives, dtype=np.int64).reshape(-1, 4)
    return TensorLifetimes(
        nbytes=table[:, 0],
        made_by=table[:, 1].astype(np.int32),
        freed_after=table[:, 2].astype(np.int32),
        roles=table[:, 3].astype(np.int8),
    )


def two_layers() -> OpGraph:
    """Nodes 0 and 1 are forward (layers `a` and `b`), 2 and 3 backward (`b` and `a`).

    Parameters `a.weight` (10 elements), `a.bias` (2, frozen) and `b.weight` (30), of 4 bytes;
    activations of 700 and 300 bytes; the gradients of `b` and `a` at nodes 2 and 3.
    """
    row = Tensor((4, 4), FLOAT)
    parameter, state = TensorRole.PARAMETER, TensorRole.OPTIMIZER_STATE
    lives = [
        (40, -1, 9, parameter), (8, -1, 9, parameter), (120, -1, 9, parameter),
        (64, -1, 9, TensorRole.INPUT),
        (700, 0, 3, TensorRole.ACTIVATION), (300, 1, 2, TensorRole.ACTIVATION),
        (120, 2, 9, TensorRole.GRADIENT), (40, 3, 9, TensorRole.GRADIENT),
        (320, -1, 9, state),
    ]  # fmt: skip
    return OpGraph(
        names=("n0", "n1", "n2", "n3"),
        op_types=("matmul",) * 4,
        devices=("",) * 4,
        edges=np.array([(0, 1), (1, 2), (0, 3), (2, 3)], dtype=np.int32),
        is_control=np.zeros(4, dtype=np.bool_),
        tensor_elements=np.full(4, 16),
        tensor_bytes=np.full(4, 64),
        signatures=(OpSignature("matmul", (row,), (row,)),),
        signature_of=np.zeros(4, dtype=np.int32),
        executions=np.ones(4, dtype=np.int64),
        phases=np.array([Phase.FORWARD] * 2 + [Phase.BACKWARD] * 2, dtype=np.int8),
        parameters=ParameterTable(
            names=("a.weight", "a.bias", "b.weight"),
            elements=np.array([10, 2, 30]),
            nbytes=np.array([40, 8, 120]),
            is_trained=np.array([True, False, True]),
            readers=np.array([(0, 0), (1, 0), (2, 1), (2, 2), (0, 3)], dtype=np.int32),
            gradients=np.array([(2, 2), (0, 3)], dtype=np.int32),
        ),
        lifetimes=lifetimes_of(lives),
        update=OptimizerUpdate(optimizer="adam", state_bytes=320, temporary_bytes=50),
        modules=("a", "b"),
        module_of=np.array([0, 1, 1, 0], dtype=np.int32),
        framework="pytorch",
    )
