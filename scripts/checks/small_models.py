"""Small valid ONNX models, from which `mutate_files` makes damaged ones.

Each has a few nodes: convolutions and norms; attention by hand; recurrent layers with weights in
Constants; a branch, sizes that follow from shapes, and moves; an equation and a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = ["small_models"]

_Arrays = Mapping[str, np.ndarray]


def small_models() -> list[bytes]:
    """The models, each as the bytes of a file."""
    models = (_convolutions(), _attention(), _recurrent(), _moves(), _equation())
    return [model.SerializeToString(deterministic=True) for model in models]


def _model(
    nodes: Sequence[NodeProto],
    input_shape: Sequence[int | str],
    output: str,
    weights: _Arrays,
    opset: int = 17,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, input_shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _convolutions() -> ModelProto:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "d"], ["e"], group=4, kernel_shape=[3, 3]),
        node("ConvTranspose", ["e", "u"], ["f"]),
        node("GlobalAveragePool", ["f"], ["a"]),
        node("Flatten", ["a"], ["h"]),
        node("Gemm", ["h", "g", "k"], ["y"], transB=1),
    ]
    weights = {
        "w": _floats(4, 3, 3, 3), "b": _floats(4), "s": _floats(4), "t": _floats(4),
        "m": _floats(4), "v": _floats(4), "d": _floats(4, 1, 3, 3), "u": _floats(4, 2, 2, 2),
        "g": _floats(5, 2), "k": _floats(5),
    }  # fmt: skip
    return _model(nodes, ["batch", 3, 16, 16], "y", weights)


def _attention() -> ModelProto:
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "q"], ["a"]),
        node("Add", ["a", "b"], ["c"]),
        node("Transpose", ["c"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["c", "t"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("Dropout", ["p"], ["d"]),
        node("MatMul", ["d", "c"], ["o"]),
        node("LayerNormalization", ["o", "g", "h"], ["n"], axis=-1),
        node("Sigmoid", ["n"], ["i"]),
        node("Mul", ["n", "i"], ["m"]),
        node("ReduceMean", ["m"], ["r"], axes=[1], keepdims=0),
        node("MatMul", ["r", "w"], ["y"]),
    ]
    weights = {
        "q": _floats(8, 8), "b": _floats(8), "g": _floats(8), "h": _floats(8), "w": _floats(8, 6),
    }  # fmt: skip
    return _model(nodes, [2, 4, 8], "y", weights)


def _recurrent() -> ModelProto:
    node = helper.make_node
    constants = {"w": _floats(1, 16, 3), "r": _floats(1, 16, 4), "b": _floats(1, 32)}
    nodes = [
        node("Constant", [], [name], value=numpy_helper.from_array(value, name))
        for name, value in constants.items()
    ]
    nodes += [
        node("LSTM", ["x", "w", "r", "b"], ["h", "", ""], hidden_size=4),
        node("Squeeze", ["h", "one"], ["s"]),
        node("GRU", ["s", "u", "v"], ["k"], hidden_size=2, direction="bidirectional"),
        node("LpNormalization", ["k"], ["l"], axis=-1, p=2),
        node("Tanh", ["l"], ["y"]),
    ]
    return _model(
        nodes, [5, 2, 3], "y", {"one": _numbers(1), "u": _floats(2, 6, 4), "v": _floats(2, 6, 2)}
    )


def _moves() -> ModelProto:
    node = helper.make_node

    def branch(name: str, op_type: str) -> object:
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([node(op_type, ["g"], [name])], name, [], [output])

    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "first"], ["u"]),
        node("Concat", ["u", "rest"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["f"]),
        node("MatMul", ["f", "w"], ["m"]),
        node("Reshape", ["m", "square"], ["g"]),
        node("If", ["yes"], ["i"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Exp")),
        node("Resize", ["i", "", "scales"], ["z"], mode="linear"),
        node("Slice", ["z", "first", "two", "axis"], ["c"]),
        node("Pad", ["c", "pads"], ["p"], mode="constant"),
        node("Split", ["p"], ["a", "b"], axis=1),
        node("Sub", ["a", "b"], ["y"]),
    ]
    weights = {
        "zero": np.array(0, dtype=np.int64), "first": _numbers(0), "rest": _numbers(-1),
        "w": _floats(12, 16), "square": _numbers(-1, 4, 2, 2), "yes": np.array(True),
        "scales": np.array([1, 1, 2, 2], dtype=np.float32), "two": _numbers(2), "axis": _numbers(2),
        "pads": _numbers(0, 0, 1, 1, 0, 0, 1, 1),
    }  # fmt: skip
    return _model(nodes, [2, 3, 2, 2], "y", weights)


def _equation() -> ModelProto:
    node = helper.make_node
    twice = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        node("Einsum", ["x", "w"], ["e"], equation="bij,jk->bik"),
        node("Twice", ["e"], ["t"], domain="own"),
        node("Clip", ["t", "low", "high"], ["c"]),
        node("TopK", ["c", "k"], ["v", "i"], axis=-1),
        node("Where", ["mask", "v", "v"], ["y"]),
    ]
    weights = {
        "w": _floats(4, 6), "low": np.array(0, dtype=np.float32), "k": _numbers(3),
        "high": np.array(6, dtype=np.float32), "mask": np.array([True, False, True]),
    }  # fmt: skip
    model = _model(nodes, [2, 3, 4], "y", weights)
    model.functions.append(twice)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model
