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
from driple.graph.step_facts import OptimizerUpdate, ParameterTable, Phase, TensorRole
from driple.memory.graph_lifetimes import rounding_of, with_lifetimes
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


Life = tuple[int, int, int, TensorRole]  # bytes, made by, freed after, role


def lives_of(graph: OpGraph) -> list[Life]:
    """All tensors in the order in which they are stated."""
    lives = with_lifetimes(graph).lifetimes
    columns = (lives.nbytes, lives.made_by, lives.freed_after, lives.roles)
    return [
        (nbytes, made_by, freed, TensorRole(role))
        for nbytes, made_by, freed, role in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def table_of(trained: tuple[tuple[int, int], ...]) -> ParameterTable:
    """Parameters of one tensor each; (parameter, node that completes its gradient)."""
    count = len(trained)
    return ParameterTable(
        names=tuple(f"p{i}" for i in range(count)),
        elements=np.full(count, 512),
        nbytes=np.full(count, NBYTES),
        is_trained=np.ones(count, dtype=np.bool_),
        readers=np.array([(i, 0) for i in range(count)], dtype=np.int32),
        gradients=np.array(trained, dtype=np.int32),
    )


def test_blocks_are_rounded_as_the_framework_does() -> None:
    """256 bytes by TensorFlow's allocator, 512 by CUDA's of PyTorch."""
    assert (rounding_of("tensorflow"), rounding_of("pytorch")) == (256, 512)


def test_every_tensor_of_a_step_has_its_role() -> None:
    """An activation is read in the backward pass; a gradient is what completes a parameter's."""
    forward, backward, update = int(Phase.FORWARD), int(Phase.BACKWARD), int(Phase.UPDATE)
    graph = replace(
        graph_of(
            ("random", ()), ("matmul", (0,)), ("matmul", (1,)), ("matmul", (2, 1)), ("matmul", (3,))
        ),
        phases=np.array([forward, forward, forward, backward, update], dtype=np.int8),
        parameters=table_of(((0, 3),)),
        update=OptimizerUpdate(state_bytes=77),
    )
    assert lives_of(graph) == [
        (NBYTES, -1, 5, TensorRole.PARAMETER),
        (NBYTES, 0, 1, TensorRole.TEMPORARY),
        (NBYTES, 1, 3, TensorRole.ACTIVATION),
        (NBYTES, 2, 3, TensorRole.ACTIVATION),
        (NBYTES, 3, 4, TensorRole.GRADIENT),
        (NBYTES, 4, 4, TensorRole.TEMPORARY),
        (77, -1, 5, TensorRole.OPTIMIZER_STATE),
    ]
    plain = replace(graph, phases=graph.phases[:0], update=OptimizerUpdate())
    roles = [life[3] for life in lives_of(plain)]
    temporary = TensorRole.TEMPORARY
    assert roles == [TensorRole.PARAMETER, *[temporary] * 3, TensorRole.GRADIENT, temporary]
    recomputed = replace(graph, phases=np.full(5, int(Phase.RECOMPUTE), dtype=np.int8))
    assert TensorRole.ACTIVATION not in [life[3] for life in lives_of(recomputed)]


def test_what_updates_read_of_the_forward_pass_is_kept_too() -> None:
    """And a tensor that nobody reads again is none that is kept."""
    phases = np.array([int(Phase.FORWARD)] * 2 + [int(Phase.UPDATE)], dtype=np.int8)
    graph = replace(graph_of(("random", ()), ("matmul", (0,)), ("matmul", (0,))), phases=phases)
    assert [life[3] for life in lives_of(graph)] == [
        TensorRole.ACTIVATION, TensorRole.TEMPORARY, TensorRole.TEMPORARY,
    ]  # fmt: skip


def test_constants_and_the_batch_are_kept_from_step_to_step() -> None:
    """They exist before the step; shapes and states of generators are on the host."""
    graph = graph_of(("constant", ()), ("placeholder", ()), ("shape_of", (1,)), ("matmul", (0, 1)))
    whole = (NBYTES, -1, 4, TensorRole.INPUT)
    assert lives_of(graph) == [whole, whole, (NBYTES, 3, 3, TensorRole.TEMPORARY)]


def test_a_batch_that_no_op_makes_is_counted_once_by_shape() -> None:
    """Two ops read (8, 64) and one (4, 64); parameters, whole numbers and nothing count not."""
    graph = graph_of(*[("matmul", ())] * 4)
    half = Tensor((4, 64), FLOAT)
    inputs = [
        (ROW, Tensor((2, 2), FLOAT, is_parameter=True)), (ROW, Tensor((8, 64), INT32)),
        (half, Tensor((0, 64), FLOAT)), (),
    ]  # fmt: skip
    signatures = tuple(
        replace(op, inputs=own) for op, own in zip(graph.signatures, inputs, strict=True)
    )
    lives = lives_of(replace(graph, signatures=signatures))
    batch = [(nbytes, -1, 4, TensorRole.INPUT) for nbytes in (NBYTES, NBYTES // 2)]
    assert lives[:2] == batch and len(lives) == 2 + 4
    fed = graph_of(("random", ()), ("matmul", (0,)))  # what an op gives is no batch
    assert [life[3] for life in lives_of(fed)] == [TensorRole.TEMPORARY] * 2


def test_a_smaller_input_is_not_written_into() -> None:
    """Half of what the result needs; nor is a larger one."""
    graph = graph_of(("random", ()), ("relu", (0,)))
    for columns in (32, 128):
        first = replace(graph.signatures[0], outputs=(Tensor((8, columns), FLOAT),))
        other = replace(graph, signatures=(first, graph.signatures[1]))
        assert [life[:2] for life in lives_of(other)] == [(32 * columns, 0), (NBYTES, 1)]


def test_kept_tensors_are_not_written_into() -> None:
    """A constant stays as it is; of two inputs the first that is free is taken over."""
    graph = graph_of(("constant", ()), ("relu", (0,)))
    assert lives_of(graph)[1] == (NBYTES, 1, 1, TensorRole.TEMPORARY)
    graph = graph_of(("random", ()), ("random", ()), ("add", (0, 1)), ("matmul", (2, 0)))
    assert lives_of(graph)[:2] == [
        (NBYTES, 0, 3, TensorRole.TEMPORARY), (NBYTES, 1, 3, TensorRole.TEMPORARY),
    ]  # fmt: skip


def test_names_that_are_read_hold_what_they_name() -> None:
    """`IdentityN` whose results somebody reads keeps the first of them."""
    graph = graph_of(("matmul", ()), ("matmul", ()), ("identity_n", (0, 1)), ("matmul", (2,)))
    assert [life[:3] for life in lives_of(graph)] == [
        (NBYTES, 0, 3), (NBYTES, 1, 2), (NBYTES, 3, 3),
    ]  # fmt: skip


def test_a_list_is_kept_until_the_last_op_that_reads_a_list() -> None:
    """Without turns it has its tensor once; a handle of a list takes nothing."""
    graph = graph_of(
        ("random", ()), ("list_write", (0,)), ("matmul", (0,)), ("list_gradient", (1,)),
        ("matmul", (3,)),
    )  # fmt: skip
    assert (NBYTES, 1, 3, TensorRole.TEMPORARY) in lives_of(graph)
    never_read = graph_of(("random", ()), ("list_write", (0,)), ("matmul", (0,)))
    assert (NBYTES, 1, 2, TensorRole.TEMPORARY) in lives_of(never_read)
    for elements, is_kept in ((16, False), (17, True)):
        handle = Tensor((elements,), FLOAT)
        signatures = list(graph.signatures)
        signatures[1] = replace(signatures[1], inputs=(handle, Tensor((900,), INT32)))
        sizes = [life[:2] for life in lives_of(replace(graph, signatures=tuple(signatures)))]
        assert ((4 * elements, 1) in sizes) is is_kept


def test_a_loop_keeps_only_tensors_of_the_written_size() -> None:
    """Of two inputs of a write, that of its size has as many turns as the loop."""
    plain = graph_of(
        ("random", ()), ("matmul", (0,)), ("matmul", (0,)), ("list_write", (1, 2)),
        ("list_read", (3,)),
    )  # fmt: skip
    signatures = list(plain.signatures)
    signatures[2] = replace(signatures[2], outputs=(Tensor((2, 2), FLOAT),))
    loop = replace(plain, signatures=tuple(signatures), executions=np.array([1, 5, 7, 7, 1]))
    lives = [life[:3] for life in lives_of(loop)]
    assert (5 * NBYTES, 1, 4) in lives and (16, 2, 3) in lives


def test_nodes_that_no_step_runs_are_left_out_with_their_parameters() -> None:
    """Of an update and what it reads; numbers of nodes move along."""
    graph = graph_of(
        ("random", ()), ("matmul", (0,)), ("random", ()), ("update_adam", (2,)), ("matmul", (2,))
    )
    table = replace(
        table_of(((0, 3), (1, 1))),
        readers=np.array([(0, 2), (1, 1), (0, 3)], dtype=np.int32),
    )
    phases = np.array([0, 0, 0, 2, 0], dtype=np.int8)
    ordered = with_lifetimes(replace(graph, parameters=table, phases=phases))
    assert ordered.names == ("n2", "n3")
    assert ordered.op_types == ("random", "update_adam")
    assert ordered.edges.tolist() == [[0, 1]] and ordered.is_control.tolist() == [False]
    assert ordered.parameters.readers.tolist() == [[0, 0], [0, 1]]
    assert ordered.parameters.gradients.tolist() == [[0, 1]]
    assert ordered.phases.tolist() == [0, 2]
    assert len(ordered.tensor_bytes) == len(ordered.tensor_elements) == 2


def test_control_edges_order_and_hold_nothing() -> None:
    """The second op waits for the first, whose tensor it does not read."""
    graph = replace(
        graph_of(("random", ()), ("matmul", (0,)), ("matmul", (1,))),
        is_control=np.array([False, True]),
    )
    ordered = with_lifetimes(graph)
    assert ordered.names == ("n0", "n1", "n2")
    batch, *lives = [life[:3] for life in lives_of(graph)]
    assert batch == (NBYTES, -1, 3)  # what the last op reads in place of it
    assert lives == [
        (NBYTES, 0, 1), (NBYTES, 1, 1), (NBYTES, 2, 2),
    ]  # fmt: skip


def test_an_empty_graph_and_other_frameworks_are_left_as_they_are() -> None:
    empty = graph_of()
    assert with_lifetimes(empty) is empty
    onnx = replace(graph_of(("random", ())), framework="onnx")
    assert with_lifetimes(onnx) is onnx
