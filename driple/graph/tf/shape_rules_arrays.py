"""Shape functions of ops that rearrange, cut, join, gather and reduce tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import MAX_RANK, OpCall, merged, num_elements, rule, size_at

__all__ = ["strided_ranges"]


@rule("Shape", "VariableShape")
def _shape(call: OpCall) -> Sequence[Shape]:
    if call.node.op == "VariableShape":
        holder = call.holder(0)
        shape = None if holder is None else holder.read()
    else:
        shape = call.shape(0)
    return ((-1 if shape is None else len(shape),),)


@rule("ShapeN")
def _shape_n(call: OpCall) -> Sequence[Shape]:
    return tuple((-1 if shape is None else len(shape),) for shape in call.shapes)


@rule("Reshape")
def _reshape(call: OpCall) -> Sequence[Shape]:
    """At most one size is -1 by value; if one is unknown, the number of elements gives it."""
    given, sizes = call.shape(0), call.sizes(1)
    if sizes is None:
        return (None,)
    total, known = num_elements(given), prod(n for n in sizes if n >= 0)
    if sizes.count(-1) == 1 and known and total >= 0 and total % known == 0:
        return (tuple(total // known if n < 0 else n for n in sizes),)
    return (sizes,)


@rule("Squeeze")
def _squeeze(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    axes = call.numbers("squeeze_dims") or call.numbers("axis")
    if shape is None:
        return (None,)
    if axes:
        dropped = {axis % len(shape) for axis in axes} if shape else set()
        return (tuple(n for i, n in enumerate(shape) if i not in dropped),)
    return (None if -1 in shape else tuple(n for n in shape if n != 1),)


@rule("ExpandDims")
def _expand(call: OpCall) -> Sequence[Shape]:
    shape, axis = call.shape(0), call.scalar(1)
    if shape is None:
        return (None,)
    if axis is None:
        return ((-1,) * (len(shape) + 1),)
    at = axis if axis >= 0 else axis + len(shape) + 1
    return ((*shape[:at], 1, *shape[at:]),)


@rule("Transpose", "ConjugateTranspose")
def _transpose(call: OpCall) -> Sequence[Shape]:
    shape, order = call.shape(0), call.whole(1)
    if order is None:
        sizes = call.sizes(1)
        rank = len(shape) if shape is not None else None if sizes is None else len(sizes)
        return (None if rank is None else (-1,) * rank,)
    if shape is None or len(order) != len(shape):
        return ((-1,) * len(order),)
    return (tuple(shape[axis] if -len(shape) <= axis < len(shape) else -1 for axis in order),)


@rule("Pack")
def _pack(call: OpCall) -> Sequence[Shape]:
    shape = merged(*call.shapes)
    if shape is None:
        return (None,)
    axis = call.number("axis")
    at = axis if axis >= 0 else axis + len(shape) + 1
    return ((*shape[:at], len(call.shapes), *shape[at:]),)


@rule("Unpack")
def _unpack(call: OpCall) -> Sequence[Shape]:
    shape, count = call.shape(0), call.count("num")
    if not shape:
        return (None,) * count
    at = call.number("axis") % len(shape)
    return ((*shape[:at], *shape[at + 1 :]),) * count


@rule("ConcatV2", "Concat")
def _concat(call: OpCall) -> Sequence[Shape]:
    is_first = call.node.op == "Concat"
    axis = call.scalar(0 if is_first else -1)
    parts = call.shapes[1:] if is_first else call.shapes[:-1]
    known = [shape for shape in parts if shape is not None]
    if not known:
        return (None,)
    rank = len(known[0])
    if axis is None:
        return ((-1,) * rank,)
    if not rank or any(len(shape) != rank for shape in known):
        return (None,)
    at = axis % rank
    sizes = [shape[at] for shape in known]
    joined = -1 if len(known) < len(parts) or -1 in sizes else sum(sizes)
    others = merged(*((*shape[:at], -1, *shape[at + 1 :]) for shape in known)) or ()
    return ((*others[:at], joined, *others[at + 1 :]),)


@rule("ConcatOffset")
def _concat_offset(call: OpCall) -> Sequence[Shape]:
    return tuple(call.shapes[1:])


@rule("Split")
def _split(call: OpCall) -> Sequence[Shape]:
    axis, shape, count = call.scalar(0), call.shape(1), call.count("num_split")
    if shape is None or axis is None or not shape:
        return (None if shape is None else (-1,) * len(shape),) * count
    at = axis % len(shape)
    size = shape[at] // count if count > 0 and shape[at] >= 0 else -1
    return ((*shape[:at], size, *shape[at + 1 :]),) * count


@rule("SplitV")
def _split_v(call: OpCall) -> Sequence[Shape]:
    shape, sizes, axis = call.shape(0), call.whole(1), call.scalar(2)
    count = call.count("num_split")
    if shape is None or axis is None or not shape:
        return (None if shape is None else (-1,) * len(shape),) * count
    at = axis % len(shape)
    if sizes is None or len(sizes) != count:
        sizes = (-1,) * count
    if sizes.count(-1) == 1 and shape[at] >= 0:
        rest = shape[at] - sum(n for n in sizes if n >= 0)
        sizes = tuple(rest if n < 0 else n for n in sizes)
    return tuple((*shape[:at], size, *shape[at + 1 :]) for size in sizes)


@rule("Slice")
def _slice(call: OpCall) -> Sequence[Shape]:
    shape, begins, sizes = call.shape(0), call.sizes(1), call.sizes(2)
    fixed = call.whole(2)
    if sizes is None:
        return (None if shape is None else (-1,) * len(shape),)
    if fixed is None:
        return (sizes,)
    starts = call.whole(1)
    result = []
    for i, size in enumerate(fixed):
        there = shape[i] if shape is not None and i < len(shape) else -1
        if size >= 0:
            result.append(size)
        elif starts is None or there < 0 or begins is None:
            result.append(-1)
        else:
            result.append(max(0, there - starts[i]))
    return (tuple(result),)


def strided_ranges(
    call: OpCall, shape: tuple[int, ...]
) -> list[tuple[int, int | None, int | None, int]] | None:
    """Range that each axis of a StridedSlice takes.

    Returns:
        For each axis of the result, in order: the axis of the input (-1 for a new one), begin, end
        and stride; a begin of None is an unknown one, an axis that is taken at one index has stride
        0. None if the lengths are unknown.
    """
    first = 1
    begins, ends, strides = call.sizes(first), call.sizes(first + 1), call.whole(first + 2)
    if begins is None or ends is None or len(begins) != len(ends):
        return None
    known_begins, known_ends = call.value(first), call.value(first + 1)
    steps = strides if strides is not None and len(strides) == len(begins) else (1,) * len(begins)
    masks = {
        name: call.number(name)
        for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    }
    real = sum(
        not (masks["ellipsis_mask"] >> i & 1 or masks["new_axis_mask"] >> i & 1)
        for i in range(len(begins))
    )
    result: list[tuple[int, int | None, int | None, int]] = []
    axis = 0
    has_ellipsis = False
    for i, step in enumerate(steps):
        if masks["ellipsis_mask"] >> i & 1 and not has_ellipsis:
            has_ellipsis = True
            for _ in range(len(shape) - real):
                result.append((axis, 0, shape[axis], 1))
                axis += 1
            continue
        if masks["new_axis_mask"] >> i & 1:
            result.append((-1, 0, 1, 1))
            continue
        if axis >= len(shape):
            return None
        begin = None if known_begins is None else known_begins[1][i]
        end = None if known_ends is None else known_ends[1][i]
        size = shape[axis]
        if masks["shrink_axis_mask"] >> i & 1:
            at = None if begin is None else int(begin)
            if at is not None and at < 0:
                at = at + size if size >= 0 else None
            result.append((axis, at, at, 0))
            axis += 1
            continue
        result.append(_range(
            axis, size, step,
            begin=None if begin is None else int(begin),
            end=None if end is None else int(end),
            is_from_start=bool(masks["begin_mask"] >> i & 1),
            is_to_end=bool(masks["end_mask"] >> i & 1),
        ))  # fmt: skip
        axis += 1
    for rest in range(axis, len(shape)):
        result.append((rest, 0, shape[rest], 1))
    return result


def _range(
    axis: int,
    size: int,
    step: int,
    *,
    begin: int | None,
    end: int | None,
    is_from_start: bool,
    is_to_end: bool,
) -> tuple[int, int | None, int | None, int]:
    """Begin and end of one axis within its size; None where unknown."""
    step = step or 1
    if size < 0:
        # Of an unknown size: a range from the start to a positive end may be cut short by it.
        start = 0 if is_from_start and step > 0 else begin
        if start is None or is_to_end or end is None or step < 0:
            return axis, start if start is not None and start >= 0 else None, None, step
        if (start < 0) == (end < 0):
            return axis, start, end, step
        return axis, start, None, step
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clipped(number: int) -> int:
        return min(max(number + size if number < 0 else number, low), high)

    start = (low if step > 0 else high) if is_from_start else begin
    stop = (high if step > 0 else low) if is_to_end else end
    if not is_from_start and start is not None:
        start = clipped(start)
    if not is_to_end and stop is not None:
        stop = clipped(stop)
    return axis, start, stop, step


@rule("StridedSlice")
def _strided_slice(call: OpCall) -> Sequence[Shape]:
    shape = call.shape(0)
    ranges = None if shape is None else strided_ranges(call, shape)
    if ranges is None:
        return (None,)
    result = []
    for axis, begin, end, step in ranges:
        if not step:
            continue
        if axis < 0:
            result.append(1)
        elif shape is not None and (begin, end, step) == (0, shape[axis], 1):
            result.append(shape[axis])
        elif begin is None or end is None or (end < 0 <= begin and step > 0):
            result.append(-1)
        else:
            result.append(
                max(0, -((begin - end) // step) if step > 0 else -((end - begin) // -step))
            )
    return (tuple(result),)


@rule("StridedSliceGrad")
def _strided_slice_grad(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(0),)


@rule("BroadcastTo", "Fill", "ScatterNd")
def _given_sizes(call: OpCall) -> Sequence[Shape]:
    if call.node.op == "ScatterNd":
        return (call.sizes(2),)
    return (call.sizes(1 if call.node.op == "BroadcastTo" else 0),)


@rule("SparseToDense")
def _sparse_to_dense(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(1),)


@rule("BroadcastArgs")
def _broadcast_args(call: OpCall) -> Sequence[Shape]:
    lengths = [shape[0] for shape in call.shapes if shape is not None and len(shape) == 1]
    return ((max(lengths) if len(lengths) == 2 and -1 not in lengths else -1,),)


@rule("BroadcastGradientArgs")
def _broadcast_gradient_args(_: OpCall) -> Sequence[Shape]:
    return ((-1,), (-1,))


@rule("Pad", "PadV2", "MirrorPad")
def _pad(call: OpCall) -> Sequence[Shape]:
    shape, paddings = call.shape(0), call.whole(1)
    if shape is None:
        given = call.shape(1)
        rank = size_at(given, 0)
        return ((-1,) * rank if 0 <= rank <= MAX_RANK else None,)
    if paddings is None or len(paddings) != 2 * len(shape):
        return ((-1,) * len(shape),)
    return (
        tuple(
            -1 if n < 0 else n + paddings[2 * i] + paddings[2 * i + 1] for i, n in enumerate(shape)
        ),
    )


@rule("MirrorPadGrad")
def _pad_grad(call: OpCall) -> Sequence[Shape]:
    shape, paddings = call.shape(0), call.whole(1)
    if shape is None or paddings is None or len(paddings) != 2 * len(shape):
        return (None if shape is None else (-1,) * len(shape),)
    return (
        tuple(
            -1 if n < 0 else n - paddings[2 * i] - paddings[2 * i + 1] for i, n in enumerate(shape)
        ),
    )


@rule("Tile")
def _tile(call: OpCall) -> Sequence[Shape]:
    shape, times = call.shape(0), call.sizes(1)
    if shape is None or times is None or len(times) != len(shape):
        return (None if shape is None else (-1,) * len(shape),)
    return (tuple(-1 if n < 0 or m < 0 else n * m for n, m in zip(shape, times, strict=True)),)
