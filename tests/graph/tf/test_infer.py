"""Shapes that a file leaves open: from inputs, filters, values, and what the user gives."""

from __future__ import annotations

import gzip
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from driple.errors import GraphError
from driple.graph.options import ReadOptions
from driple.graph.tf.folding import FOLDS
from driple.graph.tf.functions import inline_functions
from driple.graph.tf.graphdef import raw_from_bytes
from driple.graph.tf.infer import Inferred, infer_shapes
from driple.graph.tf.links import edges_of, in_order
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.raw import Constant, RawGraph, RawNode, Shape
from driple.graph.tf.shape_call import RULES, broadcast, refined
from driple.render.remarks import sentence, sentences
from tests.work import num_calls

DATA = Path(__file__).parents[2] / "data"
FLOAT, INT32 = 1, 3


def inferred(nodes: list[RawNode], options: ReadOptions | None = None) -> Inferred:
    """Shapes of the nodes of a graph without functions."""
    edges, _, inputs, _ = edges_of(nodes)
    return infer_shapes(nodes, inputs, in_order(nodes, edges), options or ReadOptions())


def case(number: str) -> list[RawNode]:
    path = next((DATA / "cases").glob(f"{number}_*.pbtxt"))
    return inline_functions(raw_from_text(path.read_text())).nodes


def of(nodes: list[RawNode], result: Inferred, name: str) -> Shape:
    """Shape of the first output of a node."""
    shapes = result.shapes[[node.name for node in nodes].index(name)]
    return None if not shapes else shapes[0]


def const(name: str, *values: int, scalar: bool = False) -> RawNode:
    shape = () if scalar else (len(values),)
    return RawNode(name, "Const", constant=Constant(INT32, shape, values))


def source(name: str, *sizes: int) -> RawNode:
    return RawNode(
        name, "Placeholder", shape_attributes={"shape": (sizes,)}, types={"dtype": (FLOAT,)}
    )


def test_the_gradient_of_a_filter_has_the_filters_shape() -> None:
    """Case 03: the file leaves it open, and the sizes stand in a constant or in the filter."""
    nodes = case("03")
    assert of(nodes, inferred(nodes), "gw") == of(nodes, inferred(nodes), "w")
    mirrored = [replace(node, constant=None) if node.name == "fs" else node for node in nodes]
    assert of(mirrored, inferred(mirrored), "gw") == of(nodes, inferred(nodes), "w")


def test_a_graph_without_shapes_gets_them_from_its_inputs() -> None:
    """Case 09: Placeholder [8, 784], Const [784, 10], MatMul, Softmax."""
    nodes = case("09")
    result = inferred(nodes)
    assert [of(nodes, result, name) for name in "xkyz"] == [(8, 784), (784, 10), (8, 10), (8, 10)]
    assert not result.unknown.any()


def test_a_batch_given_binds_all_that_follows_from_the_input() -> None:
    """Case 11 with --batch-size 32 has the shapes of case 01, whose file says 32."""
    nodes, control = case("11"), case("01")
    bound, fixed = inferred(nodes, ReadOptions(batch_size=32)), inferred(control)
    assert bound.shapes == fixed.shapes
    assert not bound.unknown.any()
    assert bound.sources == ()
    open_batch = inferred(nodes)
    assert open_batch.sources == ("images",)
    assert (
        open_batch.unknown.sum() == 3
    )  # images, conv, dy; filters and gradients do not depend on it
    assert not open_batch.data_dependent.any()


def test_a_fixed_batch_refuses_another() -> None:
    nodes = case("09")
    with pytest.raises(GraphError, match=r"--batch-size 16: .* fixed batch of 8, at its input 'x'"):
        inferred(nodes, ReadOptions(batch_size=16))
    assert of(nodes, inferred(nodes, ReadOptions(batch_size=8)), "y") == (8, 10)


