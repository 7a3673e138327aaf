"""Sides of the matrix products that ops come to."""

from __future__ import annotations

import pytest

from driple.graph.cost import cost_of_op
from driple.graph.cost.products import Product, product_of
from driple.graph.signature import OpSignature, Tensor

FLOAT = 1


def op(
    op_type: str, *inputs: tuple[int, ...], out: tuple[int, ...], equation: str = ""
) -> OpSignature:
    return OpSignature.of_op_type(
        op_type,
        tuple(Tensor(shape, FLOAT) for shape in inputs),
        (Tensor(out, FLOAT),),
        (("equation", tuple(map(ord, equation))),) if equation else (),
    )


IMAGE, WINDOW, MADE = (8, 28, 28, 64), (3, 3, 64, 128), (8, 14, 14, 128)
CONV = op("Conv2D", IMAGE, WINDOW, out=MADE)
TO_INPUT = op("Conv2DBackpropInput", (4,), WINDOW, MADE, out=IMAGE)
TO_FILTER = op("Conv2DBackpropFilter", IMAGE, (4,), MADE, out=WINDOW)


def product(signature: OpSignature) -> Product:
    """That of an op which has one."""
    product_of_op = product_of(signature, cost_of_op(signature).flops)
    assert product_of_op is not None
    return product_of_op


@pytest.mark.parametrize(
    "signature",
    [
        CONV,
        TO_INPUT,
        TO_FILTER,
        op("MatMul", (32, 64), (64, 10), out=(32, 10)),
        op("BatchMatMulV2", (4, 8, 16, 32), (4, 8, 32, 5), out=(4, 8, 16, 5)),
        op("Einsum", (8, 3, 5), (8, 5, 7), out=(8, 3, 7), equation="bij,bjk->bik"),
        op("Einsum", (16, 16), (4, 16, 9), out=(4, 16, 9), equation="tu,bud->btd"),
        op("Einsum", (4, 16, 9), (4, 16, 9), out=(16, 16), equation="btd,bud->tu"),
    ],
)
def test_a_product_has_the_flops_of_its_op(signature: OpSignature) -> None:
    factors = product(signature)
    assert 2 * factors.m * factors.n * factors.k * factors.count == pytest.approx(
        cost_of_op(signature).flops
    )


def test_sides_are_those_of_the_output() -> None:
    forward, to_filter = product(CONV), product(TO_FILTER)
    assert (forward.m, forward.n) == (8 * 14 * 14, 128)
    assert (to_filter.m, to_filter.n) == (3 * 3 * 64, 128)
    batched = product(op("Einsum", (8, 3, 5), (8, 5, 7), out=(8, 3, 7), equation="bij,bjk->bik"))
    assert (batched.m, batched.n, batched.k, batched.count) == (3, 7, 5, 8)


def test_the_left_factor_of_a_convolution_is_its_patches() -> None:
    """A window for each position of the output, of as many channels as it reads."""
    patches = 8 * 14 * 14 * (3 * 3 * 64)
    assert product(CONV).left_elements == product(TO_FILTER).left_elements == patches
    assert product(op("MatMul", (32, 64), (64, 10), out=(32, 10))).left_elements == 32 * 64


def test_fewer_channels_out_leave_the_patches_as_they_are() -> None:
    """The FLOPs become fewer, and what must be read again and again does not."""
    narrow = op("Conv2D", IMAGE, (3, 3, 64, 4), out=(8, 14, 14, 4))
    assert product(narrow).left_elements == product(CONV).left_elements
    assert 32 * cost_of_op(narrow).flops == cost_of_op(CONV).flops


def test_what_is_no_product_has_none() -> None:
    assert product_of(op("Relu", IMAGE, out=IMAGE), 1.0) is None
    assert product_of(CONV, 0.0) is None
