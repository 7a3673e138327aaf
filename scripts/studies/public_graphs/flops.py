"""FLOPs of ops as they ran, to check the graph reader.

TensorFlow's profiler knows the FLOPs of 40 op types (`tensorflow/python/profiler/internal/
flops_registry.py`). They are used as they are, with the shapes of the run in place of static ones.
Formulas of other types follow here. A multiply-add counts two. Nothing of `driple` is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

__all__ = ["RanOp", "flops_of", "is_update"]

Shape = tuple[int, ...]
_UPDATE = re.compile(
    r"(Resource)?(Sparse)?(Resource)?Apply[A-Z]\w*|(Resource)?Scatter(Nd)?(Sub|Add|Update)"
)


def is_update(op_type: str) -> bool:
    """Whether an op changes a variable by a gradient."""
    return bool(_UPDATE.fullmatch(op_type))


@dataclass(frozen=True, kw_only=True)
class RanOp:
    """One execution of an op.

    Attributes:
        node: its NodeDef.
        inputs: shape of each data input; None if the run did not report it.
        outputs: shape of each output that was computed.
    """

    node: Any
    inputs: Sequence[Shape | None]
    outputs: Sequence[Shape | None]

    @property
    def op_type(self) -> str:
        """Op type in the graph, where oneDNN has taken the op over and renamed it."""
        return re.sub("^_Mkl(Native)?", "", self.node.op)

    def elements(self, number: int) -> int:
        """Elements of an input."""
        return prod(self.shape(number))

    def made(self, number: int = 0) -> int:
        """Elements of an output."""
        return prod(_known(self.outputs, number))

    def shape(self, number: int) -> Shape:
        """Shape of an input."""
        return _known(self.inputs, number)


def _known(shapes: Sequence[Shape | None], number: int) -> Shape:
    shape = shapes[number] if number < len(shapes) else None
    if shape is None:
        raise ValueError(f"the run did not report shape {number}")
    return shape


class _Tensor:
    def __init__(self, shape: Any) -> None:
        self._shape = shape

    def get_shape(self) -> Any:
        return self._shape


class _Graph:
    """The part of a graph that registered formulas use: the shape of a tensor by its name."""

    def __init__(self, op: RanOp) -> None:
        from tensorflow.python.framework.tensor_shape import TensorShape

        names = [name for name in op.node.input if not name.startswith("^")]
        self._shapes = {
            name if ":" in name else f"{name}:0": TensorShape(shape)
            for name, shape in zip(names, op.inputs, strict=False)
        }
        for number, shape in enumerate(op.outputs):
            self._shapes[f"{op.node.name}:{number}"] = TensorShape(shape)

    def get_tensor_by_name(self, name: str) -> _Tensor:
        return _Tensor(self._shapes[name])


def flops_of(op: RanOp) -> tuple[float, str]:
    """FLOPs of one execution, and where they come from: "own", "profiler" or "none"."""
    from tensorflow.python.framework import ops

    own = _OWN.get(op.op_type)
    try:
        if own is not None:
            return float(own(op)), "own"
        node = type(op.node)()
        node.CopyFrom(op.node)
        node.op = op.op_type
        flops = ops.get_stats_for_node_def(_Graph(op), node, "flops").value
    except (ValueError, KeyError, TypeError):  # a shape that the run did not report
        return 0.0, "none"
    return (float(flops), "profiler") if flops else (0.0, "none")


def _numbers(op: RanOp, name: str) -> Shape:
    return tuple(op.node.attr[name].list.i)


def _conv_from_filter(filter_input: int | None, positions: int) -> Callable[[RanOp], float]:
    """Convolutions: two FLOPs per position of the output, channel, and element of the window.

    Args:
        filter_input: input that is the filter; None if the filter is the output.
        positions: input whose elements are the positions of the output; -1 for the output itself.
    """

    def flops(op: RanOp) -> float:
        window = _known(op.outputs, 0) if filter_input is None else op.shape(filter_input)
        out = op.made() if positions < 0 else op.elements(positions)
        return 2.0 * out * prod(window[:-1])

    return flops


def _depthwise(filter_input: int | None, positions: int) -> Callable[[RanOp], float]:
    """Each output position reads the window of one channel: [height, width] of the filter."""

    def flops(op: RanOp) -> float:
        window = _known(op.outputs, 0) if filter_input is None else op.shape(filter_input)
        out = op.made() if positions < 0 else op.elements(positions)
        return 2.0 * out * prod(window[:2])

    return flops


def _batch_matmul(op: RanOp) -> float:
    left = op.shape(0)
    if len(left) < 2:
        return 0.0
    return 2.0 * op.made() * (left[-2] if op.node.attr["adj_x"].b else left[-1])


def _einsum(op: RanOp) -> float:
    equation = op.node.attr["equation"].s.decode().replace(" ", "")
    sizes: dict[str, int] = {}
    for term, number in zip(equation.split("->")[0].split(","), range(2), strict=False):
        sizes.update(zip(term.replace("...", ""), op.shape(number)[-len(term) :], strict=False))
    return 2.0 * prod(sizes.values())


def _pool(op: RanOp) -> float:
    return float(op.made() * prod(_numbers(op, "ksize")))


def _max_pool_gradient(op: RanOp) -> float:
    """The search for each window's largest element, and one addition, per window."""
    return float(op.elements(1) * (prod(_numbers(op, "ksize")) + 1))


def _local_response(op: RanOp) -> float:
    """Per element 2 r + 1 squares with additions, then scale, power and product."""
    return float(op.elements(0) * (2 * (2 * op.node.attr["depth_radius"].i + 1) + 4))


