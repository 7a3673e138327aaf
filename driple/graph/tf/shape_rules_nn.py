"""Shape functions of products, convolutions, pools, norms, recurrent layers and images."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import OpCall, broadcast, merged, rule, size_at
from driple.graph.tf.windows import Layout, axis_of, window

__all__: list[str] = []


@rule("MatMul", "SparseMatMul", "_FusedMatMul")
def _matmul(call: OpCall) -> Sequence[Shape]:
    a, b = call.shape(0), call.shape(1)
    rows = _side(a, -1 if call.number("transpose_a") else -2)
    columns = _side(b, -2 if call.number("transpose_b") else -1)
    return ((rows, columns),)


def _side(shape: Shape, axis: int) -> int:
    return -1 if shape is None or len(shape) < 2 else shape[axis]


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(call: OpCall) -> Sequence[Shape]:
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return (None,)
    batch = broadcast((a[:-2], b[:-2]))
    rows, columns = a[-1 if call.number("adj_x") else -2], b[-2 if call.number("adj_y") else -1]
    return (None if batch is None else (*batch, rows, columns),)


@rule("Einsum")
def _einsum(call: OpCall) -> Sequence[Shape]:
    equation = "".join(map(chr, call.node.numbers.get("equation", ()))).replace(" ", "")
    if "->" not in equation:
        return (None,)
    terms, result = equation.split("->", 1)
    sizes: dict[str, int] = {}
    spread: list[Shape] = []
    for term, shape in zip(terms.split(","), call.shapes, strict=False):
        if shape is None:
            continue
        before, dots, after = term.partition("...")
        if len(before) + len(after) > len(shape):
            return (None,)
        pairs = [*zip(before, shape, strict=False)]
        if after:
            pairs += [*zip(after, shape[-len(after) :], strict=False)]
        for letter, size in pairs:
            if sizes.get(letter, -1) < 0 or (sizes[letter] == 1 and size > 1):
                sizes[letter] = size
        if dots:
            spread.append(shape[len(before) : len(shape) - len(after)])
    middle = broadcast(spread) if "..." in result else ()
    if middle is None:
        return (None,)
    before, _, after = result.partition("...")
    return ((*[sizes.get(n, -1) for n in before], *middle, *[sizes.get(n, -1) for n in after]),)


@rule(
    "Conv2D", "DepthwiseConv2dNative", "_FusedConv2D", "_FusedDepthwiseConv2dNative", "Conv3D",
    "Dilation2D", "Conv",
)  # fmt: skip
def _conv(call: OpCall) -> Sequence[Shape]:
    shape, kernel = call.shape(0), call.shape(1)
    num_spatial = 3 if call.node.op == "Conv3D" else 2
    if shape is None:
        return ((-1,) * (num_spatial + 2),)
    layout = Layout(call, num_spatial)
    if len(shape) != num_spatial + 2:
        return (None,)
    strides, dilations = call.numbers("strides"), call.numbers("dilations") or call.numbers("rates")
    spatial = [
        window(
            call,
            axis,
            shape[axis],
            kernel=size_at(kernel, i),
            stride=axis_of(strides, axis),
            dilation=axis_of(dilations, axis),
        )
        for i, axis in enumerate(layout.spatial)
    ]
    if call.node.op == "Dilation2D":
        channels = shape[3]
    elif kernel is None or len(kernel) != num_spatial + 2:
        channels = -1
    elif "Depthwise" in call.node.op:
        channels = -1 if -1 in kernel[2:] else kernel[2] * kernel[3]
    else:
        channels = kernel[-1]
    return (layout.shape(shape[0], spatial, channels),)


def _num_spatial(call: OpCall) -> int:
    """Spatial dimensions of a convolution."""
    return 3 if "3D" in call.node.op else 2


def _forward_of(call: OpCall) -> str:
    """Op type of the convolution that a node is a gradient of."""
    if "Depthwise" in call.node.op:
        return "DepthwiseConv2dNative"
    return f"Conv{_num_spatial(call)}D"


def _given_sizes(call: OpCall, at: int, *, of_a_tensor: Sequence[str]) -> Shape:
    """Sizes of the result that input `at` gives: in `of_a_tensor` its shape, else its values."""
    sizes = call.shape(at) if call.node.op in of_a_tensor else call.sizes(at)
    return None if sizes is None or len(sizes) != _num_spatial(call) + 2 else sizes


@rule(
    "Conv2DBackpropInput", "Conv2DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput",
    "Conv3DBackpropInput", "Conv3DBackpropInputV2",
)  # fmt: skip
def _conv_backprop_input(call: OpCall) -> Sequence[Shape]:
    """The sizes that are given; else those of the forward input; else from filter and gradient."""
    num_spatial = _num_spatial(call)
    layout = Layout(call, num_spatial)
    sizes = _given_sizes(call, 0, of_a_tensor=("Conv3DBackpropInput", "Conv2DBackpropInputV2"))
    kernel, gradient = call.shape(1), call.shape(2)
    batch = size_at(gradient, 0)
    channels = size_at(kernel, num_spatial)
    if "Depthwise" not in call.node.op and kernel is not None and sizes is not None:
        given = sizes[layout.channel]
        channels = given if given >= 0 else channels
    known = merged(sizes, layout.shape(batch, (-1,) * num_spatial, channels))
    if known is not None and -1 not in known:
        return (known,)
    if len(call.reads) > 2:
        known = merged(known, _mirrored(call, shared=1, wanted=0, gradient=gradient))
    return (merged(known, _upsampled(call, layout, kernel, gradient)),)


def _upsampled(call: OpCall, layout: Layout, kernel: Shape, gradient: Shape) -> Shape:
    """The smallest input that a convolution turns into this gradient's shape, as far as known."""
    if gradient is None or len(gradient) != len(layout.spatial) + 2:
        return None
    strides, dilations = call.numbers("strides"), call.numbers("dilations")
    spatial = []
    for i, axis in enumerate(layout.spatial):
        size, stride = gradient[axis], axis_of(strides, axis)
        side = size_at(kernel, i)
        if size < 0 or call.text("padding") == "EXPLICIT":
            spatial.append(-1)
        elif call.text("padding") == "SAME":
            spatial.append(size * stride)
        elif side < 0:
            spatial.append(-1)
        else:
            spatial.append((size - 1) * stride + (side - 1) * max(axis_of(dilations, axis), 1) + 1)
    channels = size_at(kernel, len(layout.spatial))
    return layout.shape(gradient[0], spatial, channels)


