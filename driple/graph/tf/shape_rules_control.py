"""Shape functions of control flow, and of what handles lead to: arrays, lists, stacks, queues."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import Holder, OpCall, merged, rule, union
from driple.graph.tf.shape_rules_variables import learn_value_read

__all__: list[str] = []

_NEXT = ("NextIteration", "RefNextIteration")


@rule("Switch", "RefSwitch")
def _switch(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0, 1)
    return (call.shape(0),) * 2


@rule("SwitchN", "_SwitchN")
def _switch_n(call: OpCall) -> Sequence[Shape]:
    count = call.count("num_outs")
    call.hand_on(0, *range(min(count, 64)))
    return (call.shape(0),) * count


@rule("Merge", "RefMerge")
def _merge(call: OpCall) -> Sequence[Shape]:
    """Shape that enters a loop, or that the branches of a condition have in common."""
    nodes, reads = call.tables.nodes, call.reads
    enters = [i for i, (source, _) in enumerate(reads) if nodes[source].op not in _NEXT]
    for i in enters:
        call.hand_on(i, 0)
    shapes = [call.shape(i) for i in enters]
    result = union(shapes)
    if len(enters) < len(reads) and result is not None:
        # A tensor that grows in a loop: its size in a turn is unknown.
        for i, (source, slot) in enumerate(reads):
            if i not in enters:
                back = call.shape_of((source, slot))
                result = _loosened(result, back)
    return (result, ())


def _loosened(shape: Shape, back: Shape) -> Shape:
    """A shape with -1 where the value that comes back from a turn has another size."""
    if shape is None or back is None:
        return shape
    if len(back) != len(shape):
        return None
    return tuple(a if b in (a, -1) else -1 for a, b in zip(shape, back, strict=True))


@rule("While", "StatelessWhile", "_While")
def _while(call: OpCall) -> Sequence[Shape] | None:
    """A loop that was inlined reads its condition, then what its body returns."""
    count = max(call.num_types("T"), len(call.listed("output_shapes")))
    first = 1 if call.node.starts else 0
    if not count or len(call.reads) < count + first:
        return call.listed("output_shapes") or ((None,) * count if count else None)
    for number in range(count):
        call.hand_on(number + first, number)
    return _with_given(call, call.shapes[first : first + count])


def _with_given(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Shape]:
    """Shapes of outputs, refined by those that the attribute `output_shapes` lists."""
    given = call.listed("output_shapes")
    if len(given) != len(shapes):
        return shapes
    return [merged(shape, other) for shape, other in zip(shapes, given, strict=True)]


@rule("If", "StatelessIf", "_If", "Case", "StatelessCase")
def _if(call: OpCall) -> Sequence[Shape] | None:
    """A condition that was inlined reads what each branch returns."""
    count = call.num_types("Tout")
    given = call.listed("output_shapes")
    results = call.shapes[1:]
    if not count or not results or len(results) % count or call.node.functions:
        return given or ((None,) * count if count else None)
    branches = [results[i : i + count] for i in range(0, len(results), count)]
    for number in range(count):
        call.hand_on(number + 1, number)
    return _with_given(
        call, [union([branch[number] for branch in branches]) for number in range(count)]
    )


@rule("TensorArrayV3", "TensorArrayV2", "TensorArray")
def _array(call: OpCall) -> Sequence[Shape]:
    holder = call.create()
    for shape in call.listed("element_shape"):
        holder.learn(shape)
    # An array that grows has the length that its loop gives it.
    holder.length = None if call.number("dynamic_size") else call.scalar(0)
    call.tables.holders[call.at, 1] = holder
    return ((2,), ())


@rule("TensorArrayGradV3", "TensorArrayGradV2", "TensorArrayGrad", "TensorArrayGradWithShape")
def _array_grad(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0, 1)
    return ((2,), ())


@rule("TensorArrayWriteV3", "TensorArrayWriteV2", "TensorArrayWrite")
def _array_write(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    holder = call.holder(0)
    if holder is not None:
        holder.learn(call.shape(2))
    return ((),)


@rule("TensorArrayScatterV3", "TensorArrayScatterV2", "TensorArrayScatter", "TensorArrayUnpack")
def _array_scatter(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    shape, holder = call.shape(2), call.holder(0)
    if holder is not None and shape:
        holder.learn(shape[1:])
        holder.length = shape[0] if holder.length is None and shape[0] >= 0 else holder.length
    return ((),)


@rule("TensorArraySplitV3")
def _array_split(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    shape, holder = call.shape(1), call.holder(0)
    if holder is not None and shape:
        holder.learn((-1, *shape[1:]))
    return ((),)


@rule("TensorArrayReadV3", "TensorArrayReadV2", "TensorArrayRead")
def _array_read(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    return (None if holder is None else holder.read(),)


@rule("TensorArrayGatherV3", "TensorArrayGatherV2", "TensorArrayGather")
def _array_gather(call: OpCall) -> Sequence[Shape]:
    holder, indices = call.holder(0), call.shape(1)
    given = call.listed("element_shape")
    element = merged(*given[:1], None if holder is None else holder.read())
    length = indices[0] if indices else -1
    if length < 0 and holder is not None and holder.length is not None:
        length = holder.length
    return (None if element is None else (length, *element),)


@rule("TensorArrayConcatV3")
def _array_concat(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    element = None if holder is None else holder.read()
    length = -1 if holder is None or holder.length is None else holder.length
    if not element:
        return (None, (length,))
    joined = -1 if length < 0 or element[0] < 0 else length * element[0]
    return ((joined, *element[1:]), (length,))


def _learn_sizes(call: OpCall, holder: Holder | None, number: int) -> None:
    """An element shape that is given as a tensor; a scalar -1 stands for any."""
    value = call.value(number)
    if holder is not None and value is not None and len(value[0]) == 1:
        holder.learn(call.sizes(number))


@rule("EmptyTensorList", "TensorListReserve")
def _list(call: OpCall) -> Sequence[Shape]:
    holder = call.create()
    _learn_sizes(call, holder, 0)
    if call.node.op == "TensorListReserve":
        holder.length = call.scalar(1)
    return ((),)


@rule("TensorListFromTensor", "TensorListScatter", "TensorListScatterV2")
def _list_from(call: OpCall) -> Sequence[Shape]:
    holder, shape = call.create(), call.shape(0)
    if shape:
        holder.learn(shape[1:])
        holder.length = shape[0] if shape[0] >= 0 else None
    holder.write(call.at, None)
    _learn_sizes(call, holder, 2 if "Scatter" in call.node.op else 1)
    return ((),)


@rule("TensorListPushBack", "TensorListSetItem")
def _list_write(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    holder = call.holder(0)
    if holder is not None:
        number = 2 if call.node.op == "TensorListSetItem" else 1
        holder.learn(call.shape(number))
        holder.write(call.at, call.value(number))
        learn_value_read(call, number, holder.shapes[0])
    return ((),)


@rule("TensorListResize", "TensorListConcatLists", "TensorListScatterIntoExistingList")
def _list_pass(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    return ((),)


def _element(call: OpCall, number: int) -> Shape:
    """Shape of an element that is read, with the shape that the reader gives."""
    holder = call.holder(0)
    _learn_sizes(call, holder, number)
    given = call.sizes(number) if (call.value(number) or ((), ()))[0] else None
    return merged(None if holder is None else holder.read(), given)


@rule("TensorListPopBack")
def _list_pop(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    return ((), _element(call, 1))


@rule("TensorListGetItem")
def _list_get(call: OpCall) -> Sequence[Shape]:
    return (_element(call, 2),)


@rule("TensorListStack", "TensorListGather")
def _list_stack(call: OpCall) -> Sequence[Shape]:
    is_gather = call.node.op == "TensorListGather"
    element, holder = _element(call, 2 if is_gather else 1), call.holder(0)
    if is_gather:
        indices = call.shape(1)
        length = indices[0] if indices else -1
    else:
        length = call.number("num_elements", -1)
    if length < 0 and holder is not None and holder.length is not None:
        length = holder.length
    return (None if element is None else (length, *element),)


@rule("TensorListConcat", "TensorListConcatV2")
def _list_concat(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    element = None if holder is None else holder.read()
    length = -1 if holder is None or holder.length is None else holder.length
    if not element:
        return (None, (length,))
    joined = -1 if length < 0 or element[0] < 0 else length * element[0]
    return ((joined, *element[1:]), (length,))


@rule("TensorListElementShape")
def _list_element_shape(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    element = None if holder is None else holder.read()
    return (None if element is None else (len(element),),)


@rule("StackV2", "Stack")
def _stack(call: OpCall) -> Sequence[Shape]:
    call.create()
    return ((2,),)


@rule("StackPushV2", "StackPush")
def _push(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    if holder is not None:
        holder.learn(call.shape(1))
        holder.write(call.at, call.value(1))
    return (call.shape(1),)


@rule("StackPopV2", "StackPop")
def _pop(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    return (None if holder is None else holder.read(),)


@rule(
    "FIFOQueue", "FIFOQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2", "PaddingFIFOQueue",
    "PaddingFIFOQueueV2", "PriorityQueue", "PriorityQueueV2",
)  # fmt: skip
def _queue(call: OpCall) -> Sequence[Shape]:
    shared = call.text("shared_name")
    holder = call.create(("queue", call.text("container"), shared) if shared else None)
    for number, shape in enumerate(call.listed("shapes")):
        holder.learn(shape, number)
    return ((),) if call.node.op.endswith("V2") else ((2,),)


@rule("QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2")
def _enqueue(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    if holder is not None:
        for number, shape in enumerate(call.shapes[1:]):
            if "Many" not in call.node.op:
                holder.learn(shape, number)
            elif shape:
                holder.learn(shape[1:], number)
    return ()


@rule(
    "QueueDequeue", "QueueDequeueV2", "QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo",
    "QueueDequeueUpToV2",
)  # fmt: skip
def _dequeue(call: OpCall) -> Sequence[Shape] | None:
    holder, count = call.holder(0), call.num_types("component_types")
    components = [
        None if holder is None else holder.read(number) for number in range(max(count, 1))
    ]
    if call.node.op.removesuffix("V2")[5:] == "Dequeue":
        return components
    size = call.scalar(1)
    first = -1 if size is None or "UpTo" in call.node.op else size
    return [None if shape is None else (first, *shape) for shape in components]


@rule("Stage", "MapStage", "Unstage", "StagePeek", "MapUnstage", "MapUnstageNoKey")
def _staging(call: OpCall) -> Sequence[Shape] | None:
    """A staging area has no handle: its nodes share a container and a name."""
    key = ("stage", call.text("container"), call.text("shared_name") or call.node.name)
    if call.node.op in ("Stage", "MapStage"):
        holder = call.create(("stage", call.text("container"), call.text("shared_name")))
        for number, shape in enumerate(call.shapes[2 if call.node.op == "MapStage" else 0 :]):
            holder.learn(shape, number)
        return ()
    holder = call.create(("stage", *key[1:2], call.text("shared_name")))
    given, count = call.listed("shapes"), call.num_types("dtypes")
    for number, shape in enumerate(given):
        holder.learn(shape, number)
    return [holder.read(number) for number in range(max(count, len(given)))] or None


@rule(
    "IteratorGetNext", "IteratorGetNextSync", "OptionalGetValue",
    "MultiDeviceIteratorGetNextFromShard", "DatasetToSingleElement", "ReduceDataset",
)  # fmt: skip
def _next(call: OpCall) -> Sequence[Shape] | None:
    holder = call.holder(0)
    given = call.listed("output_shapes")
    count = max(len(given), call.num_types("output_types"))
    result: list[Shape] = []
    for number in range(count):
        shape = given[number] if number < len(given) else None
        result.append(merged(shape, None if holder is None else holder.read(number)))
    return result or None


@rule(
    "Iterator", "IteratorV2", "OneShotIterator", "AnonymousIterator", "AnonymousIteratorV2",
    "AnonymousIteratorV3", "IteratorFromStringHandle", "IteratorFromStringHandleV2",
    "MultiDeviceIterator",
)  # fmt: skip
def _iterator(call: OpCall) -> Sequence[Shape]:
    shared = call.text("shared_name")
    holder = call.create(("iterator", call.text("container"), shared) if shared else None)
    for number, shape in enumerate(call.listed("output_shapes")):
        holder.learn(shape, number)
    return ((), ()) if call.node.op == "AnonymousIteratorV2" else ((),)


@rule("RecordInput")
def _record_input(call: OpCall) -> Sequence[Shape]:
    return ((call.number("batch_size", 32),),)


@rule("ParseExample", "ParseExampleV2", "ParseSingleExample")
def _parse_example(call: OpCall) -> Sequence[Shape] | None:
    """Sparse features: indices, values, shapes; dense ones: the batch and their shape."""
    num_sparse = call.num_types("sparse_types")
    dense = call.listed("dense_shapes")
    is_single = call.node.op == "ParseSingleExample"
    batch: tuple[int, ...] = () if is_single else (call.shape(0) or (-1,))[:1]
    if call.num_types("ragged_value_types"):
        return None
    rank = 1 if is_single else 2
    return (
        *(((-1, rank),) * num_sparse),
        *(((-1,),) * num_sparse),
        *(((rank,),) * num_sparse),
        *(None if shape is None else (*batch, *shape) for shape in dense),
    )
