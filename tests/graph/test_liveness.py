"""What a step runs: data leads to an update, or something acts on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from driple.graph.liveness import executed_nodes
from driple.graph.opgraph import OpGraph, Traffic
from driple.graph.signature import OpSignature
from driple.graph.torch.step import StepOptions, traced_step
from tests.dataset.examples import chain_graph


def graph_of(
    ops: list[str], edges: list[tuple[int, int]], control: list[tuple[int, int]]
) -> OpGraph:
    """Ops by position; the last one is sent."""
    return replace(
        chain_graph(len(ops)),
        op_types=tuple(ops),
        signatures=tuple(OpSignature.of_op_type(op_type, (), ()) for op_type in ops),
        signature_of=np.arange(len(ops), dtype=np.int32),
        edges=np.array([*edges, *control], dtype=np.int32),
        is_control=np.array([False] * len(edges) + [True] * len(control), dtype=np.bool_),
        traffic=Traffic(
            sent_bytes=np.array([4], dtype=np.int64),
            senders=np.array([len(ops) - 1], dtype=np.int32),
        ),
    )


def test_the_gradient_by_the_images_does_not_run_though_others_wait_for_it() -> None:
    """Conv2D -> both gradients; the group that waits for both lets the filter's leave."""
    ops = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "NoOp", "Identity"]
    graph = graph_of(ops, [(0, 1), (0, 2), (2, 4)], [(1, 3), (2, 3), (3, 4)])
    assert executed_nodes(graph).tolist() == [True, False, True, False, True]


def test_what_acts_runs_with_all_that_it_reads_if_the_step_waits_for_it() -> None:
    ops = ["Sum", "Print", "Sum", "Print", "Identity"]
    graph = graph_of(ops, [(0, 1), (2, 3)], [(1, 4)])
    assert executed_nodes(graph).tolist() == [True, True, False, False, True]


def test_updates_on_the_worker_run_whoever_waits_for_them() -> None:
    ops = ["Mean", "AssignSub", "Square", "Identity"]
    graph = graph_of(ops, [(0, 1)], [(2, 3)])
    assert executed_nodes(graph).tolist() == [True, True, False, True]


def test_a_graph_without_updates_and_traffic_runs_as_a_whole() -> None:
    assert executed_nodes(replace(chain_graph(3), traffic=Traffic())).all()


def test_pytorch_runs_what_nobody_reads() -> None:
    """The count of batches of a batch norm is kept in every step."""
    with torch.device("meta"):
        model, images = (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)),
            torch.zeros(2, 3, 8, 8),
        )
    graph = traced_step(model, images, lambda outputs: outputs.sum(), StepOptions())
    read = set(graph.edges[:, 0].tolist()) | set(graph.traffic.senders.tolist())
    unread = set(range(graph.num_nodes)) - read
    assert "add" in {graph.kinds[node] for node in unread}
    assert executed_nodes(graph).all()