def _mirrored(call: OpCall, *, shared: int, wanted: int, gradient: Shape) -> Shape:
    """Shape of input `wanted` of the forward convolution that this node is the gradient of.

    Forward and gradient node read the same tensor at input `shared`, 0 or 1, have the same strides
    and padding, and the forward output has the shape of `gradient`.
    """
    if shared >= len(call.reads):
        return None
    shapes = []
    for at in call.readers(_forward_of(call), shared, call.reads[shared]):
        node = call.tables.nodes[at]
        if wanted >= len(call.tables.inputs[at]):
            continue
        output = call.shape_of((at, 0))
        if (
            node.attributes.get("strides") == call.node.attributes.get("strides")
            and node.texts.get("padding") == call.node.texts.get("padding")
            and (output is None or gradient is None or _agree(output, gradient))
        ):
            shape = call.shape_of(call.tables.inputs[at][wanted])
            if shape is not None:
                shapes.append(shape)
    return _only(shapes)


def _only(shapes: Sequence[Shape]) -> Shape:
    """The one shape of all; None if they differ."""
    return shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else None


def _agree(a: Shape, b: Shape) -> bool:
    return a is None or b is None or (
        len(a) == len(b) and all(x == y or -1 in (x, y) for x, y in zip(a, b, strict=True))
    )  # fmt: skip


