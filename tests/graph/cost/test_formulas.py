"""Closed forms of single ops, worked out by hand."""

from dataclasses import replace

import pytest

from driple.graph.cost import OpCost, cost_of_op, flops_of_update, has_formula
from driple.graph.signature import OpSignature, Tensor
from driple.graph.tf.op_kinds import kind_of_op_type

FLOAT, HALF, INT32, RESOURCE = 1, 19, 3, 20


def op(op_type: str, *inputs: tuple[int, ...], out: tuple[int, ...], **numbers: int) -> OpSignature:
    return OpSignature.of_op_type(
        op_type,
        tuple(Tensor(shape, FLOAT) for shape in inputs),
        (Tensor(out, FLOAT),),
        tuple((name, (value,)) for name, value in sorted(numbers.items())),
    )


@pytest.mark.parametrize("height", [7, 14])
def test_a_convolution_and_both_its_gradients_cost_the_same(height: int) -> None:
    """2 x positions x window x channels in x channels out, whichever of the three is sought."""
    image, weights, output = (8, height, height, 64), (3, 3, 64, 128), (8, height, height, 128)
    sizes = (4,)
    expected = 2 * 8 * height * height * 9 * 64 * 128
    forward = op("Conv2D", image, weights, out=output)
    to_input = op("Conv2DBackpropInput", sizes, weights, output, out=image)
    to_filter = op("Conv2DBackpropFilter", image, sizes, output, out=weights)
    assert {cost_of_op(one).flops for one in (forward, to_input, to_filter)} == {expected}


@pytest.mark.parametrize(
    ("left", "right"), [((5, 7), (7, 11)), ((7, 5), (7, 11)), ((5, 7), (11, 7)), ((7, 5), (11, 7))]
)
def test_a_product_costs_the_same_however_its_factors_lie(
    left: tuple[int, int], right: tuple[int, int]
) -> None:
    assert cost_of_op(op("MatMul", left, right, out=(5, 11))).flops == 2 * 5 * 7 * 11


def test_batched_products_multiply() -> None:
    product = op("BatchMatMulV2", (3, 4, 5, 7), (3, 4, 7, 11), out=(3, 4, 5, 11))
    assert cost_of_op(product).flops == 12 * 2 * 5 * 7 * 11


def test_broadcast_factors_count_as_often_as_they_are_used() -> None:
    product = op("BatchMatMulV2", (5, 7), (3, 7, 11), out=(3, 5, 11))
    assert cost_of_op(product).flops == 3 * 2 * 5 * 7 * 11


def test_grouped_convolutions_cost_their_groups_share() -> None:
    whole = op("Conv2D", (1, 8, 8, 64), (3, 3, 64, 64), out=(1, 8, 8, 64))
    grouped = op("Conv2D", (1, 8, 8, 64), (3, 3, 16, 64), out=(1, 8, 8, 64))
    assert cost_of_op(whole).flops == 4 * cost_of_op(grouped).flops


def test_bytes_follow_the_precision() -> None:
    single = OpSignature.of_op_type("Relu", (Tensor((10,), FLOAT),), (Tensor((10,), FLOAT),))
    half = OpSignature.of_op_type("Relu", (Tensor((10,), HALF),), (Tensor((10,), HALF),))
    assert cost_of_op(single).bytes_read == 2 * cost_of_op(half).bytes_read == 40
    assert cost_of_op(single).flops == cost_of_op(half).flops == 10


def test_views_are_free_and_copies_are_not() -> None:
    view = cost_of_op(op("Reshape", (4, 6), (2,), out=(6, 4)))
    copy = cost_of_op(op("Transpose", (4, 6), (2,), out=(6, 4)))
    assert (view.bytes_read, view.bytes_written, view.flops) == (0, 0, 0)
    assert copy.bytes_written == 96
    assert copy.flops == 0
    assert view.known
    assert copy.known


def test_a_lookup_reads_only_its_rows() -> None:
    table = OpSignature.of_op_type(
        "GatherV2",
        (Tensor((32_000, 512), FLOAT, True), Tensor((64,), INT32), Tensor((), INT32)),
        (Tensor((64, 512), FLOAT),),
    )
    cost = cost_of_op(table)
    assert cost.bytes_read == cost.bytes_written == 64 * 512 * 4
    assert cost.parameters == 32_000 * 512


def test_an_unknown_op_is_said_to_be_and_counts_its_bytes() -> None:
    cost = cost_of_op(op("MyOwnKernel", (10,), out=(20,)))
    assert not cost.known
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (0, 40, 80)


def test_unknown_shapes_cost_nothing_instead_of_failing() -> None:
    for op_type in ("MatMul", "Conv2D", "Conv2DBackpropFilter", "MaxPool", "Sum", "AddN", "LRN"):
        bare = OpSignature.of_op_type(op_type, (Tensor(None, 0),), (Tensor(None, 0),))
        assert cost_of_op(bare).flops == 0
        assert cost_of_op(OpSignature.of_op_type(op_type, (), ())).flops == 0


SCALAR = (1,)