def test_inputs_are_bound_by_name_and_never_against_the_graph() -> None:
    nodes = [source("x", -1, -1, 3), source("n", 4), RawNode("y", "Relu", inputs=["x"])]
    result = inferred(nodes, ReadOptions(inputs={"x": (2, 9, 3)}))
    assert of(nodes, result, "y") == (2, 9, 3)
    with pytest.raises(GraphError, match=r"no such input; it has x=\?x\?x3, n=4"):
        inferred(nodes, ReadOptions(inputs={"z": (1,)}))
    with pytest.raises(GraphError, match=r"--input x=2x9x4; the graph fixes x:0 to \?x\?x3"):
        inferred(nodes, ReadOptions(inputs={"x": (2, 9, 4)}))


def test_an_open_batch_counts_as_one_and_is_reported() -> None:
    """A reshape of [?, 4, 5] to [-1, 5] has four rows, not one."""
    nodes = [
        source("x", -1, 4, 5),
        const("to", -1, 5),
        RawNode("y", "Reshape", inputs=["x", "to"]),
        source("other", 7),
    ]
    result = inferred(nodes)
    assert of(nodes, result, "y") == (4, 5)
    assert result.unknown.tolist() == [True, False, True, False]
    assert result.sources == ("x",)


def test_sizes_that_depend_on_data_are_told_apart() -> None:
    nodes = [source("x", 6), RawNode("where", "Where", inputs=["x"])]
    result = inferred(nodes)
    assert result.unknown.tolist() == result.data_dependent.tolist() == [False, True]
    assert result.sources == ()


def test_a_placeholder_that_only_arithmetic_reads_is_a_number() -> None:
    nodes = [
        RawNode("rate", "Placeholder", types={"dtype": (FLOAT,)}),
        source("x", 8, 3),
        RawNode("y", "Mul", inputs=["x", "rate"]),
        RawNode("data", "Placeholder", types={"dtype": (FLOAT,)}),
        RawNode("z", "MatMul", inputs=["data", "x"]),
    ]
    result = inferred(nodes)
    assert of(nodes, result, "y") == (8, 3)
    assert result.sources == ("data",)
    assert sentences(result.notes) == ("1 input without a shape, taken as single numbers: rate",)


def test_a_placeholder_without_dimensions_is_no_scalar_if_a_product_reads_it() -> None:
    """Graphs before TensorFlow 1.4 write `shape { }` for an unknown rank."""
    nodes = [
        source("old"),
        source("w", 8, 3),
        RawNode("y", "MatMul", inputs=["old", "w"]),
        source("number"),
        RawNode("z", "Mul", inputs=["w", "number"]),
    ]
    result = inferred(nodes)
    assert of(nodes, result, "old") is None
    assert of(nodes, result, "y") == (-1, 3)
    assert of(nodes, result, "number") == ()
    assert result.sources == ("old",)


@pytest.mark.parametrize("number", ["16", "16b"])
def test_the_gradient_of_an_input_has_its_shape(number: str) -> None:
    nodes = case(number)
    result = inferred(nodes)
    assert of(nodes, result, "gx") == of(nodes, result, "images")
    assert of(nodes, result, "gb") == of(nodes, result, "b")


def test_shapes_of_the_file_are_kept_and_contradictions_counted() -> None:
    nodes = [source("x", 8, 3), RawNode("y", "Relu", inputs=["x"], shapes=((9, -1),))]
    result = inferred(nodes)
    assert of(nodes, result, "y") == (9, 3)
    assert result.num_contradictions == 1
    assert "of other shapes than follow from the inputs" in sentence(result.notes[0])


def test_sizes_fold_through_shape_slice_and_pack() -> None:
    """What Keras' Flatten writes: Shape -> StridedSlice -> Pack with -1 -> Reshape."""
    nodes = [
        source("x", -1, 4, 5),
        RawNode("shape", "Shape", inputs=["x"]),
        const("begin", 0),
        const("end", 1),
        const("step", 1),
        RawNode(
            "batch", "StridedSlice", inputs=["shape", "begin", "end", "step"],
            attributes={"shrink_axis_mask": (1,)},
        ),
        const("rest", -1, scalar=True),
        RawNode("sizes", "Pack", inputs=["batch", "rest"], attributes={"N": (2,), "axis": (0,)}),
        RawNode("y", "Reshape", inputs=["x", "sizes"]),
    ]  # fmt: skip
    bound = inferred(nodes, ReadOptions(batch_size=32))
    assert of(nodes, bound, "y") == (32, 20)
    assert bound.values[5, 0] == ((), (32,))


