"""FLOPs of single ops of random shapes against TensorFlow's profiler, for every type it knows.

The profiler takes image / stride^2 for the size of what a convolution makes, and the last side of
the first matrix for the inner one of a batched product: shapes here are such that both hold.
"""

from __future__ import annotations

from typing import Any

import pytest

from driple.graph.cost import cost_of_op
from driple.graph.signature import OpSignature, Tensor
from tests.conftest import RunTensorFlow

FLOAT = 1

MADE_BY_TENSORFLOW = """
import json, random
import tensorflow as tf
from tensorflow.python.framework import ops
import tensorflow.python.profiler.internal.flops_registry

v1, raw = tf.compat.v1, tf.raw_ops
draw = random.Random(7)

def size(): return draw.randint(2, 9)

def known():
    names = ops._stats_registry.list()
    return sorted(name.split(",")[0] for name in names if name.endswith("flops"))

def of(*shape): return v1.placeholder(tf.float32, shape)

def images():
    stride = draw.choice((1, 2, 3))
    return size(), size() * stride, size() * stride, 2 * size(), stride

def conv(op_type, channels=None, depthwise=False):
    batch, height, width, inner, stride = images()
    outer, window = channels or size(), (draw.choice((1, 2, 3, 5)), draw.choice((1, 3)))
    made = (batch, height // stride, width // stride, inner * outer if depthwise else outer)
    image, weights = (batch, height, width, inner), (*window, inner, outer)
    kw = dict(strides=[1, stride, stride, 1], padding="SAME")
    if op_type in ("Conv2D", "DepthwiseConv2dNative"):
        kw["dilations"] = [1, 2, 2, 1] if stride == 1 else [1, 1, 1, 1]
        getattr(raw, op_type)(input=of(*image), filter=of(*weights), **kw)
    elif op_type.endswith("BackpropInput"):
        getattr(raw, op_type)(input_sizes=image, filter=of(*weights), out_backprop=of(*made), **kw)
    else:
        getattr(raw, op_type)(input=of(*image), filter_sizes=weights, out_backprop=of(*made), **kw)

def make(op_type):
    shape = [size() for _ in range(draw.randint(1, 4))]
    batch, height, width, inner, stride = images()
    image = (batch, height, width, inner)
    strides = [1, stride, stride, 1]
    window = dict(ksize=[1, draw.choice((2, 3)), 3, 1], strides=strides, padding="SAME")
    small = (batch, height // stride, width // stride, inner)
    if op_type.startswith("Conv2D") or op_type.startswith("Depthwise"):
        conv(op_type, depthwise=op_type.startswith("Depthwise"))
    elif op_type == "Conv3D":
        raw.Conv3D(input=of(size(), *image), filter=of(3, 2, 1, inner, size()),
                   strides=[1, 1, stride, stride, 1], padding="SAME")
    elif op_type == "Dilation2D":
        raw.Dilation2D(input=of(*image), filter=of(3, 2, inner), rates=[1, 1, 1, 1],
                       strides=strides, padding="SAME")
    elif op_type in ("MaxPool", "AvgPool"):
        name = "input" if op_type == "MaxPool" else "value"
        getattr(raw, op_type)(**{name: of(*image)}, **window)
    elif op_type == "MaxPoolGrad":
        raw.MaxPoolGrad(orig_input=of(*image), orig_output=of(*small), grad=of(*small), **window)
    elif op_type == "AvgPoolGrad":
        raw.AvgPoolGrad(orig_input_shape=image, grad=of(*small), **window)
    elif op_type == "MatMul":
        m, n, k = size(), size(), size()
        a, b = draw.choice((True, False)), draw.choice((True, False))
        raw.MatMul(a=of(*((k, m) if a else (m, k))), b=of(*((n, k) if b else (k, n))),
                   transpose_a=a, transpose_b=b)
    elif op_type.startswith("BatchMatMul"):
        m, n, k, count, turned = size(), size(), size(), size(), draw.choice((True, False))
        kw = dict(Tout=tf.float32) if op_type.endswith("V3") else {}
        getattr(raw, op_type)(x=of(count, m, k), y=of(count, *((n, k) if turned else (k, n))),
                              adj_y=turned, **kw)
    elif op_type in ("Sum", "Mean"):
        getattr(raw, op_type)(input=of(*image), axis=draw.choice(([0], [1, 2], [3])))
    elif op_type in ("ArgMax", "ArgMin"):
        getattr(raw, op_type)(input=of(*image), dimension=1)
    elif op_type == "AddN":
        raw.AddN(inputs=[of(*shape) for _ in range(size())])
    elif op_type in ("AssignAdd", "AssignSub"):
        variable = v1.get_variable("v", shape, use_resource=False)
        getattr(raw, op_type)(ref=variable, value=of(*shape))
    elif op_type == "BiasAdd":
        raw.BiasAdd(value=of(*image), bias=of(inner))
    elif op_type == "BiasAddGrad":
        raw.BiasAddGrad(out_backprop=of(*image))
    elif op_type == "L2Loss":
        raw.L2Loss(t=of(*shape))
    elif op_type == "Softmax":
        raw.Softmax(logits=of(*shape))
    elif op_type == "RsqrtGrad":
        raw.RsqrtGrad(y=of(*shape), dy=of(*shape))
    elif op_type in ("Log", "Neg", "Reciprocal", "Rsqrt", "Square"):
        getattr(raw, op_type)(x=of(*shape))
    else:
        getattr(raw, op_type)(x=of(*shape), y=of(*shape[-draw.randint(1, len(shape)):]))

def dims(tensor):
    shape = tensor.shape
    return None if shape.rank is None else [-1 if n is None else n for n in shape.as_list()]

made = []
for op_type in known():
    for _ in range(4):
        with v1.Graph().as_default() as graph:
            make(op_type)
            op = next(op for op in graph.get_operations() if op.type == op_type)
            flops = ops.get_stats_for_node_def(graph, op.node_def, "flops").value
            keys = [key for key in ("ksize", "strides") if key in op.node_def.attr]
            numbers = {key: list(op.get_attr(key)) for key in keys}
            made.append(dict(op_type=op_type, inputs=[dims(t) for t in op.inputs], numbers=numbers,
                             outputs=[dims(t) for t in op.outputs], flops=float(flops)))
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def ops(run_tensorflow: RunTensorFlow) -> Any:
    return run_tensorflow(MADE_BY_TENSORFLOW)


def signature_of(row: dict[str, Any]) -> OpSignature:
    """The op as the reader describes it."""
    numbers = sorted((name, tuple(values)) for name, values in row["numbers"].items())
    inputs, outputs = (
        tuple(Tensor(tuple(shape), FLOAT) for shape in row[side]) for side in ("inputs", "outputs")
    )
    return OpSignature.of_op_type(row["op_type"], inputs, outputs, tuple(numbers))


def test_flops_are_the_profilers(ops: list[dict[str, Any]]) -> None:
    """Exactly, four random shapes of each of the profiler's op types."""
    off: list[tuple[dict[str, Any], float, bool]] = []
    for row in ops:
        cost = cost_of_op(signature_of(row))
        saved = 1 if row["op_type"] == "L2Loss" else 0  # the first sum of its 3 n - 1
        if not cost.known or cost.flops != row["flops"] + saved:
            off.append((row, cost.flops, cost.known))
    assert len({row["op_type"] for row in ops}) > 40
    assert not off
