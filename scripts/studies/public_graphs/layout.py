"""Turn ops with channels first into ops with channels last, as TensorFlow's CPU kernels need.

op in NCHW -> transpose of its inputs, the op in NHWC, transpose of its output

FLOPs stay the same: a transpose has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["to_channels_last"]

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
# Inputs and outputs of rank 4, and inputs that hold the shape of a tensor of rank 4.
_OPS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "Conv2D": ((0,), (0,), ()),
    "Conv2DBackpropInput": ((2,), (0,), (0,)),
    "Conv2DBackpropFilter": ((0, 2), (), ()),
    "DepthwiseConv2dNative": ((0,), (0,), ()),
    "DepthwiseConv2dNativeBackpropInput": ((2,), (0,), (0,)),
    "DepthwiseConv2dNativeBackpropFilter": ((0, 2), (), ()),
    "MaxPool": ((0,), (0,), ()),
    "AvgPool": ((0,), (0,), ()),
    "MaxPoolGrad": ((0, 1, 2), (0,), ()),
    "AvgPoolGrad": ((1,), (0,), (0,)),
    **{f"FusedBatchNorm{v}": ((0,), (0,), ()) for v in ("", "V2", "V3")},
    **{f"FusedBatchNormGrad{v}": ((0, 1), (0,), ()) for v in ("", "V2", "V3")},
}


def to_channels_last(graph: Any) -> None:
    """Change a GraphDef in place."""
    renamed: dict[str, set[int]] = {}
    for node in list(graph.node):
        if node.op in _OPS and node.attr["data_format"].s == b"NCHW":
            if _OPS[node.op][1]:
                renamed[node.name] = set(_OPS[node.op][1])
            _convert(graph, node)
    if not renamed:
        return
    for node in graph.node:
        for number, entry in enumerate(node.input):
            name, _, slot = entry.partition(":")
            if name in renamed and int(slot or 0) not in renamed[name]:
                node.input[number] = f"{name}__last:{slot or 0}"


def _convert(graph: Any, node: Any) -> None:
    tensors, outputs, shapes = _OPS[node.op]
    name, attrs = node.name, node.attr
    dtype = attrs["T"].type
    for number in tensors:
        node.input[number] = _transpose(
            graph, f"{name}__in{number}", node.input[number], _TO_LAST, dtype
        )
    for number in shapes:
        node.input[number] = _permuted_shape(graph, f"{name}__size{number}", node.input[number])
    attrs["data_format"].s = b"NHWC"
    for key in ("strides", "ksize", "dilations"):
        if key in attrs:
            _permute(attrs[key].list.i, lambda old: [old[i] for i in _TO_LAST])
    if attrs["explicit_paddings"].list.i:
        _permute(
            attrs["explicit_paddings"].list.i,
            lambda old: [old[2 * i + side] for i in _TO_LAST for side in (0, 1)],
        )
    if outputs:
        node.name = f"{name}__last"
        _transpose(graph, name, f"{node.name}:0", _TO_FIRST, dtype)
        graph.node[-1].device = node.device
    if "_class" in attrs:
        del attrs["_class"]


def _permute(values: Any, change: Callable[[list[int]], list[int]]) -> None:
    if values:
        values[:] = change(list(values))


def _constant(graph: Any, name: str, values: tuple[int, ...]) -> str:
    import numpy as np
    from tensorflow.python.framework import tensor_util

    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = 3
    node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(np.array(values, np.int32)))
    return name


def _transpose(graph: Any, name: str, entry: str, order: tuple[int, ...], dtype: int) -> str:
    order_name = _constant(graph, f"{name}__order", order)
    node = graph.node.add(name=name, op="Transpose")
    node.input.extend([entry, order_name])
    node.attr["T"].type = dtype
    node.attr["Tperm"].type = 3
    return name


def _permuted_shape(graph: Any, name: str, entry: str) -> str:
    node = graph.node.add(name=name, op="GatherV2")
    node.input.extend(
        [entry, _constant(graph, f"{name}__order", _TO_LAST), _constant_axis(graph, name)]
    )
    node.attr["Tparams"].type = 3
    node.attr["Tindices"].type = 3
    node.attr["Taxis"].type = 3
    return name


def _constant_axis(graph: Any, name: str) -> str:
    import numpy as np
    from tensorflow.python.framework import tensor_util

    node = graph.node.add(name=f"{name}__axis", op="Const")
    node.attr["dtype"].type = 3
    node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(np.array(0, np.int32)))
    return f"{name}__axis"