@pytest.mark.parametrize(
    ("masks", "begin", "end", "step", "expected"),
    [
        ({}, (1, 0), (3, 5), (1, 2), (2, 3, 6)),
        ({"begin_mask": 1, "end_mask": 1}, (2, 0), (2, 2), (1, 1), (4, 2, 6)),
        ({"shrink_axis_mask": 1}, (-1, 0), (0, 5), (1, 1), (5, 6)),
        ({"new_axis_mask": 1}, (0, 1), (0, 4), (1, 1), (1, 3, 5, 6)),
        ({"ellipsis_mask": 1}, (0, 1), (0, 4), (1, 1), (4, 5, 3)),
        ({"begin_mask": 3, "end_mask": 3}, (0, 0), (0, 0), (-1, 1), (4, 5, 6)),
        ({}, (3, -2), (0, 5), (-1, 1), (3, 2, 6)),
    ],
)
def test_strided_slices(
    masks: dict[str, int],
    begin: tuple[int, int],
    end: tuple[int, int],
    step: tuple[int, int],
    expected: tuple[int, ...],
) -> None:
    """Of a [4, 5, 6] tensor, by numpy's rules."""
    nodes = [
        source("x", 4, 5, 6), const("b", *begin), const("e", *end), const("s", *step),
        RawNode(
            "y", "StridedSlice", inputs=["x", "b", "e", "s"],
            attributes={name: (mask,) for name, mask in masks.items()},
        ),
    ]  # fmt: skip
    assert of(nodes, inferred(nodes), "y") == expected


def test_a_stack_that_is_read_before_it_is_filled_gets_its_shape_in_a_second_walk() -> None:
    nodes = [
        RawNode("stack", "StackV2"),
        RawNode("pop", "StackPopV2", inputs=["stack"]),
        source("x", 3, 2),
        RawNode("push", "StackPushV2", inputs=["stack", "x"]),
        RawNode("y", "Relu", inputs=["pop"]),
    ]
    edges, _, inputs, _ = edges_of(nodes)
    assert in_order(nodes, edges)
    result = infer_shapes(nodes, inputs, [0, 1, 4, 2, 3], ReadOptions())
    assert of(nodes, result, "y") == (3, 2)


def test_an_argument_that_a_while_changes_has_no_value_in_its_body() -> None:
    """The counter starts as the constant 0, which must not be folded into the body."""
    nodes = case("19")
    result = inferred(nodes)
    body = [i for i, node in enumerate(nodes) if node.loop == "while" and node.op == "AddV2"]
    assert body
    assert not any((i, 0) in result.values for i in body)
    assert any(node.carried for node in nodes)


def test_unknown_ops_keep_the_files_shapes() -> None:
    nodes = [
        source("x", 3),
        RawNode("a", "MyOp", inputs=["x"], shapes=((3, 4),)),
        RawNode("b", "MyOp", inputs=["x"]),
        RawNode("y", "Neg", inputs=["a"]),
    ]
    result = inferred(nodes)
    assert of(nodes, result, "y") == (3, 4)
    assert result.shapes[2] is None
    assert result.unknown.tolist() == [False, False, True, False]


def raw_graph(name: str) -> RawGraph:
    return raw_from_bytes(gzip.decompress((DATA / "graphs" / name).read_bytes()))[0]


