"""Each fact of an op, worked out by hand from its shapes; ops at another batch size."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.cost.products import Product
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.kernel_picks import HALF_PICKS, PICKS, TURNS
from driple.simulate.op_facts import FACTS, GROUPS, OpFacts, channel_elements, op_facts

BFLOAT16, FLOAT16, FLOAT32, DOUBLE = 14, 19, 1, 2
Shape = tuple[int, ...]


def values_of(op: OpSignature, product: Product | None = None) -> dict[str, float]:
    """The facts of an op that are not 0."""
    row = op_facts([op], [product]).values[0].tolist()
    return {name: value for name, value in zip(FACTS, row, strict=True) if value}


def group_of(op: OpSignature, product: Product | None = None) -> str:
    """The group of an op."""
    return GROUPS[int(op_facts([op], [product]).groups[0])]


def tensors(*shapes: Shape, dtype: int = FLOAT32) -> tuple[Tensor, ...]:
    """Tensors of one type."""
    return tuple(Tensor(shape, dtype) for shape in shapes)


def test_facts_of_an_element_wise_op() -> None:
    """Rows of 16 (4 of 8 doublings), half precision, a broadcast parameter, two large inputs."""
    image, weight = Tensor((8, 64, 16), FLOAT16), Tensor((16,), FLOAT16, is_parameter=True)
    assert values_of(OpSignature("add", (image, image, weight), (image,))) == {
        "half": 1.0, "element_bytes": 0.5, "parameter": 1.0, "row": 0.5, "broadcast": 1.0,
        "large_inputs": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("other", "broadcast", "large"),
    [((), 0, 0.5), ((1, 1), 0, 0.5), ((2,), 1, 0.5), ((4, 3), 1, 0.5), ((4, 4), 0, 1.0)],
)
def test_an_input_is_broadcast_if_it_is_no_scalar_and_smaller_than_the_largest(
    other: Shape, broadcast: float, large: float
) -> None:
    op = OpSignature("add", tensors((4, 4), other), tensors((4, 4)))
    values = values_of(op)
    assert values.get("broadcast", 0) == broadcast
    assert values["large_inputs"] == large


@pytest.mark.parametrize(
    ("op", "row", "element_bytes"),
    [
        (OpSignature("arange", (), tensors((8,))), 0.0, 1.0),
        (OpSignature("fill", tensors(()), tensors((8,))), 0.0, 1.0),
        (OpSignature("relu", tensors((0,)), tensors((0,))), 0.0, 0.0),
        (OpSignature("cast", tensors((2, 256)), tensors((2, 256), dtype=DOUBLE)), 1.0, 2.0),
        (OpSignature("reduce_sum", tensors((4,)), tensors(())), 0.25, 1.0),
        (OpSignature("assign", tensors((4,)), ()), 0.25, 1.0),
        (OpSignature("add", (Tensor(None, FLOAT32), Tensor((4, 2), FLOAT32)), ()), 0.125, 1.0),
    ],
)
def test_rows_and_bytes_of_ops_without_some_tensor(
    op: OpSignature, row: float, element_bytes: float
) -> None:
    """Unknown shapes are passed over; a row of no element counts as one of one."""
    values = values_of(op)
    assert values.get("row", 0.0) == row
    assert values.get("element_bytes", 0.0) == element_bytes
    assert "half" not in values


@pytest.mark.parametrize(
    ("product", "least", "middle", "fit", "several"),
    [
        (Product(256, 50, 64, 1), log2(50) / 8, 0.75, 0, 0),
        (Product(64, 256, 50, 2), log2(50) / 8, 0.75, 0, 1),
        (Product(50, 16, 256, 1), 0.5, log2(50) / 8, 0, 0),
        (Product(50, 64, 16, 1), 0.5, log2(50) / 8, 0, 0),
        (Product(64, 16, 50.0 + 6, 1), 0.5, log2(56) / 8, 1, 0),
        (Product(8192, 2**14, 2**13, 1), 1.5, 1.5, 1, 0),
        (Product(1, 2**14, 2**13, 1), 0.0, 1.5, 0, 0),
    ],
)
def test_sides_of_a_product_in_order_of_size(
    product: Product, least: float, middle: float, fit: float, several: float
) -> None:
    """Counted to 4,096 (12 of 8 doublings); the two smaller ones must be multiples of 8."""
    op = OpSignature("matmul", tensors((4, 4), (4, 4)), tensors((4, 4)))
    values = values_of(op, product)
    assert values.get("least_side", 0.0) == pytest.approx(least)
    assert values.get("middle_side", 0.0) == pytest.approx(middle)
    assert values.get("sides_fit", 0) == fit
    assert values.get("several_products", 0) == several


def test_only_ops_of_a_family_of_products_have_sides() -> None:
    """One without a known product has none, nor has an op of another family."""
    shapes = tensors((4, 4), (4, 4))
    assert "middle_side" in values_of(OpSignature("matmul", shapes, shapes), Product(9, 9, 9))
    assert "middle_side" not in values_of(OpSignature("matmul", shapes, shapes))
    assert "middle_side" not in values_of(OpSignature("add", shapes, shapes), Product(9, 9, 9))


def conv(
    kind: str, image: Shape, window: Shape, output: Shape, *,
    dtype: int = FLOAT32, **numbers: Shape,
) -> OpSignature:  # fmt: skip
    """A convolution with its channels second, or a gradient of it."""
    parts = tensors(image, window, output, dtype=dtype)
    count = tensors((len(image),), dtype=3)
    stated = tuple(sorted(numbers.items()))
    if kind.endswith("input_gradient"):
        return OpSignature(kind, (*count, parts[1], parts[2]), (parts[0],), stated)
    if kind.endswith("filter_gradient"):
        return OpSignature(kind, (parts[0], *count, parts[2]), (parts[1],), stated)
    return OpSignature(kind, parts[:2], (parts[2],), stated)


def test_facts_of_a_dense_convolution() -> None:
    """32 to 64 channels by 3 x 5 pixels with a stride of 2, 10 x 8 pixels a result."""
    op = conv("conv", (8, 32, 20, 16), (3, 5, 32, 64), (8, 64, 10, 8), strides=(1, 1, 2, 2))
    assert group_of(op) == "convolution"
    assert values_of(op) == pytest.approx({
        "element_bytes": 1.0, "in_channels": 5 / 8, "out_channels": 6 / 8, "in_fits": 1.0,
        "out_fits": 1.0, "window": log2(15) / 4, "oblong": 1.0, "strided": 1.0,
        "pixels": log2(80) / 8,
    })  # fmt: skip


def test_facts_of_gradients_of_a_convolution() -> None:
    """Channels that are no multiples of 8, a dilated square window, in three dimensions."""
    image, window, output = (4, 12, 8, 8, 8), (3, 3, 3, 12, 20), (4, 20, 8, 8, 8)
    usual = {
        "in_channels": log2(12) / 8, "out_channels": log2(20) / 8, "window": log2(27) / 4,
        "pixels": 9 / 8, "three_dimensions": 1.0, "dilated": 1.0,
    }  # fmt: skip
    for direction in ("input", "filter"):
        kind = f"conv_{direction}_gradient"
        op = conv(kind, image, window, output, dtype=BFLOAT16, dilations=(1, 1, 2, 2, 2))
        values = values_of(op)
        assert values.pop("half") == values.pop(f"by_{direction}") == 1.0
        assert values.pop("element_bytes") == 0.5
        assert values == pytest.approx(usual)
        assert group_of(op) == "convolution"


def test_facts_of_a_grouped_convolution() -> None:
    """16 groups of 4 channels: 4 of 8 doublings; its share of a grouped one is 15/16."""
    image = (8, 64, 8, 8)
    op = conv("conv", image, (1, 1, 4, 64), image, dtype=FLOAT16, groups=(16,))
    last = OpSignature(op.kind, op.inputs, op.outputs, (CHANNELS_LAST, *op.numbers))
    usual = {
        "half": 1.0, "element_bytes": 0.5, "in_channels": 2 / 8, "out_channels": 2 / 8,
        "channel_groups": 0.5, "pixels": 6 / 8, "half_grouped": 15 / 16,
    }  # fmt: skip
    assert group_of(op) == "grouped_convolution"
    assert values_of(op) == pytest.approx(usual)
    more = {"channels_last": 1.0, "last_half_convolution": 1.0, "last_grouped": 15 / 16}
    assert values_of(last) == pytest.approx(usual | more)


def test_facts_of_a_depthwise_convolution() -> None:
    """Its groups do not count as groups; two channels out of each channel in."""
    op = conv("depthwise_conv", (8, 32, 8, 8), (7, 7, 32, 2), (8, 64, 8, 8))
    last = OpSignature(op.kind, op.inputs, op.outputs, (CHANNELS_LAST,))
    half = conv("depthwise_conv", (8, 32, 8, 8), (7, 7, 32, 2), (8, 64, 8, 8), dtype=FLOAT16)
    usual = {"out_channels": 1 / 8, "window": log2(49) / 4, "pixels": 6 / 8}
    assert group_of(op) == "depthwise_convolution"
    assert values_of(op) == pytest.approx(usual | {"element_bytes": 1.0})
    more = {"element_bytes": 1.0, "channels_last": 1.0, "last_depthwise": 1.0}
    assert values_of(last) == pytest.approx(usual | more)
    more = {"element_bytes": 0.5, "half": 1.0, "half_depthwise": 1.0}
    assert values_of(half) == pytest.approx(usual | more)


def test_a_window_along_one_dimension_is_oblong_unless_it_is_one_pixel() -> None:
    for side, oblong in ((1, False), (3, True)):
        op = conv("conv", (8, 16, 64), (side, 16, 16), (8, 16, 64))
        assert ("oblong" in values_of(op)) == oblong
    image = (8, 16, 8, 8)
    assert "oblong" not in values_of(conv("conv", image, (3, 3, 16, 16), image))


@pytest.mark.parametrize(
    ("images", "vectors", "row"),
    [
        ((8, 28, 28, 64), ((64,),), 0.75),
        ((8, 32, 7, 7), (), 0.625),
        ((8, 32, 7, 7), ((1,), (64, 2)), 0.625),
        ((8, 32, 7, 7), ((1,), (2,)), 0.125),
        ((8, 32), (), 0.625),
        ((8, 0, 4), (), 0.0),
        ((8,), (), 0.0),
    ],
)
@pytest.mark.parametrize("written", [False, True])
def test_channels_of_a_batch_norm_are_those_of_its_vectors_else_of_its_images(
    images: Shape, vectors: tuple[Shape, ...], row: float, written: bool
) -> None:
    """Whether the vectors are weights that it reads or statistics that it writes."""
    image, others = Tensor(images, FLOAT32), tensors(*vectors)
    read, written_tensors = (
        ((image,), (image, *others)) if written else ((image, *others), (image,))
    )
    for kind in ("batch_norm", "batch_norm_gradient"):
        assert values_of(OpSignature(kind, read, written_tensors)).get("row", 0.0) == row
    assert group_of(OpSignature("batch_norm", read, written_tensors)) == "norm"


def test_the_row_of_another_norm_is_its_last_dimension() -> None:
    rows = Tensor((8, 128, 16), FLOAT32)
    weight = Tensor((64,), FLOAT32)
    assert values_of(OpSignature("layer_norm", (rows, weight), (rows,)))["row"] == 0.5


@pytest.mark.parametrize(("elements", "native"), [(2**31 - 1, 0), (2**31, 1)])
def test_cudnn_counts_elements_in_31_bits(elements: int, native: int) -> None:
    images, weight = Tensor((elements, 1), FLOAT32), Tensor((2,), FLOAT32, is_parameter=True)
    for read in ((images, weight), (weight, images)):
        assert values_of(OpSignature("batch_norm", read, ())).get("native_norm", 0) == native


def test_only_parameters_in_half_precision_keep_a_batch_norm_from_cudnn() -> None:
    """Float16 images do not; nor is a norm by rows ever one of cuDNN."""
    images, weight = Tensor((8, 64, 4), FLOAT16), Tensor((64,), FLOAT16, is_parameter=True)
    statistic = Tensor((64,), FLOAT16)
    native = OpSignature("batch_norm", (images, weight), (images,))
    assert values_of(native)["native_norm"] == 1
    read = OpSignature("batch_norm", (images, statistic), (images,))
    assert "native_norm" not in values_of(read)
    rows = OpSignature("layer_norm", (images, weight), (images,))
    assert "native_norm" not in values_of(rows)


@pytest.mark.parametrize(
    ("shape", "elements"),
    [((8, 64), 0.0), ((8, 64, 4), 2 * 8 * 4), ((8, 64, 4, 5), 2 * 8 * 20), (None, 0.0)],
)
def test_blocks_of_channels_are_those_of_images_with_pixels(
    shape: Shape | None, elements: float
) -> None:
    op = OpSignature("batch_norm", (Tensor(shape, FLOAT32), Tensor((64,), FLOAT32)), ())
    assert channel_elements(op) == elements


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("matmul", "matmul"), ("batch_matmul", "matmul"), ("einsum", "matmul"),
        ("attention", "attention"), ("attention_gradient", "attention"), ("lstm", "recurrent"),
        ("gru_cell_gradient", "recurrent"), ("other_convolution", "convolution"),
        ("other_filter_gradient", "convolution"), ("layer_norm", "norm"),
        ("rms_norm_gradient", "norm_gradient"), ("max_pool", "pooling"),
        ("avg_pool_gradient", "pooling_gradient"), ("local_response_norm", "pooling"),
        ("softmax", "softmax"), ("softmax_gradient", "softmax"), ("add", "map"),
        ("relu_gradient", "map"), ("transpose", "move"), ("concat", "move"),
        ("reduce_mean", "reduction"), ("bias_gradient", "reduction"), ("gather", "indexed"),
        ("embedding_gradient", "indexed"), ("identity", "other"), ("list_read", "other"),
    ],
)  # fmt: skip
def test_groups_of_kinds(kind: str, group: str) -> None:
    assert group_of(OpSignature(kind, tensors((4, 4)), tensors((4, 4)))) == group


def mixed() -> OpFacts:
    """A depthwise convolution, a grouped one of one pixel, and a product, all in float16."""
    image = (8, 64, 28, 28)
    wide = OpSignature("matmul", *(tensors((16, 16), dtype=FLOAT16),) * 2)
    ops = [
        conv("depthwise_conv", image, (3, 3, 64, 1), image, dtype=FLOAT16),
        conv("conv", image, (1, 1, 4, 64), image, dtype=FLOAT16, groups=(16,)),
        wide,
    ]
    return op_facts(ops, [None, None, Product(16, 50257, 16)])


def test_taking_rows_takes_all_that_belongs_to_them() -> None:
    facts = mixed()
    some = facts.take(np.array([2, 0]))
    assert facts.kinds == ("depthwise_conv", "conv", "matmul")
    assert some.kinds == ("matmul", "depthwise_conv")
    for name in ("groups", "values", "picks", "turns"):
        array = getattr(facts, name)
        np.testing.assert_array_equal(getattr(some, name), [array[2], array[0]])


def test_facts_of_no_ops_have_all_columns() -> None:
    facts = op_facts([], [])
    assert facts.values.shape == (0, len(FACTS))
    assert facts.picks.shape == (0, len(PICKS))
    assert facts.turns.shape == (0, len(TURNS))
    assert facts.kinds == ()


def test_an_op_in_single_precision_has_no_fact_of_half_precision() -> None:
    """The facts of the same op as if its tensors were float32, but for what others it picks."""
    facts = mixed()
    before = facts.values.copy(), facts.picks.copy()
    single = facts.in_single_precision(np.array([True, False, True]))
    for place, name in enumerate(FACTS):
        column = single.values[:, place].tolist()
        if name.startswith("half") or name.endswith("half"):
            assert column[0] == column[2] == 0
        elif name == "element_bytes":
            assert column == [1.0, 0.5, 1.0]
        else:
            assert column == facts.values[:, place].tolist()
    np.testing.assert_array_equal(single.values[1], facts.values[1])
    half = np.array(HALF_PICKS)
    assert facts.picks[:, half].any(axis=1).tolist() == [True, False, True]
    assert not single.picks[:, half].any()
    np.testing.assert_array_equal(single.picks[:, ~half], facts.picks[:, ~half])
    np.testing.assert_array_equal(facts.values, before[0])
    np.testing.assert_array_equal(facts.picks, before[1])


def test_elements_of_eight_bytes_stay_so_in_single_precision() -> None:
    op = OpSignature("add", tensors((4,), dtype=DOUBLE), tensors((4,), dtype=DOUBLE))
    single = op_facts([op], [None]).in_single_precision(np.array([True]))
    assert single.values[0, FACTS.index("element_bytes")] == 2.0


def batch_facts(batch: int) -> OpFacts:
    """A product whose rows and a side are the batch, one without, and groups as many as it."""
    image = (1, 16 * batch, 4, 4)
    ops = [
        OpSignature("matmul", tensors((768, batch), (batch, 512)), tensors((768, 512))),
        OpSignature("matmul", tensors((64, 100), (100, 32)), tensors((64, 32))),
        conv("conv", image, (1, 1, 16, 16 * batch), image, groups=(batch,)),
    ]
    return op_facts(ops, [Product(768, 512, batch), Product(64, 32, 100), None])


@pytest.mark.parametrize(("batch", "other", "asked"), [(8, 16, 12), (16, 8, 40), (6, 7, 2000)])
def test_facts_at_a_batch_size_are_those_of_the_ops_at_it(
    batch: int, other: int, asked: int
) -> None:
    """Of two batch sizes any third follows, also one beyond both."""
    sides = np.array([[768, 512, asked], [1, 1, 1], [0, 0, 0]], dtype=np.float64)
    share = (asked - batch) / (other - batch)
    facts = batch_facts(batch).at_batch(batch_facts(other), share, sides)
    known = batch_facts(asked)
    np.testing.assert_allclose(facts.values[:2], known.values[:2])
    np.testing.assert_allclose(facts.turns, known.turns)
    assert facts.kinds == known.kinds


def test_no_length_falls_below_that_of_a_batch_of_one_element() -> None:
    sides = np.array([[768, 512, 0.2], [1, 1, 1], [0, 0, 0]])
    facts = batch_facts(8).at_batch(batch_facts(16), -5.0, sides)
    assert facts.values[0, FACTS.index("row")] == 0.0
    assert facts.values[0, FACTS.index("least_side")] == 0.0
    assert facts.turns[2].tolist() == [0.0, 0.0]


def test_sides_at_a_batch_size_are_counted_to_the_longest() -> None:
    """Rounded to whole numbers first; 4,096 is 12 of 8 doublings."""
    sides = np.array([[2**13, 2**14, 8191.7], [1, 1, 1], [0, 0, 0]])
    facts = batch_facts(8).at_batch(batch_facts(16), 2.0, sides)
    columns = [FACTS.index(name) for name in ("least_side", "middle_side", "sides_fit")]
    assert facts.values[0, columns].tolist() == [1.5, 1.5, 1.0]
    odd = batch_facts(8).at_batch(batch_facts(16), 2.0, sides - 3.0)
    assert odd.values[0, columns[2]] == 0.0