@rule(
    "Conv2DBackpropFilter", "Conv2DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter",
    "Conv3DBackpropFilter", "Conv3DBackpropFilterV2",
)  # fmt: skip
def _conv_backprop_filter(call: OpCall) -> Sequence[Shape]:
    """The sizes that are given; else the filter of the forward convolution; else the channels."""
    num_spatial = _num_spatial(call)
    sizes = _given_sizes(call, 1, of_a_tensor=("Conv3DBackpropFilter", "Conv2DBackpropFilterV2"))
    if sizes is not None and -1 not in sizes:
        return (sizes,)
    layout = Layout(call, num_spatial)
    shape, gradient = call.shape(0), call.shape(2)
    is_depthwise = "Depthwise" in call.node.op
    if call.reads:
        sizes = merged(sizes, _mirrored(call, shared=0, wanted=1, gradient=gradient))
    channels = size_at(shape, layout.channel)
    outputs = size_at(gradient, layout.channel)
    if is_depthwise:
        outputs = outputs // channels if outputs >= 0 and channels > 0 else -1
    return (merged(sizes, (*(-1,) * num_spatial, channels, outputs)),)


@rule("BiasAddGrad")
def _bias_grad(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    if not shape:
        return ((-1,),)
    is_first = call.text("data_format", "N").startswith("NC") and len(shape) > 2
    return ((shape[1] if is_first else shape[-1],),)


@rule("MaxPool", "AvgPool", "MaxPoolV2", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax")
def _pool(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    count = 2 if call.node.op == "MaxPoolWithArgmax" else 1
    kernel, strides = call.numbers("ksize"), call.numbers("strides")
    if call.node.op == "MaxPoolV2":
        kernel, strides = call.whole(1) or (), call.whole(2) or ()
    if shape is None:
        return ((-1,) * (5 if "3D" in call.node.op else 4),) * count
    if len(kernel) != len(shape):
        return (None,) * count
    result = tuple(
        size if axis_of(kernel, i) == axis_of(strides, i) == 1 else
        window(call, i, size, kernel=kernel[i], stride=axis_of(strides, i))
        for i, size in enumerate(shape)
    )  # fmt: skip
    return (result,) * count


@rule("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", "MaxPoolGradWithArgmax", "_MklMaxPoolGrad")
def _max_pool_grad(call: OpCall) -> Sequence[Shape]:
    return (call.shape(0),)


@rule("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad", "MaxPoolGradGradWithArgmax")
def _max_pool_grad_grad(call: OpCall) -> Sequence[Shape]:
    return (call.shape(2 if call.node.op.endswith("Argmax") else 1),)


@rule("AvgPoolGrad", "AvgPool3DGrad")
def _avg_pool_grad(call: OpCall) -> Sequence[Shape]:
    """The sizes that are given; batch and channels are those of the gradient."""
    sizes, gradient = call.sizes(0), call.shape(1)
    if sizes is None or gradient is None or len(sizes) != len(gradient):
        return (sizes,)
    kernel, strides = call.numbers("ksize"), call.numbers("strides")
    through = tuple(
        n if axis_of(kernel, i) == axis_of(strides, i) == 1 else -1 for i, n in enumerate(gradient)
    )
    return (merged(sizes, through),)


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx")
def _batch_norm(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    vector = merged((_channels(call, shape),), *call.shapes[1:3])
    extra: tuple[Shape, ...] = ((0,),) if call.node.op[-2:] in ("V3", "Ex") else ()
    return (shape, vector, vector, vector, vector, *extra)


def _channels(call: OpCall, shape: Shape) -> int:
    if shape is None or len(shape) < 4:
        return -1
    return shape[1] if call.text("data_format", "N").startswith("NC") else shape[-1]


@rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", "_FusedBatchNormGradEx")
def _batch_norm_grad(call: OpCall) -> Sequence[Shape]:
    shape = merged(call.shape(1), call.shape(0))
    vector = merged((_channels(call, shape),), call.shape(2))
    kept: Shape = (0,) if call.number("is_training", 1) else vector
    return (shape, vector, vector, kept, kept)


@rule("BatchNormWithGlobalNormalization")
def _old_batch_norm(call: OpCall) -> Sequence[Shape]:
    return (call.shape(0),)


@rule("BatchNormWithGlobalNormalizationGrad")
def _old_batch_norm_grad(call: OpCall) -> Sequence[Shape]:
    vector = call.shape(1)
    return (call.shape(0), vector, vector, vector, vector)


@rule()
def _softmax_grad(call: OpCall) -> Sequence[Shape]:
    return (merged(*call.shapes),)
