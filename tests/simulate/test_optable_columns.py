"""Each column of a table of ops, counted by hand: windows, tiles, formats, sides, kinds."""

from __future__ import annotations

import numpy as np
import pytest

from driple.graph.low_precision import LOW_MARK
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.optable import MEMORY_KINDS, PRODUCT_KINDS, OpTable

FLOAT, BFLOAT16, HALF = 1, 14, 19
Shape = tuple[int, ...]


def op(
    kind: str, *inputs: Shape | None, out: Shape, dtype: int = FLOAT, **numbers: Shape
) -> OpSignature:
    """An op of tensors of one type; no shape stands for an unknown one."""
    stated = tuple(sorted(numbers.items()))
    return OpSignature(
        kind, tuple(Tensor(shape, dtype) for shape in inputs), (Tensor(out, dtype),), stated
    )


def conv(kind: str, image: Shape, window: Shape, output: Shape, dtype: int = FLOAT) -> OpSignature:
    """A convolution, or its gradient by the input or the filter."""
    if kind == "conv_input_gradient":
        return op(kind, (4,), window, output, out=image, dtype=dtype)
    if kind == "conv_filter_gradient":
        return op(kind, image, (4,), output, out=window, dtype=dtype)
    return op(kind, image, window, out=output, dtype=dtype)


def saved(signature: OpSignature) -> list[float]:
    """Sides of what is left of a convolution's multiplications."""
    return [float(side) for side in OpTable.of([signature]).saved_sides[0]]


@pytest.mark.parametrize(
    ("side", "image", "tiles", "points"),
    [
        (3, (9, 13), 3 * 4, 36),  # tiles of 4 x 4 pixels
        (3, (8, 4), 2 * 1, 36),
        (5, (30, 57), 2 * 3, 2176),  # of 28 x 28: 32 x 17 complex products of four real ones
        (5, (28, 5), 1 * 1, 2176),
    ],
)
def test_what_is_left_of_a_convolution_with_a_small_window(
    side: int, image: Shape, tiles: int, points: int
) -> None:
    """Tiles of five images, 32 channels to 64: whichever side comes first in memory."""
    window = (side, side, 32, 64)
    last = (5, *image, 32), window, (5, *image, 64)
    second = (5, 32, *image), window, (5, 64, *image)
    for shapes in (last, second):
        assert saved(conv("conv", *shapes)) == [5 * tiles, 64, 32, points]
        assert saved(conv("conv_input_gradient", *shapes)) == [5 * tiles, 32, 64, points]
        assert saved(conv("conv_filter_gradient", *shapes)) == [32, 64, 5 * tiles, points]


def test_unknown_sizes_count_as_one() -> None:
    assert saved(conv("conv", (-1, 9, 13, -1), (3, 3, -1, -1), (-1, 9, 13, -1))) == [12, 1, 1, 36]


@pytest.mark.parametrize(
    ("image", "window", "output"),
    [
        ((8, 28, 28, 64), (1, 1, 64, 64), (8, 28, 28, 64)),
        ((8, 28, 28, 64), (3, 5, 64, 64), (8, 28, 28, 64)),
        ((8, 28, 28, 64), (4, 4, 64, 64), (8, 28, 28, 64)),
        ((8, 28, 28, 64), (7, 7, 64, 64), (8, 28, 28, 64)),
        ((8, 28, 28, 64), (3, 3, 64, 64), (8, 14, 14, 64)),  # by a stride of 2
        ((8, 28, 28, 64), (3, 3, 64, 64), (8, 28, 14, 64)),  # along one side alone
        ((8, 28, 28, 32), (3, 3, 32, 128), (8, 14, 14, 128)),
        ((8, 28, 28, 128), (3, 3, 128, 32), (8, 14, 28, 32)),
        ((8, 28, 64), (3, 64, 64), (8, 28, 64)),
        ((8, 9, 9, 9, 64), (3, 3, 3, 64, 64), (8, 9, 9, 9, 64)),
        ((8, 28, 28, 64), (3, 3, 64, 64), (8, 28, 64)),
    ],
)
def test_nothing_is_saved_with_other_windows_strides_or_dimensions(
    image: Shape, window: Shape, output: Shape
) -> None:
    for kind in ("conv", "conv_input_gradient", "conv_filter_gradient"):
        assert saved(conv(kind, image, window, output)) == [0.0] * 4


