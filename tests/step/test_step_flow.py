"""What flows where in a step: sources, parameters that nodes read, gradients that they hand on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph, Traffic
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import OptimizerUpdate, ParameterTable, Phase, TensorLifetimes
from driple.step.step_flow import StepFlow, changed_graph
from tests.step.layered import FLOAT, HALF, layered

WEIGHT, ROWS = (3, 4), (6, 4)


def tensor(shape: tuple[int, ...], dtype: int = FLOAT) -> Tensor:
    return Tensor(shape, dtype)


def cast_step() -> OpGraph:
    """A weight is cast and turned, multiplied twice; its gradient is made, cast and added up.

    0 cast of the weight    1 transpose of 0    2 product with 1    3 gradient, of 2 and 0
    4 cast of 3             5 sum of 4 with itself
    """
    weight, half = tensor(WEIGHT), tensor(WEIGHT, HALF)
    turned, rows = tensor((4, 3), HALF), tensor(ROWS, HALF)
    ops = (
        OpSignature("cast", (weight,), (half,)),
        OpSignature("transpose", (half,), (turned,)),
        OpSignature("matmul", (rows, turned), (tensor((6, 3), HALF),)),
        OpSignature("matmul", (tensor((3, 6), HALF), rows), (half,)),
        OpSignature("cast", (half,), (weight,)),
        OpSignature("accumulate_gradient", (weight, weight), (weight,)),
    )
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    size = len(ops)
    return OpGraph(
        names=tuple("abcdef"),
        op_types=("x",) * size,
        devices=("",) * size,
        edges=np.array(edges, dtype=np.int32),
        is_control=np.array([False, False, False, False, False]),
        tensor_elements=np.array([op.outputs[0].elements for op in ops], dtype=np.int64),
        tensor_bytes=np.array([op.outputs[0].nbytes for op in ops], dtype=np.int64),
        signatures=ops,
        signature_of=np.arange(size, dtype=np.int32),
        executions=np.ones(size, dtype=np.int64),
        phases=np.array([Phase.FORWARD] * 3 + [Phase.BACKWARD] * 3, dtype=np.int8),
        parameters=ParameterTable(
            names=("layer.weight",),
            elements=np.array([12]),
            nbytes=np.array([48]),
            is_trained=np.array([True]),
            readers=np.array([[0, 0]], dtype=np.int32),
            gradients=np.array([[0, 5]], dtype=np.int32),
        ),
    )


def test_a_weight_is_read_through_casts_and_not_through_products() -> None:
    flow = StepFlow(cast_step(), "x")
    assert [flow.only_weight(node) for node in range(6)] == [0, None, None, None, None, None]
    assert flow.read(0) == [0]
    assert flow.read(1) == [0]
    assert flow.read(2) == []
    direct = layered([3, 4])
    assert [StepFlow(direct, "x").only_weight(node) for node in (0, 1)] == [None, None]
    assert StepFlow(direct, "x").read(0) == [0]


def test_rows_of_a_table_and_parts_of_a_weight_are_no_weight() -> None:
    graph = cast_step()
    for op in (
        OpSignature("embedding", (tensor(WEIGHT),), (tensor(WEIGHT),)),
        OpSignature("cast", (tensor(WEIGHT),), (tensor((2, 4)),)),
        OpSignature("split", (tensor(WEIGHT),), (tensor(WEIGHT), tensor(WEIGHT))),
    ):
        changed = replace(graph, signatures=(op, *graph.signatures[1:]))
        assert StepFlow(changed, "x").only_weight(0) is None
    two = replace(
        graph,
        parameters=replace(graph.parameters, readers=np.array([[0, 0], [0, 0]], dtype=np.int32)),
    )
    assert StepFlow(two, "x").only_weight(0) is None


def test_control_edges_carry_nothing() -> None:
    graph = cast_step()
    assert StepFlow(graph, "x").sources == [[], [0], [1], [2], [3], [4]]
    control = replace(graph, is_control=np.array([True, False, True, False, False]))
    assert StepFlow(control, "x").sources == [[], [], [1], [], [3], [4]]


def test_a_gradient_is_followed_back_to_the_op_that_makes_it() -> None:
    """Through the sum and the cast, but not through the product, nor into the weight itself."""
    flow = StepFlow(cast_step(), "x")
    assert flow.gradient_of == {5: {12}, 4: {12}, 3: {12}}
    joined = replace(
        cast_step(),
        edges=np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)], dtype=np.int32),
        is_control=np.zeros(6, dtype=np.bool_),
    )
    assert StepFlow(joined, "x").gradient_of == {5: {12}, 4: {12}, 3: {12}}


def test_all_parts_of_a_sum_make_the_gradient() -> None:
    """Node 5 adds up 2 of the same size, 3, and 4, which hands on 3: each is found once."""
    graph = cast_step()
    whole = tensor(WEIGHT)
    ops = list(graph.signatures)
    ops[2] = OpSignature("matmul", (tensor((3, 6)), tensor(ROWS)), (whole,))
    ops[5] = OpSignature("add_n", (whole, whole, whole), (whole,))
    edges = np.array([(0, 1), (2, 5), (3, 5), (3, 4), (4, 5)], dtype=np.int32)
    flow = StepFlow(replace(graph, signatures=tuple(ops), edges=edges), "x")
    assert flow.gradient_of == {node: {12} for node in (2, 3, 4, 5)}


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_stacks_of_matrices_are_experts(rank: int) -> None:
    graph = layered([4, 4, 4], names=["gate.w", "block.experts.w1"])
    stack = Tensor((8, 2, 1, 1)[:rank], FLOAT, is_parameter=True)
    op = OpSignature("batch_matmul", (tensor((8, 3, 2)), stack), (tensor((8, 3, 1)),))
    table = replace(graph.parameters, elements=np.array([16, 16]))
    first, _, *others = graph.signatures
    flow = StepFlow(replace(graph, signatures=(first, op, *others), parameters=table), "x")
    assert flow.experts == ({"block.experts": 8} if rank == 3 else {})
    assert flow.expert_parameters.tolist() == [False, rank == 3]
    plain = replace(op, kind="matmul")
    other = StepFlow(replace(graph, signatures=(first, plain, *others), parameters=table), "x")
    assert other.experts == {}


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (layered([3, 4], phases=False), "splitting it does not show"),
        (replace(layered([3, 4]), parameters=ParameterTable()), "splitting it does not show"),
        (layered([3, 4, 5], frozen=[1]), "adapters beside frozen matrices"),
    ],
)
def test_graphs_that_do_not_show_their_step_are_refused(graph: OpGraph, words: str) -> None:
    match = words if "adapters" in words else "does not show its parameters and phases"
    with pytest.raises(GraphError, match=match) as caught:
        StepFlow(graph, "splitting")
    assert str(caught.value).startswith("splitting and ")
    assert "use ddp or fsdp" in str(caught.value)


def test_a_changed_graph_has_shares_of_what_it_had() -> None:
    """Half of what node 0 makes, a third of parameter 1, and half of the first gradient."""
    graph = replace(
        layered([3, 4, 5], rows=3),
        lifetimes=TensorLifetimes(nbytes=np.array([1]), made_by=np.array([0])),
        update=OptimizerUpdate(state_bytes=1000, moved_bytes=3000, temporary_bytes=500),
    )
    part = OpSignature("matmul", (tensor((3, 2)),), (tensor((3, 2)),))
    after = changed_graph(
        graph, {0: part, 3: part}, np.array([0.5, 1, 1, 1]), np.array([1, 1 / 3]),
        np.array([0.5, 1.0]),
    )  # fmt: skip
    assert after.tensor_elements.tolist() == [6, 15, 20, 12]
    assert after.tensor_bytes.tolist() == [24, 60, 80, 48]
    assert after.parameters.elements.tolist() == [12, 7]  # 20 / 3, rounded up
    assert after.parameters.nbytes.tolist() == [48, 27]
    assert after.traffic.received_bytes.tolist() == [48, 27]
    assert after.traffic.sent_bytes.tolist() == [24, 80]
    kept = (48 + 80 / 3) / 128
    assert (after.update.state_bytes, after.update.moved_bytes, after.update.temporary_bytes) == (
        round(1000 * kept), round(3000 * kept), round(500 * kept))  # fmt: skip
    assert len(after.lifetimes.nbytes) == 0
    ops = [after.signatures[i] for i in after.signature_of.tolist()]
    assert ops == [part, graph.signatures[1], graph.signatures[2], part]
    assert len(after.signatures) == 3  # each once


def test_traffic_of_other_tensors_than_parameters_stays() -> None:
    graph = replace(layered([3, 4]), traffic=Traffic(received_bytes=np.array([5, 6, 7])))
    changed = changed_graph(graph, {}, np.ones(2), np.array([0.5]), np.zeros(0))
    assert changed.traffic.received_bytes.tolist() == [5, 6, 7]
    assert changed.parameters.nbytes.tolist() == [24]