@pytest.mark.parametrize(
    ("name", "num_variables", "num_scalars", "flops"),
    [
        ("GradientDescent", 1, 1, 2),
        ("Momentum", 2, 1, 4),
        ("Adagrad", 2, 1, 6),
        ("AdagradV2", 2, 2, 7),
        ("RMSProp", 3, 4, 11),
        ("CenteredRMSProp", 4, 4, 14),
        ("Adam", 3, 6, 12),
    ],
)
def test_an_update_costs_the_same_whatever_holds_its_variables(
    name: str, num_variables: int, num_scalars: int, flops: int
) -> None:
    """Handles are scalars; positions are those of TensorFlow's op definitions."""
    after = (SCALAR,) if name == "Momentum" else ()  # the momentum follows the gradient
    rest = (*(SCALAR,) * num_scalars, (1000, 10), *after)
    by_reference = op(f"Apply{name}", *((1000, 10),) * num_variables, *rest, out=(1000, 10))
    by_handle = op(f"ResourceApply{name}", *((),) * num_variables, *rest, out=[])
    handles = (Tensor((), RESOURCE),) * num_variables
    by_handle = replace(by_handle, inputs=(*handles, *by_handle.inputs[num_variables:]))
    cost = cost_of_op(by_handle)
    assert cost == cost_of_op(by_reference)
    assert cost.known
    assert cost.flops == 10_000 * flops
    assert cost.bytes_written == num_variables * 40_000
    assert cost.bytes_read == cost.bytes_written + 40_000 + 4 * (num_scalars + len(after))


@pytest.mark.parametrize("kind", ["Sparse", "ResourceSparse"])
def test_a_sparse_update_costs_its_rows(kind: str) -> None:
    table, rows = ((), ()) if kind == "ResourceSparse" else ((32_000, 512), (32_000, 512))
    update = op(f"{kind}ApplyAdagrad", table, rows, SCALAR, (64, 512), (64,), out=table)
    cost = cost_of_op(update)
    assert cost.known
    assert cost.flops == 6 * 64 * 512
    assert cost.bytes_written == 2 * 64 * 512 * 4
    assert cost.bytes_read == 3 * 64 * 512 * 4 + 4 + 64 * 4


def test_an_update_by_what_has_no_shape_is_reported() -> None:
    handles = (Tensor((), RESOURCE),) * 3
    unknown = OpSignature.of_op_type("ResourceApplyMomentum", (*handles, Tensor(None, FLOAT)), ())
    for bare in (
        unknown,
        OpSignature.of_op_type("ResourceApplyAdam", (), ()),
        OpSignature.of_op_type("ApplyAdam", (), ()),
    ):
        assert (cost_of_op(bare).flops, cost_of_op(bare).known) == (0, False)
    by_reference = replace(unknown, kind="update_momentum", inputs=(Tensor((5,), FLOAT),) * 2)
    assert cost_of_op(by_reference).flops == 20


def test_only_updates_have_flops_for_each_parameter() -> None:
    assert flops_of_update("sparse_update_adagrad_epsilon") == 7
    assert flops_of_update("conv") == 0


def einsum(equation: str, *inputs: tuple[int, ...], out: tuple[int, ...]) -> OpSignature:
    signature = op("Einsum", *inputs, out=out)
    return replace(signature, numbers=(("equation", tuple(map(ord, equation))),))


@pytest.mark.parametrize(
    ("equation", "inputs", "out", "flops"),
    [
        ("tu,bud->btd", ((16, 16), (4, 16, 256)), (4, 16, 256), 2 * 4 * 16 * 16 * 256),
        ("bij,bjk->bik", ((8, 3, 5), (8, 5, 7)), (8, 3, 7), 2 * 8 * 3 * 5 * 7),
        ("...ij,...jk->...ik", ((2, 4, 3, 5), (4, 5, 7)), (2, 4, 3, 7), 2 * 8 * 3 * 5 * 7),
        ("i...,ij->j...", ((3, 2, 2), (3, 5)), (5, 2, 2), 2 * 4 * 3 * 5),
        ("abc->c", ((2, 3, 4),), (4,), 24),
    ],
)
def test_an_einsum_multiplies_every_combination_of_its_indices(
    equation: str, inputs: tuple[tuple[int, ...], ...], out: tuple[int, ...], flops: int
) -> None:
    cost = cost_of_op(einsum(equation, *inputs, out=out))
    assert (cost.flops, cost.known) == (flops, True)


@pytest.mark.parametrize("equation", ["", "ij,jk", "ij->i", "ijk,jk->ik", "ij,jk,kl->il"])
def test_an_einsum_whose_indices_are_not_told_is_reported(equation: str) -> None:
    assert not cost_of_op(einsum(equation, (3, 5), (5, 7), out=(3, 7))).known


def test_what_is_free_or_unknown_costs_nothing_at_all() -> None:
    assert cost_of_op(op("Identity", (4, 6), out=(4, 6))) == OpCost(0.0, 0.0, 0.0, 0.0)
    unknown = OpSignature.of_op_type("ResourceApplyAdam", (), ())
    assert cost_of_op(unknown) == OpCost(0.0, 0.0, 0.0, 0.0, known=False)


@pytest.mark.parametrize(
    ("op_type", "known"),
    [
        ("Conv2D", True),  # computes
        ("ApplyAdam", True),  # updates
        ("Transpose", True),  # moves
        ("Identity", True),  # does nothing
        ("MyOwnKernel", False),
    ],
)
def test_a_formula_of_any_kind_is_one(op_type: str, known: bool) -> None:
    assert has_formula(kind_of_op_type(op_type)) is known


def test_an_update_takes_the_size_of_its_variable_or_of_its_gradient() -> None:
    """Not that of a slot, nor that of the indices after a sparse gradient."""
    by_gradient = op("ApplyMomentum", None, (7,), SCALAR, (3, 4), SCALAR, out=(3, 4))
    assert cost_of_op(by_gradient).flops == 4 * 12
    no_gradient = op("SparseApplyAdagrad", None, None, SCALAR, None, (64,), out=None)
    assert not cost_of_op(no_gradient).known
