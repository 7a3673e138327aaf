"""Shapes of shards: the largest one covers its part, and nothing else is cut."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.graph.signature import OpSignature, Tensor
from driple.step.shard_shapes import (
    axis_of,
    by_heads,
    divided,
    is_matrix,
    whole_sizes,
    widens,
)

SHAPES = st.lists(st.integers(1, 24), min_size=1, max_size=4).map(tuple)


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, 1)


def op(kind: str, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> OpSignature:
    return OpSignature(
        kind, tuple(tensor(*one) for one in inputs), tuple(tensor(*one) for one in outputs)
    )


@given(SHAPES, st.integers(1, 8), st.integers(-5, 5))
def test_a_shard_is_cut_along_one_dimension(shape: tuple[int, ...], degree: int, axis: int) -> None:
    """Exactly where some dimension divides; else the largest shard, rounded up."""
    whole = tensor(*shape)
    part = divided(whole, degree, axis)
    assert part.shape is not None
    cut = [i for i, size in enumerate(shape) if part.shape[i] != size]
    assert len(cut) <= 1
    assert degree * part.elements >= whole.elements
    if any(size % degree == 0 for size in shape) and whole.elements > 1:
        assert degree * part.elements == whole.elements
    for i in cut:
        assert part.shape[i] == ceil(shape[i] / degree)


@pytest.mark.parametrize(
    ("shape", "degree", "axis", "part"),
    [
        ((4, 6, 8), 2, 0, (2, 6, 8)),
        ((4, 6, 8), 2, 1, (4, 3, 8)),
        ((4, 6, 8), 2, -1, (4, 6, 4)),
        ((4, 6, 8), 4, 1, (4, 6, 2)),  # 6 rows do not divide: the last dimension that does
        ((4, 6, 9), 4, 1, (1, 6, 9)),
        ((5, 7, 9), 4, 1, (5, 2, 9)),  # none does: rounded up where it was asked
        ((4, 6, 8), 2, 3, (4, 6, 4)),  # no such dimension: the last
        ((4, 6, 8), 2, -4, (4, 6, 4)),
        ((4, 6, 8), 2, -3, (2, 6, 8)),
        ((1,), 4, 0, (1,)),
        ((), 4, 0, ()),
    ],
)
def test_dimensions_by_hand(
    shape: tuple[int, ...], degree: int, axis: int, part: tuple[int, ...]
) -> None:
    assert divided(tensor(*shape), degree, axis).shape == part


def test_what_has_no_shape_stays() -> None:
    unknown = Tensor(None, 1)
    assert divided(unknown, 2, 0) is unknown
    assert by_heads(unknown, 2, 1) is unknown


def test_several_devices_hold_a_head_of_keys_where_there_are_fewer() -> None:
    """Samples, heads, length, width; 2 heads of keys on 8 devices are one each."""
    assert by_heads(tensor(3, 16, 5, 7), 8, 1).shape == (3, 2, 5, 7)
    assert by_heads(tensor(3, 2, 5, 8), 8, 1).shape == (3, 1, 5, 8)
    assert by_heads(tensor(16), 8, 1).shape == (2,)  # such as statistics without heads


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "axis"),
    [
        ("batch_matmul", [(4, 5, 6), (4, 6, 7)], [(4, 5, 7)], 0),
        ("matmul", [(5, 6), (6, 7)], [(5, 7)], -1),
        ("add", [(4, 5, 6)], [(4, 5, 6)], -1),
        ("softmax", [(2, 3, 4, 4)], [(2, 3, 4, 4)], 1),
        ("batch_matmul", [(2, 3, 4, 5), (2, 3, 5, 4)], [(2, 3, 4, 4)], 1),
        ("attention", [(4, 5, 6)], [(4, 5, 6)], 1),
        ("attention_gradient", [(4, 5)], [(4, 5)], 1),
        ("add", [(2, 3, 4, 5)], [], 1),  # without outputs, by what it reads
    ],
)
def test_ops_are_divided_by_heads_where_they_have_them(
    kind: str, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]], axis: int
) -> None:
    assert axis_of(op(kind, inputs, outputs)) == axis


def test_of_an_unknown_shape_the_last_dimension_is_divided() -> None:
    assert axis_of(OpSignature("batch_matmul", (), (Tensor(None, 1),))) == -1


def test_a_head_of_words_makes_more_columns_than_it_reads() -> None:
    assert widens(op("matmul", [(5, 6), (6, 7)], [(5, 7)]))
    assert not widens(op("matmul", [(5, 6), (6, 6)], [(5, 6)]))
    assert not widens(op("matmul", [(5, 6)], [(5, 7)]))
    assert not widens(op("matmul", [(5, 6), (2, 6, 7)], [(5, 7)]))
    assert not widens(op("batch_matmul", [(5, 6), (6, 7)], [(5, 7)]))
    assert not widens(OpSignature("matmul", (tensor(5, 6), Tensor(None, 1)), ()))


def test_a_matrix_has_several_dimensions() -> None:
    assert is_matrix(tensor(3, 4), 12)
    assert not is_matrix(tensor(3, 4), 13)
    assert not is_matrix(tensor(12), 12)
    assert not is_matrix(Tensor(None, 1), 0)


@given(st.lists(st.integers(0, 10**6), max_size=6), st.integers(1, 64))
def test_shares_of_sizes_are_rounded_up(sizes: list[int], degree: int) -> None:
    """Never down, by less than one, and not for rounding of the share itself."""
    shares = whole_sizes(np.array(sizes, dtype=np.float64) * (1 / degree))
    for size, share in zip(sizes, shares.tolist(), strict=True):
        assert share == -(-size // degree)
