"""Shape functions of ops that look up, choose, count, reduce and regroup elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import OpCall, broadcast, merged, num_elements, rule

__all__: list[str] = []


@rule("Gather", "GatherV2")
def _gather(call: OpCall) -> Sequence[Shape]:
    shape, indices = call.shape(0), call.shape(1)
    axis = 0 if call.node.op == "Gather" else call.scalar(2)
    batch = call.number("batch_dims")
    if shape is None or indices is None:
        return (None,)
    if axis is None or not shape:
        return ((-1,) * max(0, len(shape) - 1 + len(indices) - batch),)
    at = axis % len(shape)
    return ((*shape[:at], *indices[batch % (len(indices) + 1) :], *shape[at + 1 :]),)


@rule("ResourceGather")
def _resource_gather(call: OpCall) -> Sequence[Shape]:
    holder, indices = call.holder(0), call.shape(1)
    shape = None if holder is None else holder.read()
    if shape is None or indices is None:
        return (None,)
    return ((*indices, *shape[1 + call.number("batch_dims") :]),)


@rule("GatherNd", "ResourceGatherNd")
def _gather_nd(call: OpCall) -> Sequence[Shape]:
    indices, shape = call.shape(1), call.shape(0)
    if call.node.op == "ResourceGatherNd":
        holder = call.holder(0)
        shape = None if holder is None else holder.read()
    if shape is None or not indices or indices[-1] < 0:
        return (None,)
    return ((*indices[:-1], *shape[indices[-1] :]),)


@rule("OneHot")
def _one_hot(call: OpCall) -> Sequence[Shape]:
    shape, depth, axis = call.shape(0), call.scalar(1), call.number("axis", -1)
    if shape is None:
        return (None,)
    at = len(shape) if axis < 0 else axis
    return ((*shape[:at], -1 if depth is None else depth, *shape[at:]),)


@rule("Range")
def _range_op(call: OpCall) -> Sequence[Shape]:
    values = [call.value(number) for number in range(3)]
    numbers = [value[1][0] if value is not None and value[1] else None for value in values]
    start, limit, delta = numbers
    if start is None or limit is None or not delta:
        return ((-1,),)
    length = -((start - limit) // delta)
    return ((max(0, int(length)) if isfinite(length) else -1,),)


@rule("LinSpace")
def _lin_space(call: OpCall) -> Sequence[Shape]:
    count = call.scalar(2)
    return ((-1 if count is None else count,),)


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm", "ArgMax", "ArgMin")
def _reduce(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    is_arg = call.node.op.startswith("Arg")
    axes = call.whole(1)
    keeps = bool(call.number("keep_dims")) and not is_arg
    if is_arg and len(call.reads) < 2:
        axes = (0,)
    if shape is None:
        return (None,)
    if axes is None:
        given = () if is_arg else call.shape(1)
        count = num_elements(given)
        if keeps:
            return ((-1,) * len(shape),)
        if count == len(shape):
            return ((),)
        return ((-1,) * (len(shape) - count) if 0 <= count <= len(shape) else None,)
    reduced = {axis % len(shape) for axis in axes} if shape else set()
    if keeps:
        return (tuple(1 if i in reduced else n for i, n in enumerate(shape)),)
    return (tuple(n for i, n in enumerate(shape) if i not in reduced),)


@rule(
    "SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd", "SparseSegmentSum",
    "SparseSegmentMean", "SparseSegmentSqrtN",
)  # fmt: skip
def _segments(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    return (None if shape is None else (-1, *shape[1:]),)


@rule(
    "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumGrad", "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad",
)  # fmt: skip
def _counted_segments(call: OpCall) -> Sequence[Shape]:
    shape, count = call.shape(0), call.scalar(3)
    return (None if shape is None else (-1 if count is None else count, *shape[1:]),)


@rule("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def _unsorted_segments(call: OpCall) -> Sequence[Shape]:
    shape, indices, count = call.shape(0), call.shape(1), call.scalar(2)
    if shape is None or indices is None:
        return (None,)
    return ((-1 if count is None else count, *shape[len(indices) :]),)


@rule("TopK", "TopKV2")
def _top_k(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    count = call.number("k", -1) if call.node.op == "TopK" else call.scalar(1)
    if not shape:
        return (None, None)
    return ((*shape[:-1], -1 if count is None else count),) * 2


@rule("NthElement")
def _nth_element(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    return (None if shape is None else shape[:-1],)


@rule("Where")
def _where(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    return ((-1, -1 if shape is None else len(shape)),)


@rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def _unique(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    first = None if shape is None else (-1, *shape[1:])
    counts: tuple[Shape, ...] = ((-1,),) if "Counts" in call.node.op else ()
    return (first, None if shape is None else shape[:1], *counts)


@rule("ListDiff")
def _list_diff(_: OpCall) -> Sequence[Shape]:
    return ((-1,), (-1,))


@rule("DynamicPartition")
def _dynamic_partition(call: OpCall) -> Sequence[Shape]:
    shape, parts = call.shape(0), call.shape(1)
    count = call.count("num_partitions")
    if shape is None or parts is None:
        return (None,) * count
    return ((-1, *shape[len(parts) :]),) * count


@rule("DynamicStitch", "ParallelDynamicStitch")
def _dynamic_stitch(call: OpCall) -> Sequence[Shape]:
    count = len(call.shapes) // 2
    rest: Shape = None
    for indices, data in zip(call.shapes[:count], call.shapes[count:], strict=False):
        if indices is not None and data is not None:
            rest = merged(rest, data[len(indices) :])
    highest = -1
    for number in range(count):
        indices_known = call.whole(number)
        if indices_known is None:
            return (None if rest is None else (-1, *rest),)
        highest = max(highest, *indices_known) if indices_known else highest
    return (None if rest is None else (highest + 1, *rest),)


@rule("Diag", "MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def _diag(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    if not shape:
        return (None,)
    return ((*shape, *shape) if call.node.op == "Diag" else (*shape, shape[-1]),)


@rule("DiagPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def _diag_part(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    if shape is None or len(shape) < 2:
        return (None,)
    if call.node.op == "DiagPart":
        return (shape[: len(shape) // 2],)
    smaller = -1 if -1 in shape[-2:] else min(shape[-2:])
    return ((*shape[:-2], smaller),)


@rule("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def _space_batch(call: OpCall) -> Sequence[Shape]:
    shape, is_old = call.shape(0), not call.node.op.endswith("ND")
    side = call.number("block_size")
    blocks = (side, side) if is_old else call.whole(1)
    extra = call.whole(1 if is_old else 2)
    if not shape or blocks is None or extra is None or len(extra) != 2 * len(blocks):
        return (None if shape is None else (-1,) * len(shape),)
    result, times = list(shape), prod(blocks)
    is_to_batch = call.node.op.startswith("Space")
    for i, block in enumerate(blocks, start=1):
        around = extra[2 * (i - 1)] + extra[2 * i - 1]
        if i < len(result) and result[i] >= 0 and block:
            grown = (result[i] + around) // block if is_to_batch else result[i] * block - around
            result[i] = grown
    if result[0] >= 0 and times:
        result[0] = result[0] * times if is_to_batch else result[0] // times
    return (tuple(result),)


@rule("SpaceToDepth", "DepthToSpace")
def _space_depth(call: OpCall) -> Sequence[Shape]:
    shape, block = call.shape(0), call.number("block_size", 1)
    if shape is None or len(shape) != 4 or block < 1:
        return (None,)
    first = 2 if call.text("data_format") == "NCHW" else 1
    channel = 1 if first == 2 else 3
    result = list(shape)
    is_to_depth = call.node.op == "SpaceToDepth"
    for i in (first, first + 1):
        if shape[i] >= 0:
            result[i] = shape[i] // block if is_to_depth else shape[i] * block
    if shape[channel] >= 0:
        square = block * block
        result[channel] = shape[channel] * square if is_to_depth else shape[channel] // square
    return (tuple(result),)


@rule("SparseReshape", "SparseReorder", "SparseFillEmptyRows", "SparseSlice", "SparseConcat")
def _sparse(call: OpCall) -> Sequence[Shape]:
    op = call.node.op
    if op == "SparseReshape":
        return ((-1, -1), (-1,))
    if op == "SparseReorder":
        return (call.shape(0), call.shape(1))
    if op == "SparseFillEmptyRows":
        indices = call.shape(0)
        return ((-1, -1 if not indices else indices[-1]), (-1,), (-1,), (-1,))
    return ((-1, -1), (-1,), (-1,))


@rule("StringJoin")
def _string_join(call: OpCall) -> Sequence[Shape]:
    return (broadcast(call.shapes),)


@rule("SparseTensorDenseMatMul")
def _sparse_matmul(call: OpCall) -> Sequence[Shape]:
    sizes, dense = call.sizes(2), call.shape(3)
    if sizes is None or dense is None or len(sizes) != 2 or len(dense) != 2:
        return ((-1, -1),)
    rows = sizes[1 if call.number("adjoint_a") else 0]
    return ((rows, dense[0 if call.number("adjoint_b") else 1]),)