@pytest.mark.parametrize(
    ("name", "known_share"),
    [("ps_training.pb.gz", 0.99), ("loops_v1.pb.gz", 1.0), ("adam_v1.meta.gz", 0.99)],
)
def test_graphs_stripped_of_their_shapes_get_the_same(name: str, known_share: float) -> None:
    """What TensorFlow wrote into the files is an independent answer; the rest is of savers."""
    nodes = inline_functions(raw_graph(name)).nodes
    stripped = inferred([replace(node, shapes=None) for node in nodes])
    num_known = 0
    for node, shapes in zip(nodes, stripped.shapes, strict=True):
        num_known += shapes is not None and all(s is not None and -1 not in s for s in shapes)
        for given, derived in zip(node.shapes or (), shapes or (), strict=False):
            assert not refined(given, derived)[1], node.name
    assert num_known / len(nodes) >= known_share


def test_a_long_chain_is_walked_once_and_without_recursion() -> None:
    """100,000 nodes, each of which reads the one before: some 36 calls for each."""
    nodes = [source("n0", 32, 64)]
    nodes += [RawNode(f"n{i}", "Relu", inputs=[f"n{i - 1}"]) for i in range(1, 100_000)]
    inputs = [[], *([(i, 0)] for i in range(len(nodes) - 1))]
    shapes: list[object] = []
    work = num_calls(
        lambda: shapes.extend(infer_shapes(nodes, inputs, range(len(nodes)), ReadOptions()).shapes)
    )
    assert shapes[-1] == ((32, 64),)
    assert work < 100 * len(nodes)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((3, 1), (1, 4)), (3, 4)),
        (((-1, 4), (4,)), (-1, 4)),
        (((-1, 4), (5, 1)), (5, 4)),
        (((-1, 1), (1, 1)), (-1, 1)),
        (((2,), None), None),
        (((), (2, 3)), (2, 3)),
    ],
)
def test_broadcasting(shapes: tuple[Shape, ...], expected: Shape) -> None:
    assert broadcast(shapes) == expected


def random_nodes(seed: int) -> list[RawNode]:
    """Nodes of all op types that are known, with inputs, attributes and constants at random."""
    rng = random.Random(seed)
    ops = sorted(RULES.keys() | FOLDS.keys())
    odd = (-1, 0, 2**62, -(2**63), 0.5, math.inf, math.nan)
    names = (
        "axis", "begin_mask", "block_size", "channels", "dilations", "ellipsis_mask", "k",
        "keep_dims", "ksize", "new_axis_mask", "num", "num_split", "shrink_axis_mask",
        "squeeze_dims", "strides",
    )  # fmt: skip

    def shape() -> Shape:
        sizes = (rng.choice((-1, 0, 1, 2, 7, 2**40)) for _ in range(rng.randint(0, 5)))
        return None if rng.random() < 0.15 else tuple(sizes)

    nodes = []
    for i in range(40):
        node = RawNode(f"n{i}", rng.choice(ops) if rng.random() < 0.7 else "Const")
        if i:
            read = [f"n{rng.randrange(i)}" for _ in range(rng.randint(0, 8))]
            node.inputs = [name + rng.choice(("", "", ":1", ":2")) for name in read]
        if rng.random() < 0.3:
            node.shapes = tuple(shape() for _ in range(rng.randint(0, 3)))
        if node.op == "Const":
            length = rng.randint(0, 5)
            values = tuple(
                rng.choice(odd) if rng.random() < 0.2 else rng.randint(-2, 4) for _ in range(length)
            )
            node.constant = Constant(INT32, () if length == 1 else (length,), values)
        node.attributes = {
            name: tuple(rng.randint(-2, 5) for _ in range(rng.choice((1, 1, 4))))
            for name in rng.sample(names, 6)
        }
        node.texts = {"padding": rng.choice(("SAME", "VALID", "EXPLICIT", ""))}
        node.types = {
            "T": (1,) * rng.randint(1, 3),
            "Tout": (1,),
            "DstT": (rng.choice((1, 3, 10)),),
        }
        node.shape_attributes = {"shape": (shape(),), "element_shape": (shape(),)}
        nodes.append(node)
    return nodes


