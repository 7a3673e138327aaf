"""Lifetimes that follow from the order of a TensorFlow graph's ops, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.graph import read_graph
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import TensorRole
from driple.memory.graph_lifetimes import with_lifetimes
from driple.memory.timeline import step_timeline

ROOT = Path(__file__).resolve().parents[2]
FLOAT, INT32 = NUMBER_OF["DT_FLOAT"], NUMBER_OF["DT_INT32"]
ROW = Tensor((8, 64), FLOAT)
NBYTES = 4 * 8 * 64


def graph_of(*nodes: tuple[str, tuple[int, ...]], dtype: int = FLOAT) -> OpGraph:
    """Nodes of a kind, each of which reads some earlier ones and gives one tensor."""
    result = Tensor((8, 64), dtype)
    signatures = [OpSignature(kind, (ROW,) * len(reads), (result,)) for kind, reads in nodes]
    edges = [(source, i) for i, (_, reads) in enumerate(nodes) for source in reads]
    count = len(nodes)
    return OpGraph(
        names=tuple(f"n{i}" for i in range(count)),
        op_types=tuple(kind for kind, _ in nodes),
        devices=("",) * count,
        edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
        is_control=np.zeros(len(edges), dtype=np.bool_),
        tensor_elements=np.full(count, 512),
        tensor_bytes=np.full(count, NBYTES),
        signatures=tuple(signatures),
        signature_of=np.arange(count, dtype=np.int32),
    )


def levels(graph: OpGraph) -> list[int]:
    """How many of the tensors are allocated at each node."""
    total = step_timeline(graph, rounding=1).total_bytes[:-1]
    return [int(nbytes) // NBYTES for nbytes in total]


def test_a_tensor_lives_until_its_last_reader() -> None:
    """Products write into memory of their own; the first is read twice."""
    chain = graph_of(
        ("random", ()), ("matmul", (0,)), ("matmul", (1,)), ("matmul", (2, 0)), ("matmul", (3,))
    )
    assert levels(chain) == [1, 2, 3, 3, 2]


def test_element_wise_ops_write_into_what_nobody_reads_later() -> None:
    """The first relu takes over; the second cannot, since its input is read again."""
    free = graph_of(("random", ()), ("relu", (0,)), ("relu", (1,)))
    assert levels(free) == [1, 1, 1]
    read_again = graph_of(("random", ()), ("relu", (0,)), ("matmul", (1, 0)))
    assert levels(read_again) == [1, 2, 3]


def test_names_share_memory_and_whole_numbers_are_on_the_host() -> None:
    """Reshapes make nothing, and extend the life of what they show."""
    viewed = graph_of(("random", ()), ("view", (0,)), ("matmul", (1,)), ("matmul", (2, 1)))
    assert levels(viewed) == [1, 1, 2, 3]
    on_host = graph_of(("random", ()), ("add", (0,)), dtype=INT32)
    lives = with_lifetimes(on_host).lifetimes
    assert (lives.roles == TensorRole.INPUT).all()


def test_a_loop_keeps_what_it_writes_to_a_list() -> None:
    """Five turns of it, from the op that makes it to the op that reads the list."""
    plain = graph_of(("random", ()), ("matmul", (0,)), ("list_write", (1,)), ("list_read", (2,)))
    loop = replace(plain, executions=np.array([1, 5, 5, 5]))
    assert levels(loop) == [1, 1 + 5, 5, 5 + 1]
    lives = with_lifetimes(loop).lifetimes
    assert sorted(lives.nbytes.tolist()) == [NBYTES, NBYTES, 5 * NBYTES]


def test_gradients_do_not_wait_for_each_other_in_one_name_of_all() -> None:
    """`IdentityN`, as Keras writes it before the updates, holds none of them."""
    graph = graph_of(("matmul", ()), ("matmul", ()), ("matmul", ()), ("identity_n", (0, 1, 2)))
    assert levels(graph)[:3] == [1, 1, 1]


def test_the_order_is_that_in_which_ops_become_ready() -> None:
    """What depends on nothing runs first, wherever it stands in the file."""
    graph = graph_of(("random", ()), ("matmul", (0,)), ("random", ()), ("matmul", (1, 2)))
    assert with_lifetimes(graph).names == ("n0", "n2", "n1", "n3")


def test_a_resnet_keeps_its_convolutions_and_activations() -> None:
    """A peak at the turn of the step; by hand, two maps of each of 53 layers at 64 images."""
    timeline = step_timeline(read_graph(ROOT / "datasets/examples/resnet50.pbtxt"))
    assert timeline.total_bytes[-1] < 0.1 * timeline.peak_bytes
    assert timeline.at_peak()["activations"] > 0.9 * timeline.peak_bytes
    assert 0.4 < timeline.peak_at / len(timeline.nbytes) < 0.7


def test_a_graph_that_states_lifetimes_is_left_as_it_is() -> None:
    """As PyTorch's do."""
    pytest.importorskip("torch")
    from tests.memory.test_timeline import traced

    graph = traced()
    assert with_lifetimes(graph) is graph
