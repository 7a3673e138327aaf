"""A step of matrix products made by hand: layers in order, then their gradients the other way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driple.graph.opgraph import OpGraph, Traffic
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import ParameterTable, Phase

__all__ = ["FLOAT", "HALF", "layered"]

FLOAT, HALF = 1, 19  # numbers of TensorFlow's types


def layered(
    widths: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    rows: int = 6,
    dtype: int = FLOAT,
    passes: int = 1,
    frozen: Sequence[int] = (),
    phases: bool = True,
) -> OpGraph:
    """A step with a layer of `widths[i] x widths[i + 1]` parameters each, of fp32.

    Node i is the product of layer i; after them node num_layers + j is the gradient of layer
    num_layers - 1 - j, which reads its parameter again. Nodes are in the order of execution.

    Args:
        widths: columns of the input and of each layer's output.
        names: of the parameters; `layers.0.weight` and so on if None.
        rows: of the input.
        dtype: of the products.
        passes: executions of each node.
        frozen: layers that are not trained.
        phases: whether the graph shows them.
    """
    count = len(widths) - 1
    tensors = [Tensor((rows, width), dtype) for width in widths]
    weights = [Tensor((widths[i], widths[i + 1]), dtype, is_parameter=True) for i in range(count)]
    ops = [OpSignature("matmul", (tensors[i], weights[i]), (tensors[i + 1],)) for i in range(count)]
    ops += [
        OpSignature("matmul", (tensors[i], tensors[i + 1]), (Tensor(weights[i].shape, dtype),))
        for i in reversed(range(count))
    ]
    size = 2 * count
    elements = np.array([widths[i] * widths[i + 1] for i in range(count)], dtype=np.int64)
    trained = np.array([i not in frozen for i in range(count)], dtype=np.bool_)
    readers = [(i, i) for i in range(count)] + [(i, size - 1 - i) for i in range(count)]
    gradients = [(i, size - 1 - i) for i in range(count) if trained[i]]
    outputs = [op.outputs[0] for op in ops]
    pairs = np.array(gradients, dtype=np.int32).reshape(-1, 2)
    return OpGraph(
        names=tuple(f"op{i}" for i in range(size)),
        op_types=("MatMul",) * size,
        devices=("",) * size,
        edges=np.array([(i, i + 1) for i in range(size - 1)], dtype=np.int32),
        is_control=np.zeros(size - 1, dtype=np.bool_),
        tensor_elements=np.array([each.elements for each in outputs], dtype=np.int64),
        tensor_bytes=np.array([each.nbytes for each in outputs], dtype=np.int64),
        traffic=Traffic(
            received_bytes=4 * elements,
            readers=np.array(readers, dtype=np.int32),
            sent_bytes=4 * elements[pairs[:, 0]],
            senders=pairs[:, 1],
        ),
        signatures=tuple(ops),
        signature_of=np.arange(size, dtype=np.int32),
        executions=np.full(size, passes, dtype=np.int64),
        layout="one_device",
        framework="pytorch",
        parameters=ParameterTable(
            names=tuple(names or [f"layers.{i}.weight" for i in range(count)]),
            elements=elements,
            nbytes=4 * elements,
            is_trained=trained,
            readers=np.array(readers, dtype=np.int32),
            gradients=pairs,
        ),
        phases=np.array([Phase.FORWARD] * count + [Phase.BACKWARD] * count, dtype=np.int8)
        if phases
        else np.zeros(0, dtype=np.int8),
    )