@pytest.mark.parametrize("seed", range(150))
def test_no_graph_breaks_a_shape_function(seed: int) -> None:
    """Wrong ranks, sizes beyond 64 bits, infinite sizes: unknown, or a size that tensors have."""
    for shapes in inferred(random_nodes(seed)).shapes:
        for shape in shapes or ():
            assert shape is None or all(-1 <= size <= 2**62 for size in shape)


def test_repeated_tiles_and_fills_stay_small() -> None:
    """Sizes that grow by 2^62 in each of 3,000 nodes, and 3,000 vectors of 1,000 known elements."""
    big = RawNode("big", "Const", constant=Constant(INT32, (2,), (2**62, 2**62)))
    nodes = [source("t0", 3, 3), big, const("zero", 0, scalar=True), const("n", 1000, scalar=True)]
    nodes.append(const("one", 1, scalar=True))
    for i in range(3000):
        nodes.append(RawNode(f"t{i + 1}", "Tile", inputs=[f"t{i}", "big"]))
        nodes.append(RawNode(f"r{i}", "Range", inputs=["zero", "n", "one"]))
    result = inferred(nodes)
    assert of(nodes, result, "t3000") == (-1, -1)
    assert sum(len(value[1]) for value in result.values.values()) < 2_100_000


def test_outputs_beyond_reason_are_refused() -> None:
    nodes = [source("x", 4), RawNode("y", "Unpack", inputs=["x"], attributes={"num": (2**40,)})]
    with pytest.raises(GraphError, match=r"node 'y' has 1099511627776 outputs"):
        inferred(nodes)


@pytest.mark.parametrize(("grows", "expected"), [(False, (6, 5)), (True, (-1, 5))])
def test_an_array_that_grows_has_no_length_of_its_own(grows: bool, expected: Shape) -> None:
    """Its size is what it begins with, 0 in a decoder's loop; sizes after it were 0."""
    size = RawNode("size", "Const", constant=Constant(INT32, (), (0 if grows else 6,)))
    array = RawNode("array", "TensorArrayV3", inputs=["size"])
    array.attributes = {"dynamic_size": (int(grows),)}
    array.shape_attributes = {"element_shape": ((5,),)}
    steps = RawNode("steps", "TensorArraySizeV3", inputs=["array", "array:1"])
    zero = RawNode("zero", "Const", constant=Constant(INT32, (), (0,)))
    unit = RawNode("one", "Const", constant=Constant(INT32, (), (1,)))
    indices = RawNode("indices", "Range", inputs=["zero", "steps", "one"])
    gather = RawNode("all", "TensorArrayGatherV3", inputs=["array", "indices", "array:1"])
    nodes = [size, array, steps, zero, unit, indices, gather]
    assert of(nodes, inferred(nodes), "all") == expected


@pytest.mark.parametrize(("second", "expected"), [(4, (2, 4)), (3, None)])
def test_the_value_of_a_list_is_known_if_all_that_write_agree(second: int, expected: Shape) -> None:
    """Popped before or after the second is pushed."""
    nodes = [
        RawNode("sizes", "Const", constant=Constant(INT32, (2,), (2, 4))),
        RawNode("others", "Const", constant=Constant(INT32, (2,), (2, second))),
        RawNode("none", "Const", constant=Constant(INT32, (), (-1,))),
        RawNode("zero", "Const", constant=Constant(FLOAT, (), (0.0,))),
        RawNode("list", "EmptyTensorList", inputs=["none", "none"]),
        RawNode("push", "TensorListPushBack", inputs=["list", "sizes"]),
        RawNode("pop", "TensorListPopBack", inputs=["push", "none"]),
        RawNode("made", "Fill", inputs=["pop:1", "zero"]),
        RawNode("again", "TensorListPushBack", inputs=["list", "others", "^made"]),
        RawNode("last", "TensorListPopBack", inputs=["again", "none"]),
        RawNode("late", "Fill", inputs=["last:1", "zero"]),
    ]
    result = inferred(nodes)
    for name in ("made", "late"):
        shape = of(nodes, result, name)
        assert shape == expected or (expected is None and shape in (None, (-1, -1)))