def test_nothing_is_saved_where_a_shape_is_not_known() -> None:
    image, window = (8, 28, 28, 64), (3, 3, 64, 64)
    unknown = Tensor(None, FLOAT)
    known = Tensor(image, FLOAT), Tensor(window, FLOAT)
    ops = [
        OpSignature("conv", (unknown, known[1]), (unknown,)),
        OpSignature("conv_filter_gradient", (unknown, Tensor((4,), 3), unknown), (known[1],)),
        OpSignature("conv_input_gradient", (Tensor((4,), 3), known[1]), (known[0],)),
        OpSignature("add", known, (known[0],)),
    ]
    assert not OpTable.of(ops).saved_sides.any()


@pytest.mark.parametrize(
    ("window", "kind"),
    [
        ((1, 1), "pointwise"), ((3, 3), "window3"), ((5, 5), "window5"), ((2, 2), "other"),
        ((4, 4), "other"), ((6, 6), "other"), ((7, 7), "first"), ((8, 8), "first"),
        ((1, 7), "oblong"), ((3, 1), "oblong"), ((3,), "window3"), ((9,), "first"),
        ((3, 3, 3), "window3"), ((3, 3, 1), "oblong"),
    ],
)  # fmt: skip
def test_kinds_of_products_by_the_window(window: Shape, kind: str) -> None:
    image = (2, *[16] * len(window), 8)
    for name, gradient in (
        ("conv", 0), ("conv_input_gradient", 1), ("conv_filter_gradient", 2),
    ):  # fmt: skip
        table = OpTable.of([conv(name, image, (*window, 8, 8), image)])
        assert PRODUCT_KINDS[int(table.product_kind[0])] == kind
        assert table.gradient.tolist() == [gradient]
        assert table.windowed.tolist() == [True]


def test_a_convolution_without_a_known_window_is_of_another_kind() -> None:
    image = Tensor((2, 8, 8, 4), FLOAT)
    table = OpTable.of([OpSignature("conv", (image, Tensor(None, FLOAT)), (image,))])
    assert PRODUCT_KINDS[int(table.product_kind[0])] == "other"


@pytest.mark.parametrize(
    ("kind", "memory", "windowed"),
    [
        ("relu", "elementwise", False), ("add", "elementwise", False),
        ("batch_norm", "norm", True), ("rms_norm", "norm", True),
        ("layer_norm_gradient", "norm_gradient", True), ("max_pool", "pool", True),
        ("avg_pool_gradient", "pool_gradient", True), ("bias_gradient", "bias_gradient", False),
        ("softmax", "elementwise", False),
    ],
)  # fmt: skip
def test_kinds_of_what_moves_memory(kind: str, memory: str, windowed: bool) -> None:
    shape = (8, 16, 4, 4)
    table = OpTable.of([op(kind, shape, shape, shape, out=shape)])
    assert MEMORY_KINDS[int(table.memory_kind[0])] == memory
    assert table.windowed.tolist() == [windowed]
    assert PRODUCT_KINDS[int(table.product_kind[0])] == "matmul"
    assert not table.sides.any()


def test_sides_flops_and_bytes_of_a_product() -> None:
    """Three products of [32, 64] by [64, 10]; a sum of 32 x 10 numbers."""
    batch = op("batch_matmul", (3, 32, 64), (3, 64, 10), out=(3, 32, 10))
    table = OpTable.of([batch, op("relu", (32, 10), out=(32, 10))])
    assert table.sides.tolist() == [[32, 10, 64, 3], [0, 0, 0, 0]]
    assert table.flops[0] == 2 * 3 * 32 * 10 * 64
    assert table.moved.tolist() == [4 * 3 * (32 * 64 + 64 * 10 + 32 * 10), 2 * 4 * 320]
    assert MEMORY_KINDS[int(table.memory_kind[0])] == "product"
    assert table.gradient.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("signature", "fits"),
    [
        (op("matmul", (32, 64), (64, 16), out=(32, 16)), True),
        (op("matmul", (33, 64), (64, 16), out=(33, 16)), False),
        (op("matmul", (32, 65), (65, 16), out=(32, 16)), False),
        (op("matmul", (32, 64), (64, 17), out=(32, 17)), False),
        (op("batch_matmul", (3, 32, 64), (3, 64, 16), out=(3, 32, 16)), True),
        (conv("conv", (3, 7, 7, 64), (3, 3, 64, 16), (3, 7, 7, 16)), True),
        (conv("conv", (3, 7, 7, 64), (3, 3, 64, 12), (3, 7, 7, 12)), False),
        (conv("conv", (3, 7, 7, 3), (3, 3, 3, 16), (3, 7, 7, 16)), False),
        (conv("conv_input_gradient", (3, 7, 7, 64), (3, 3, 64, 16), (3, 7, 7, 16)), True),
        (conv("conv_input_gradient", (3, 7, 7, 12), (3, 3, 12, 16), (3, 7, 7, 16)), False),
        (conv("conv_filter_gradient", (3, 7, 7, 64), (3, 3, 64, 16), (3, 7, 7, 16)), True),
        (conv("conv_filter_gradient", (3, 7, 7, 64), (3, 3, 64, 12), (3, 7, 7, 12)), False),
        (conv("conv_filter_gradient", (3, 7, 7, 3), (3, 3, 3, 16), (3, 7, 7, 16)), False),
    ],
)
def test_which_sides_must_be_multiples_of_8(signature: OpSignature, fits: bool) -> None:
    """All of a product, of a convolution those of channels alone."""
    assert OpTable.of([signature]).fits_tensor_cores.tolist() == [fits]


