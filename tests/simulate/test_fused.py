"""Fused groups: one kernel, which moves what comes from outside and what is read outside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.torch.step import StepOptions, traced_step
from driple.simulate.calibration import shipped_calibration
from driple.simulate.fused import FusedOps, fused_bytes, fused_times
from driple.simulate.prepared_job import PreparedJob
from driple.step.plan import OpTimes

SIDE = 1024


class Chain(nn.Module):
    """A product, and a chain of four element-wise ops whose gradients need two results of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(SIDE, SIDE, bias=False)
        self.second = nn.Linear(SIDE, SIDE, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = ((self.first(inputs) + 1.0) * 0.5 - inputs).tanh()
        return self.second(hidden).sum()


def graph_of(model: nn.Module, *, compiled: bool) -> OpGraph:
    with torch.device("meta"):
        inputs = torch.zeros(SIDE, SIDE)
    return traced_step(model.to("meta"), inputs, None, StepOptions(compiled=compiled))


def test_a_chain_is_one_kernel_that_reads_and_writes_once() -> None:
    """add, mul, sub and tanh read the product and the inputs, and write the last result alone."""
    graph = graph_of(Chain(), compiled=True)
    kinds = list(graph.kinds)
    first = kinds.index("add")
    assert kinds[first : first + 4] == ["add", "mul", "sub", "tanh"]
    groups = graph.fusion_of[first : first + 4].tolist()
    assert len(set(groups)) == 1
    assert groups[0] >= 0
    moved = fused_bytes(graph, cost_of_graph(graph))[first : first + 4]
    assert moved.sum() == 3 * 4 * SIDE * SIDE
    plain = cost_of_graph(graph)
    own = (plain.bytes_read + plain.bytes_written)[first : first + 4]
    assert own.sum() == 9 * 4 * SIDE * SIDE


def test_products_are_never_fused_and_forward_never_with_backward() -> None:
    graph = graph_of(Chain(), compiled=True)
    of = {}
    for kind, group, phase in zip(
        graph.kinds, graph.fusion_of.tolist(), graph.phases.tolist(), strict=True
    ):
        if kind == "matmul":
            assert group == -1
        if group >= 0:
            assert of.setdefault(group, phase) == phase
    assert of


def test_groups_can_run_one_after_another() -> None:
    """With each group as one node, the graph has no circle."""
    model = nn.Sequential(
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
    ).to("meta")
    inputs = torch.zeros(2, 16, 64, device="meta")
    options = StepOptions(compiled=True, precision="amp-bf16")
    graph = traced_step(model, inputs, lambda outputs: outputs.sum(), options)
    assert (graph.fusion_of >= 0).sum() > 40
    node_of = [
        ("group", group) if group >= 0 else ("node", node)
        for node, group in enumerate(graph.fusion_of.tolist())
    ]
    waits: dict[tuple[str, int], set[tuple[str, int]]] = {one: set() for one in node_of}
    for source, target in graph.edges.tolist():
        if node_of[source] != node_of[target]:
            waits[node_of[target]].add(node_of[source])
    done: set[tuple[str, int]] = set()
    while len(done) < len(waits):
        ready = {one for one, sources in waits.items() if one not in done and sources <= done}
        assert ready
        done |= ready


def test_compiling_saves_time_and_hardly_changes_products() -> None:
    """A compiler fuses ops; products keep their kernels, whose times the fit may move a little."""
    device = shipped_calibration().device("A100")
    plain, compiled = (graph_of(Chain(), compiled=compiled) for compiled in (False, True))
    times = [PreparedJob(graph).times(device) for graph in (plain, compiled)]
    products = [kind == "matmul" for kind in plain.kinds]
    of_products = [one.duration_s[products].sum() for one in times]
    assert of_products[1] == pytest.approx(of_products[0], rel=0.15)
    rest = [float(one.duration_s.sum() - one.duration_s[products].sum()) for one in times]
    assert rest[1] < 0.75 * rest[0]
    assert (times[1].busy_s <= times[1].duration_s + 1e-15).all()


def test_a_kernel_of_several_ops_is_started_with_the_first_of_them() -> None:
    """Ops outside of groups start their own and move all their bytes."""
    graph = graph_of(Chain(), compiled=True)
    cost = cost_of_graph(graph)
    fused = FusedOps.of(graph, cost)
    assert fused is not None
    groups = graph.fusion_of.tolist()
    seen: set[int] = set()
    for node, group in enumerate(groups):
        assert fused.starts[node] == (group < 0 or group not in seen)
        seen.add(group)
    own = cost.bytes_read + cost.bytes_written
    inside = (graph.fusion_of >= 0) & (own > 0)
    moved = fused_bytes(graph, cost)
    assert (fused.bytes_share[inside] * own[inside]).tolist() == pytest.approx(
        np.minimum(moved, own)[inside].tolist()
    )
    assert (fused.bytes_share[~inside] == 1.0).all()
    assert (fused.bytes_share[inside] < 1.0).any()
    # The chain of nine moves of a tensor, of which three are left.
    first = list(graph.kinds).index("add")
    left = (fused.bytes_share * own)[first : first + 4].sum()
    assert left == pytest.approx(3 * 4 * SIDE * SIDE)


def test_without_groups_nothing_is_fused() -> None:
    graph = graph_of(Chain(), compiled=False)
    assert FusedOps.of(graph, cost_of_graph(graph)) is None


def test_fused_ops_take_their_share_of_bytes_and_one_start() -> None:
    """Kernels of 2 and 1 s with starts of 1 s each: half of the first's bytes are left."""
    times = OpTimes(
        duration_s=np.array([3.0, 2.0]), busy_s=np.array([2.0, 1.0]), memory_s=np.array([1.0, 0.5])
    )
    fused = FusedOps(bytes_share=np.array([0.5, 1.0]), starts=np.array([True, False]))
    changed = fused_times(times, fused)
    assert changed.duration_s.tolist() == [2.0, 1.0]
    assert changed.busy_s.tolist() == [1.0, 1.0]
    assert changed.memory_s.tolist() == [0.5, 0.5]
