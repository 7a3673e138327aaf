"""Blocks of parameters that are gathered together: each parameter in one, in order of use."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.graph.opgraph import Traffic
from driple.graph.step_facts import ParameterTable
from driple.step.blocks import block_name, blocks_of
from tests.dataset.examples import chain_graph
from tests.step.layered import FLOAT, HALF, layered

MODEL = ["embed.weight", "layers.0.attn.weight", "layers.0.mlp.weight", "layers.1.attn.weight",
         "layers.1.mlp.weight", "head.weight"]  # fmt: skip
WIDTHS = [2, 3, 4, 5, 6, 7, 8]
EACH = [4 * a * b for a, b in pairwise(WIDTHS)]
ORDER = np.arange(12)


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("layers.0.attn.weight", "layers.0"),
        ("model.layers.11.mlp.0.weight", "model.layers.11"),
        ("3.weight", "3"),
        ("layer1.0.conv1.weight", "layer1.0"),
        ("conv1.weight", ""),
        ("weight", ""),
        ("block2a.weight", ""),
        ("layers.0", "layers.0"),
    ],
)
def test_a_block_is_the_path_up_to_the_first_number(name: str, block: str) -> None:
    assert block_name(name) == block


def test_blocks_of_numbered_layers_and_the_root() -> None:
    blocks = blocks_of(layered(WIDTHS, names=MODEL), ORDER)
    assert [each.name for each in blocks] == ["", "layers.0", "layers.1"]
    assert [each.members for each in blocks] == [(0, 5), (1, 2), (3, 4)]
    assert [each.gathered_bytes for each in blocks] == [
        EACH[0] + EACH[5], EACH[1] + EACH[2], EACH[3] + EACH[4]]  # fmt: skip
    assert [each.gradient_bytes for each in blocks] == [each.gathered_bytes for each in blocks]
    assert [each.num_tensors for each in blocks] == [2, 2, 2]
    # The root is there from the start and stays; layer i is read again by node 11 - i.
    assert [each.forward_at for each in blocks] == [0, 1, 3]
    assert [each.backward_at for each in blocks] == [None, 9, 7]
    assert [each.complete_at for each in blocks] == [11, 10, 8]


@given(
    st.lists(st.sampled_from(["a.0.w", "a.1.w", "a.1.v", "b.2.w", "top", "end"]), min_size=1,
             max_size=8),
    st.data(),
)  # fmt: skip
def test_every_parameter_is_in_one_block(names: list[str], data: st.DataObject) -> None:
    """Whatever its name and group; a block is there before its first use, and ends after it."""
    count = len(names)
    graph = layered([3] * (count + 1), names=names)
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    blocks = blocks_of(graph, np.arange(2 * count), groups)
    members = [member for each in blocks for member in each.members]
    assert sorted(members) == [*range(count)]
    assert sum(each.gathered_bytes for each in blocks) == count * 36
    assert [each.forward_at for each in blocks] == sorted(each.forward_at for each in blocks)
    for each in blocks:
        assert {int(groups[member]) for member in each.members} == {each.group}
        assert each.num_tensors == len(each.members)
        assert each.forward_at <= min(each.members)
        assert each.complete_at == max(2 * count - 1 - member for member in each.members)


def test_the_place_in_the_order_counts_not_the_number_of_the_node() -> None:
    graph = layered(WIDTHS, names=MODEL)
    later = ORDER + 100
    for here, there in zip(blocks_of(graph, ORDER), blocks_of(graph, later), strict=True):
        assert there.complete_at == (here.complete_at or 0) + 100
        if here.name:
            assert there.forward_at == here.forward_at + 100
            assert there.backward_at == (here.backward_at or 0) + 100


def test_where_products_are_in_half_precision_so_are_gathered_parameters() -> None:
    whole = blocks_of(layered(WIDTHS, names=MODEL, dtype=FLOAT), ORDER)
    half = blocks_of(layered(WIDTHS, names=MODEL, dtype=HALF), ORDER)
    for block, other in zip(whole, half, strict=True):
        assert other.gathered_bytes == block.gathered_bytes / 2
        assert other.gradient_bytes == block.gradient_bytes / 2


def test_frozen_parameters_are_gathered_and_have_no_gradient() -> None:
    blocks = blocks_of(layered(WIDTHS, names=MODEL, frozen=[1, 2, 3]), ORDER)
    root, first, second = blocks
    assert (first.gradient_bytes, first.complete_at) == (0.0, None)
    assert first.gathered_bytes == EACH[1] + EACH[2]
    assert (second.gradient_bytes, second.complete_at) == (EACH[4], 7)
    assert root.gradient_bytes == EACH[0] + EACH[5]


def test_a_parameter_is_needed_again_where_it_is_read_or_its_gradient_is_made() -> None:
    """Layer 0 is read in node 2 and completed in 3; layer 1 is not read again, and made in 2."""
    graph = layered([3, 4, 5])
    readers = np.array([[0, 0], [1, 1], [0, 2]], dtype=np.int32)
    blocks = blocks_of(
        replace(graph, parameters=replace(graph.parameters, readers=readers)), np.arange(4)
    )
    assert [each.backward_at for each in blocks] == [2, 2]
    assert [each.complete_at for each in blocks] == [3, 2]


def test_a_trained_parameter_without_a_gradient_sends_none() -> None:
    graph = layered([3, 4, 5], frozen=[0])
    trained = replace(graph.parameters, is_trained=np.ones(2, dtype=np.bool_))
    first, second = blocks_of(replace(graph, parameters=trained), np.arange(4))
    assert (first.gradient_bytes, first.complete_at) == (0.0, None)
    assert (second.gradient_bytes, second.complete_at) == (80.0, 2)


def test_a_step_that_begins_backward_needs_its_parameters_from_the_start() -> None:
    graph = layered([3, 4, 5])
    backward = replace(graph, phases=np.ones(4, dtype=np.int8))
    blocks = blocks_of(backward, np.arange(4))
    assert [(each.forward_at, each.backward_at) for each in blocks] == [(0, 0), (0, 1)]


def test_without_numbers_neighbours_of_100_mb_are_groups() -> None:
    """Of 40 MB each, three by three; the last group is what is left."""
    names = [f"conv{letter}" for letter in "abcdefg"]
    width = int((40e6 / 4) ** 0.5) + 1  # 40.01 MB
    blocks = blocks_of(layered([width] * 8, names=names), np.arange(14))
    assert [each.members for each in blocks] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert [each.name for each in blocks] == ["group 0", "group 1", "group 2"]
    one_block = ["layers.0.a", "layers.0.b"]
    (alone,) = blocks_of(layered([4, 4, 4], names=one_block), np.arange(4))
    assert alone.name == "group 0"


def test_without_phases_the_backward_pass_begins_with_the_first_gradient() -> None:
    shown, hidden = (
        blocks_of(layered(WIDTHS, names=MODEL, phases=phases), ORDER) for phases in (True, False)
    )
    assert shown == hidden


def test_a_graph_without_a_table_of_parameters_has_its_traffic() -> None:
    """As graphs of TensorFlow: gradients belong to parameters of their size."""
    graph = replace(layered(WIDTHS), parameters=ParameterTable())
    (block,) = blocks_of(graph, ORDER)
    assert block.name == "group 0"
    assert block.gathered_bytes == block.gradient_bytes == sum(EACH)
    assert (block.forward_at, block.backward_at, block.complete_at) == (0, 6, 11)
    assert blocks_of(replace(chain_graph(3), traffic=Traffic()), np.arange(3)) == []
