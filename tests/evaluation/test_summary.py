"""Whole-graph summaries: by hand, and whatever the order of the nodes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from driple.errors import DatasetError
from driple.evaluation import summary
from driple.evaluation.summary import SUMMARY_NAMES, Summaries, summary_of
from driple.graph.opgraph import OpGraph, RemoteOps
from driple.graph.opkind import FAMILIES
from driple.graph.signature import OpSignature, Tensor
from tests.dataset.examples import chain_graph, example, grouped_dataset

FLOAT = 1  # of TensorFlow's DataType


def summed(graph: OpGraph) -> dict[str, float]:
    """The amounts by name; flags as they are."""
    values = summary_of(graph)
    assert values.shape == (len(SUMMARY_NAMES),)
    named = dict(zip(SUMMARY_NAMES, values.tolist(), strict=True))
    return {
        name: value if name.startswith("is_") else float(np.expm1(value))
        for name, value in named.items()
    }


def product_graph() -> OpGraph:
    """A product [8, 4] x [4, 3] that runs twice, then a softmax loss over its 8 rows."""
    product = OpSignature.of_op_type(
        "MatMul",
        (Tensor((8, 4), FLOAT), Tensor((4, 3), FLOAT, is_parameter=True)),
        (Tensor((8, 3), FLOAT),),
    )
    loss = OpSignature.of_op_type(
        "SparseSoftmaxCrossEntropyWithLogits",
        (Tensor((8, 3), FLOAT), Tensor((8,), 9)),
        (Tensor((8,), FLOAT), Tensor((8, 3), FLOAT)),
    )
    return replace(
        chain_graph(2),
        op_types=("MatMul", loss.stored_name),
        signatures=(product, loss),
        signature_of=np.array([0, 1], dtype=np.int32),
        executions=np.array([2, 1], dtype=np.int64),
        remote=(
            RemoteOps.of_op_type("ApplyRMSProp", num_nodes=3, tensor_bytes=70),
            RemoteOps.of_op_type("ResourceConditionalAccumulator", num_nodes=2, tensor_bytes=30),
        ),
    )


def test_a_product_and_its_loss_by_hand() -> None:
    """2 m n k FLOPs for each of two runs; rows of the loss; what is remote tells the rest."""
    sums = summed(product_graph())
    assert sums["flops_matmul"] == pytest.approx(2 * 2 * 8 * 3 * 4)
    assert sums["executions_matmul"] == pytest.approx(2)
    assert sums["memory_bytes_matmul"] == pytest.approx(2 * 4 * (8 * 4 + 4 * 3 + 8 * 3))
    assert sums["parameters"] == pytest.approx(4 * 3)
    assert sums["loss_rows"] == pytest.approx(8)
    assert (sums["nodes"], sums["executions"]) == pytest.approx((2, 3))
    assert (sums["received_bytes"], sums["received_tensors"]) == pytest.approx((13, 1))
    assert (sums["sent_bytes"], sums["sent_tensors"]) == pytest.approx((22, 1))
    assert (sums["remote_nodes"], sums["remote_bytes"]) == pytest.approx((5, 100))
    flags = {name: value for name, value in sums.items() if name.startswith("is_")}
    assert {name for name, value in flags.items() if value} == {"is_sync", "is_rmsprop"}


def test_another_optimizer_without_accumulators_is_asynchronous() -> None:
    """The flags follow the remote ops, and no other number does but their count."""
    graph = product_graph()
    momentum = RemoteOps.of_op_type("ResourceSparseApplyMomentum", num_nodes=5, tensor_bytes=100)
    other = replace(graph, remote=(momentum,))
    flags = {name for name, value in summed(other).items() if name.startswith("is_") and value}
    assert flags == {"is_momentum"}
    same = [name for name in SUMMARY_NAMES if not name.startswith("is_")]
    before, after = summed(graph), summed(other)
    assert [before[name] for name in same] == pytest.approx([after[name] for name in same])


def test_a_graph_without_a_softmax_loss_has_no_rows() -> None:
    """Nothing is made up for other losses."""
    assert summed(chain_graph(8))["loss_rows"] == 0


def test_families_sum_to_the_totals() -> None:
    """Every op is of exactly one family."""
    sums = summed(chain_graph(23))
    for what in ("flops", "memory_bytes", "executions"):
        assert sum(sums[f"{what}_{family}"] for family in FAMILIES) == pytest.approx(sums[what])


def test_the_order_of_nodes_does_not_count() -> None:
    """A graph read in another order is the same graph."""
    graph = chain_graph(23, branch=True)
    order = np.random.default_rng(0).permutation(23)
    place = np.argsort(order).astype(np.int32)
    turned = replace(
        graph,
        names=tuple(graph.names[i] for i in order),
        op_types=tuple(graph.op_types[i] for i in order),
        edges=place[graph.edges],
        tensor_elements=graph.tensor_elements[order],
        tensor_bytes=graph.tensor_bytes[order],
        signature_of=graph.signature_of[order],
        executions=graph.executions[order],
    )
    assert summary_of(turned) == pytest.approx(summary_of(graph))


def test_a_shared_graph_is_summed_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are in the order of the examples."""
    first, two = example("a", num_nodes=8), example("b", num_nodes=12)
    seen: list[OpGraph] = []

    def watched(graph: OpGraph) -> np.ndarray:
        seen.append(graph)
        return summary_of(graph)

    monkeypatch.setattr(summary, "summary_of", watched)
    summaries = Summaries()
    rows = summaries.of([first, two, replace(first, workload="c")])
    summaries.of([two])
    assert [item is first.graph for item in seen] == [True, False]
    assert np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])


def test_a_copy_for_another_process_is_empty() -> None:
    """There another graph may have the id of one that is known here."""
    summaries, job = Summaries(), example("a", num_nodes=8)
    rows = summaries.of([job])
    copy = pickle.loads(pickle.dumps(summaries))  # noqa: S301  # written in this line
    assert copy._made == {}
    assert np.array_equal(copy.of([job]), rows)


def test_groups_alone_are_refused() -> None:
    """They tell no FLOPs."""
    with pytest.raises(DatasetError, match="only the groups of its graph are known"):
        Summaries().of(grouped_dataset().examples)