def test_precision_is_that_of_the_first_output() -> None:
    shape = (16, 16)
    ops = [op("matmul", shape, shape, out=shape, dtype=dtype) for dtype in (FLOAT, BFLOAT16, HALF)]
    two = (Tensor(shape, FLOAT), Tensor(shape, HALF))
    ops += [OpSignature("add", two[::-1], two), OpSignature("assign", two[::-1], ())]
    table = OpTable.of(ops)
    assert table.half.tolist() == [False, True, True, False, False]
    assert table.bfloat16.tolist() == [False, True, False, False, False]


def test_a_program_may_forbid_tf32() -> None:
    shape = (16, 16)
    ops = [
        op("matmul", shape, shape, out=shape),
        op("matmul", shape, shape, out=shape, tf32=(0,)),
        op("matmul", shape, shape, out=shape, tf32=(1,)),
    ]
    assert OpTable.of(ops).no_tf32.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "low"),
    [
        (16, 32, 48, BFLOAT16, 2), (16, 32, 48, HALF, 2), (16, 32, 48, FLOAT, 0),
        (24, 32, 48, HALF, 0), (16, 8, 48, HALF, 0), (16, 32, 40, HALF, 0),
    ],
)  # fmt: skip
def test_products_in_few_bits_have_sides_of_multiples_of_16(
    m: int, n: int, k: int, dtype: int, low: int
) -> None:
    mark = {LOW_MARK: (2,)}
    single = op("matmul", (m, k), (k, n), out=(m, n), dtype=dtype, **mark)
    several = op("batch_matmul", (3, m, k), (3, k, n), out=(3, m, n), dtype=dtype, **mark)
    plain = op("matmul", (m, k), (k, n), out=(m, n), dtype=dtype)
    no_product = op("add", (m, n), (m, n), out=(m, n), dtype=dtype, **mark)
    assert OpTable.of([single, several, plain, no_product]).low.tolist() == [low, low, 0, 0]


def test_columns_of_norms_and_of_library_kernels() -> None:
    norm = op("batch_norm", (8, 64, 4, 4), (64,), out=(8, 64, 4, 4))
    rows = OpSignature(
        "embedding_gradient", (Tensor((4000, 16), FLOAT), Tensor((4000,), 3)),
        (Tensor((64, 16), FLOAT),),
    )  # fmt: skip
    table = OpTable.of([norm, rows])
    assert table.channel_elements.tolist() == [2 * 8 * 16, 0.0]
    assert table.inner_kernels.tolist() == [0.0, 30.0]


def test_some_ops_of_a_table_are_the_table_of_some_ops() -> None:
    image = (8, 28, 28, 64)
    ops = [
        conv("conv", image, (3, 3, 64, 64), image, HALF),
        op("relu", image, out=image),
        op("matmul", (16, 16), (16, 16), out=(16, 16), dtype=BFLOAT16, **{LOW_MARK: (1,)}),
    ]
    some, alone = OpTable.of(ops).take(np.array([2, 0])), OpTable.of([ops[2], ops[0]])
    for name in OpTable.__dataclass_fields__:
        if name != "facts":
            np.testing.assert_array_equal(getattr(some, name), getattr(alone, name), err_msg=name)
    assert some.facts.kinds == alone.facts.kinds
    np.testing.assert_array_equal(some.facts.values, alone.facts.values)


def test_a_table_of_no_ops_has_all_columns() -> None:
    table = OpTable.of([])
    assert table.sides.shape == table.saved_sides.shape == (0, 4)
    assert table.moved.shape == table.fits_tensor_cores.shape == (0,)


def test_images_of_other_channels_than_the_window_have_their_longest_side_left_out() -> None:
    """9 x 13 pixels of 48 channels, by a window that states 64."""
    assert saved(conv("conv", (5, 9, 13, 40), (3, 3, 32, 64), (5, 9, 13, 48))) == [60, 64, 32, 36]
