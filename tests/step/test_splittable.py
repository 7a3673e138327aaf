"""What of a model can be shared out: heads, layers and experts that any degree must divide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.step.splittable import Splittable, splittable
from tests.step.layered import layered


def with_attention(*heads: int | None) -> OpGraph:
    """A step of two layers with attention of so many heads each; None of unknown shape."""
    graph = layered([4, 4, 4])
    some = tuple(
        OpSignature("attention", (Tensor(None if count is None else (2, count, 5, 6), 1),), ())
        for count in heads
    )
    return replace(graph, signatures=(*graph.signatures, *some))


def test_layers_are_numbered_blocks() -> None:
    names = ["embed", "h.0.a", "h.0.b", "h.1.a", "tail.3.x"]
    assert splittable(layered([2] * 6, names=names)) == Splittable(layers=3)
    assert splittable(layered([2] * 3, names=["a", "b"])) == Splittable()


@pytest.mark.parametrize(
    ("heads", "common"), [((12,), 12), ((12, 8), 4), ((12, 8, 7), 1), ((None, 6), 6), ((), 0)]
)
def test_a_degree_must_divide_the_heads_of_every_attention(
    heads: tuple[int | None, ...], common: int
) -> None:
    assert splittable(with_attention(*heads)).heads == common
    gradient = with_attention(*heads)
    kinds = [replace(op, kind="attention_gradient") if op.kind == "attention" else op
             for op in gradient.signatures]  # fmt: skip
    assert splittable(replace(gradient, signatures=tuple(kinds))).heads == common


def experts(*counts: int) -> OpGraph:
    """A step whose layers are stacks of experts, of some number each."""
    graph = layered([4] * (len(counts) + 1), names=[f"h.{i}.mlp.w" for i in range(len(counts))])
    sizes = np.array([count * 16 for count in counts])
    table = replace(graph.parameters, elements=sizes, nbytes=4 * sizes)
    ops = list(graph.signatures)
    for i, count in enumerate(counts):
        stack = Tensor((count, 4, 4), 1, is_parameter=True)
        rows = Tensor((count, 3, 4), 1)
        ops[i] = OpSignature("batch_matmul", (rows, stack), (rows,))
    return replace(graph, signatures=tuple(ops), parameters=table)


def test_a_degree_must_divide_the_experts_of_every_layer() -> None:
    assert splittable(experts(8)).experts == 8
    assert splittable(experts(8, 12)).experts == 4
    assert splittable(experts(8, 12)).layers == 2


def test_nothing_is_shared_out_of_graphs_that_do_not_show_it() -> None:
    """Without phases or gradients, or with adapters beside frozen matrices."""
    shown = layered([2] * 3)
    assert splittable(shown).layers == 2
    bare = replace(shown, parameters=replace(shown.parameters, gradients=np.zeros((0, 2), int)))
    for graph in (layered([2] * 3, phases=False), layered([2] * 3, frozen=[0]), bare):
        assert splittable(graph) == Splittable()
