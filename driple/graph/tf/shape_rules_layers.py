"""Shape functions of fused recurrent layers, image ops and boxes."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import OpCall, merged, rule
from driple.graph.tf.windows import axis_of, window

__all__: list[str] = []


@rule("LSTMBlockCell", "GRUBlockCell")
def _block_cell(call: OpCall) -> Sequence[Shape]:
    state = (
        merged(call.shape(1), call.shape(2)) if call.node.op == "LSTMBlockCell" else call.shape(1)
    )
    x = call.shape(0)
    if state is not None and x is not None and state and x:
        state = (max(state[0], x[0]), *state[1:])
    return (state,) * (7 if call.node.op == "LSTMBlockCell" else 4)


@rule("LSTMBlockCellGrad")
def _block_cell_grad(call: OpCall) -> Sequence[Shape]:
    state, peephole = call.shape(1), call.shape(4)
    gates = None if state is None or len(state) != 2 else (state[0], _times(4, state[1]))
    return (state, gates, peephole, peephole, peephole)


@rule("GRUBlockCellGrad")
def _gru_cell_grad(call: OpCall) -> Sequence[Shape]:
    x, state = call.shape(0), call.shape(1)
    gates = None if state is None or len(state) != 2 else (state[0], _times(2, state[1]))
    return (x, state, state, gates)


def _times(factor: int, size: int) -> int:
    return -1 if size < 0 else factor * size


@rule("BlockLSTM", "BlockLSTMV2")
def _block_lstm(call: OpCall) -> Sequence[Shape]:
    x, bias = call.shape(1), call.shape(8)
    if x is None or len(x) != 3:
        return (None,) * 7
    cell = -1 if not bias or bias[0] < 0 else bias[0] // 4
    return ((*x[:2], cell),) * 7


@rule("BlockLSTMGrad", "BlockLSTMGradV2")
def _block_lstm_grad(call: OpCall) -> Sequence[Shape]:
    """Gradients of x, the first state and output, weights, peepholes and bias: as those are."""
    return tuple(call.shape(number) for number in range(1, 9))


@rule("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def _cudnn_rnn(call: OpCall) -> Sequence[Shape]:
    x, state, cell = call.shape(0), call.shape(1), call.shape(2)
    modes = call.node.numbers
    directions = 2 if "".join(map(chr, modes.get("direction", ()))) == "bidirectional" else 1
    output: Shape = None
    if x is not None and state is not None and len(x) == 3 and len(state) == 3:
        projected = call.number("num_proj") or state[2]
        output = (*x[:2], _times(directions, projected))
    if "".join(map(chr, modes.get("rnn_mode", ()))) not in ("lstm", ""):
        cell = (0,)
    extra: tuple[Shape, ...] = ((-1,),) if call.node.op != "CudnnRNN" else ()
    return (output, state, cell, (-1,), *extra)


@rule("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3")
def _cudnn_rnn_grad(call: OpCall) -> Sequence[Shape]:
    return tuple(call.shape(number) for number in range(4))


@rule("CudnnRNNParamsSize")
def _cudnn_params(_: OpCall) -> Sequence[Shape]:
    return ((1,),)


@rule("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")
def _resize(call: OpCall) -> Sequence[Shape]:
    shape, size = call.shape(0), call.sizes(1)
    if shape is None or len(shape) != 4:
        return ((-1, *(size or (-1, -1)), -1) if size is None or len(size) == 2 else None,)
    height, width = size if size is not None and len(size) == 2 else (-1, -1)
    return ((shape[0], height, width, shape[3]),)


@rule("ResizeNearestNeighborGrad")
def _resize_nearest_grad(call: OpCall) -> Sequence[Shape]:
    shape, size = call.shape(0), call.sizes(1)
    if shape is None or len(shape) != 4:
        return (None,)
    height, width = size if size is not None and len(size) == 2 else (-1, -1)
    return ((shape[0], height, width, shape[3]),)


@rule("ResizeBilinearGrad", "ResizeBicubicGrad")
def _resize_grad(call: OpCall) -> Sequence[Shape]:
    return (call.shape(1),)


@rule("CropAndResize")
def _crop_and_resize(call: OpCall) -> Sequence[Shape]:
    shape, boxes, size = call.shape(0), call.shape(1), call.sizes(3)
    height, width = size if size is not None and len(size) == 2 else (-1, -1)
    return ((boxes[0] if boxes else -1, height, width, shape[-1] if shape else -1),)


@rule("CropAndResizeGradImage")
def _crop_grad(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(3),)


@rule("CropAndResizeGradBoxes")
def _crop_grad_boxes(call: OpCall) -> Sequence[Shape]:
    return (call.shape(2),)


@rule(
    "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
    "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps",
)  # fmt: skip
def _suppression(call: OpCall) -> Sequence[Shape]:
    op = call.node.op
    if op.endswith("V4"):
        return ((-1,), ())
    if op.endswith("V5"):
        return ((-1,), (-1,), ())
    return ((-1,),)


@rule("CombinedNonMaxSuppression")
def _combined_suppression(call: OpCall) -> Sequence[Shape]:
    boxes, most = call.shape(0), call.scalar(3)
    batch, most = boxes[0] if boxes else -1, -1 if most is None else most
    return ((batch, most, 4), (batch, most), (batch, most), (batch,))


@rule("DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBmp", "DecodeGif", "DecodeAndCropJpeg")
def _decode(call: OpCall) -> Sequence[Shape]:
    if call.node.op == "DecodeGif":
        return ((-1, -1, -1, 3),)
    return ((-1, -1, call.number("channels") or -1),)


@rule("DecodeRaw")
def _decode_raw(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    return (None if shape is None else (*shape, -1),)


@rule("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def _distorted_box(_: OpCall) -> Sequence[Shape]:
    return ((3,), (3,), (1, 1, 4))


@rule("ExtractImagePatches")
def _patches(call: OpCall) -> Sequence[Shape]:
    shape, kernel = call.shape(0), call.numbers("ksizes")
    strides, rates = call.numbers("strides"), call.numbers("rates")
    if shape is None or len(shape) != 4 or len(kernel) != 4:
        return ((-1,) * 4,)
    spatial = [
        window(
            call,
            i,
            shape[i],
            kernel=kernel[i],
            stride=axis_of(strides, i),
            dilation=axis_of(rates, i),
        )
        for i in (1, 2)
    ]
    return ((shape[0], *spatial, _times(kernel[1] * kernel[2], shape[3])),)