def _block_lstm(op: RanOp) -> float:
    """[x, h] times the weights in each step: BlockLSTM(seq_len, x, cs_prev, h_prev, w, ...)."""
    steps, batch, _ = op.shape(1)
    return float(steps * batch * (2 * prod(op.shape(4)) + 25 * op.shape(4)[1] // 4))


def _block_lstm_gradient(op: RanOp) -> float:
    """Two products of that size in each step: with respect to [x, h] and to the weights."""
    steps, batch, _ = op.shape(1)
    return float(steps * batch * (4 * prod(op.shape(4)) + 50 * op.shape(4)[1] // 4))


def _lstm_cell(op: RanOp) -> float:
    """LSTMBlockCell(x, cs_prev, h_prev, w, ...); its gradient op holds no product."""
    return float(op.shape(0)[0] * (2 * prod(op.shape(3)) + 25 * op.shape(3)[1] // 4))


def _gru_cell(op: RanOp) -> float:
    """GRUBlockCell(x, h_prev, w_ru, w_c, b_ru, b_c)."""
    return float(op.shape(0)[0] * 2 * (prod(op.shape(2)) + prod(op.shape(3))))


def _gru_cell_gradient(op: RanOp) -> float:
    """GRUBlockCellGrad(x, h_prev, w_ru, w_c, ...): products with both weights, transposed."""
    return float(op.shape(0)[0] * 2 * (prod(op.shape(2)) + prod(op.shape(3))))


def _reduce(op: RanOp) -> float:
    return float(max(op.elements(0) - op.made(), 0))


def _per_output(flops: int) -> Callable[[RanOp], float]:
    return lambda op: float(flops * op.made())


def _per_input(flops: int, number: int = 0) -> Callable[[RanOp], float]:
    return lambda op: float(flops * op.elements(number))


def _updates() -> dict[str, Callable[[RanOp], float]]:
    """FLOPs per parameter, from the equation of each optimizer; the gradient counts elements."""
    rules: dict[str, Callable[[RanOp], float]] = {}
    for name, flops, dense in (
        ("GradientDescent", 2, 2), ("Momentum", 4, 3), ("KerasMomentum", 4, 3), ("Adagrad", 6, 3),
        ("AdagradV2", 7, 4), ("RMSProp", 11, 7), ("CenteredRMSProp", 14, 8), ("Adam", 12, 9),
        ("Ftrl", 15, 3), ("FtrlV2", 15, 3), ("Adadelta", 12, 6), ("AdaMax", 10, 8),
    ):  # fmt: skip
        sparse = {"GradientDescent": 2, "Adadelta": 6, "RMSProp": 7, "CenteredRMSProp": 8}
        for kind in ("", "Resource"):
            rules[f"{kind}Apply{name}"] = _per_input(flops, dense)
            rules[f"{kind}SparseApply{name}"] = _per_input(flops, sparse.get(name, dense))
            rules[f"Sparse{kind}Apply{name}"] = _per_input(flops, sparse.get(name, dense))
    return rules


_FORWARD_NORM, _BACKWARD_NORM = 8, 11  # per element: mean, variance, scale; two sums, five products

_OWN: Mapping[str, Callable[[RanOp], float]] = {
    **dict.fromkeys(("Conv2D", "Conv3D"), _conv_from_filter(1, -1)),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _conv_from_filter(1, 2)),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _conv_from_filter(None, 2)),
    "DepthwiseConv2dNative": _depthwise(1, -1),
    "DepthwiseConv2dNativeBackpropInput": _depthwise(1, 2),
    "DepthwiseConv2dNativeBackpropFilter": _depthwise(None, 2),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    "Einsum": _einsum,
    **dict.fromkeys(("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D"), _pool),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), _max_pool_gradient),
    **dict.fromkeys(("LRN", "LRNGrad"), _local_response),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2"), _block_lstm),
    **dict.fromkeys(("BlockLSTMGrad", "BlockLSTMGradV2"), _block_lstm_gradient),
    "LSTMBlockCell": _lstm_cell,
    "GRUBlockCell": _gru_cell,
    "GRUBlockCellGrad": _gru_cell_gradient,
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _per_output(_FORWARD_NORM)
    ),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
        _per_input(_BACKWARD_NORM),
    ),
    **dict.fromkeys(("SparseSoftmaxCrossEntropyWithLogits",), _per_input(6)),
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits",), _per_input(8)),
    "LogSoftmax": _per_input(5),
    "CTCLoss": _per_input(20),
    "UnsortedSegmentSum": _per_input(1),
    "SegmentSum": _per_input(1),
    "SparseSegmentSum": _per_output(1),
    **dict.fromkeys(("Max", "Min", "Prod"), _reduce),
    **dict.fromkeys(
        ("Tanh", "Sigmoid", "Exp", "Sqrt", "Abs", "Sign", "Relu", "Relu6", "Elu", "LeakyRelu",
         "ReluGrad", "Relu6Grad", "EluGrad", "LeakyReluGrad", "Floor", "Select", "SelectV2",
         "FloorDiv", "DivNoNan", "Log1p", "Expm1", "Erf", "Sin", "Cos", "Cumsum"),
        _per_output(1),
    ),
    **dict.fromkeys(
        ("TanhGrad", "SigmoidGrad", "SqrtGrad", "Softplus", "SoftplusGrad", "ReciprocalGrad"),
        _per_output(2),
    ),
    **_updates(),
}  # fmt: skip
