"""Expert parallelism by hand: FLOPs, all-to-alls and parameters of one device."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.step.expert_shard import expert_shard
from driple.step.plan import execution_order
from tests.step.mixtures import (
    CHOSEN,
    EXPERTS,
    INNER,
    LAYERS,
    SAMPLES,
    TOKENS,
    TYPE_BYTES,
    WIDTH,
    dense,
    mixture,
    shared_mixture,
)

SENT = SAMPLES * TOKENS * CHOSEN * WIDTH * TYPE_BYTES  # bytes that all tokens' experts read


def grouped_flops(graph: OpGraph) -> float:
    """FLOPs of products of experts."""
    kinds = [graph.signatures[i].kind for i in graph.signature_of.tolist()]
    is_grouped = np.array([kind == "batch_matmul" for kind in kinds])
    inside = np.array(["experts" in graph.modules[i] for i in graph.module_of.tolist()])
    return float(cost_of_graph(graph).flops[is_grouped & inside].sum())


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_products_of_the_experts_of_a_device(degree: int) -> None:
    """2 FLOPs x tokens x k x 3 matrices x width x inner, forward and twice backward, as before.

    A device has fewer experts, and as many more rows for each of them.
    """
    graph = mixture()
    shard = expert_shard(graph, degree, execution_order(graph))
    wanted = LAYERS * 3 * 2 * (SAMPLES * TOKENS * CHOSEN) * (2 + 1) * WIDTH * INNER
    assert grouped_flops(graph) == grouped_flops(shard.graph) == wanted
    stacks = {
        op.inputs[0].shape[:2]
        for op in shard.graph.signatures
        if op.kind == "batch_matmul" and op.inputs[0].shape and op.inputs[0].shape[2] == WIDTH
        and op.inputs[0].shape[0] == EXPERTS // degree
    }  # fmt: skip
    assert (EXPERTS // degree, degree * SAMPLES * TOKENS * CHOSEN // EXPERTS) in stacks


@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_two_all_to_alls_forward_and_two_backward(checkpointing: str) -> None:
    """Each of top-k x tokens x width x bytes; recomputed layers exchange tokens once more."""
    graph = mixture(checkpointing=checkpointing)
    shard = expert_shard(graph, 4, execution_order(graph))
    passes = 3 if checkpointing == "full" else 2
    assert [one.nbytes for one in shard.exchanges] == [SENT] * (2 * passes * LAYERS)
    assert {(one.group, one.kind) for one in shard.exchanges} == {("expert", "all_to_all")}


@pytest.mark.parametrize("degree", [2, 8])
def test_a_device_has_its_experts_and_all_else(degree: int) -> None:
    """Parameters, gradients and states of experts are shared out; routers are whole."""
    graph = mixture()
    shard = expert_shard(graph, degree, execution_order(graph))
    table, own = graph.parameters, shard.graph.parameters
    for name, whole, part in zip(table.names, table.nbytes, own.nbytes, strict=True):
        assert part * (degree if "experts" in name else 1) == whole, name
    assert shard.graph.sent_bytes == own.nbytes.sum()
    experts = LAYERS * EXPERTS * 3 * WIDTH * INNER
    assert table.elements.sum() - own.elements.sum() == experts - experts // degree
    assert shard.graph.update.state_bytes == pytest.approx(
        graph.update.state_bytes * own.nbytes.sum() / table.nbytes.sum(), rel=1e-6
    )


def test_shared_experts_are_whole() -> None:
    """DeepSeek's: only the second layer has experts to share out, beside one that all use."""
    graph = shared_mixture()
    shard = expert_shard(graph, 4, execution_order(graph))
    assert [one.nbytes for one in shard.exchanges] == [SENT] * 4
    kept = [
        name
        for name, whole, part in zip(
            graph.parameters.names, graph.parameters.nbytes, shard.graph.parameters.nbytes,
            strict=True,
        )
        if whole != part
    ]  # fmt: skip
    assert kept == [f"model.layers.1.mlp.experts.{name}" for name in ("gate_up_proj", "down_proj")]


def test_degrees_that_fit_no_experts_are_refused() -> None:
    order = execution_order(mixture())
    with pytest.raises(GraphError, match=r"ep3 does not divide the 8 experts .* ep 2 or 4 does"):
        expert_shard(mixture(), 3, order)
    with pytest.raises(GraphError, match=r"has none .*; leave ep out"):
        expert_shard(dense(), 2, execution_order(dense()))
