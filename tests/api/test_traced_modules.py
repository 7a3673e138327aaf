"""Modules of a trace find those of a graph by the order of calls, or by their paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driple.api.module_tree import ModuleNode
from driple.api.traced_modules import match_modules, predicted_seconds


def graph_of(ops: list[tuple[str, str]]) -> Any:
    """A graph with these ops: module and kind, in order."""
    modules = tuple(dict.fromkeys(module for module, _ in ops))
    kinds = tuple(dict.fromkeys(kind for _, kind in ops))
    return SimpleNamespace(
        modules=modules,
        module_of=np.array([modules.index(module) for module, _ in ops]),
        signatures=tuple(SimpleNamespace(kind=kind) for kind in kinds),
        signature_of=np.array([kinds.index(kind) for _, kind in ops]),
    )


BLOCKS = [("emb", "embedding"), ("blocks.0.ln", "layer_norm"), ("blocks.0.fc", "matmul"),
          ("blocks.1.ln", "layer_norm"), ("blocks.1.fc", "matmul"), ("head", "matmul")]  # fmt: skip
CALLED = [("Embedding_0",), ("Block_0", "LayerNorm_0"), ("Block_0", "Linear_0"),
          ("Block_1", "LayerNorm_1"), ("Block_1", "Linear_1"), ("Linear_2",)]  # fmt: skip


@pytest.mark.parametrize("around", [("T_0",), ("DistributedDataParallel_0", "T_0")])
def test_lists_of_modules_are_not_called(around: tuple[str, ...]) -> None:
    traced = {(*around, *path): float(i + 1) for i, path in enumerate(CALLED)}
    matches = match_modules(graph_of(BLOCKS), {(): 9.0, **traced, ("CrossEntropyLoss_0",): 1.0})
    assert matches == {
        "": 21, "emb": 1, "blocks.0": 5, "blocks.0.ln": 2, "blocks.0.fc": 3, "blocks.1": 9,
        "blocks.1.ln": 4, "blocks.1.fc": 5, "head": 6,
    }  # fmt: skip


def test_modules_without_ops_are_skipped() -> None:
    graph = graph_of([("conv", "conv"), ("fc", "matmul")])
    names = ("Conv2d_0", "Dropout_0", "Flatten_0", "Identity_0", "Linear_0")
    matches = match_modules(graph, {("Net_0", name): float(i + 1) for i, name in enumerate(names)})
    assert matches == {"": 15, "conv": 1, "fc": 5}


def test_another_order_or_class_is_no_match() -> None:
    graph = graph_of([("conv", "conv"), ("fc", "matmul")])
    for names in (("Linear_0", "Conv2d_0"), ("Conv2d_0",), ("Conv2d_0", "Linear_0", "Linear_1")):
        assert match_modules(graph, {("Net_0", name): 1.0 for name in names}) == {}


def test_annotations_are_paths() -> None:
    """They win over classes, and a path counts what is in it."""
    graph = graph_of(BLOCKS)
    traced = {("T_0",): 1.0, ("T_0", "blocks.0"): 2.0, ("T_0", "blocks.0", "blocks.0.fc"): 3.0}
    assert match_modules(graph, traced) == {"blocks.0": 5, "blocks.0.fc": 3}


def test_a_joined_chain_has_the_seconds_of_each_of_its_modules() -> None:
    leaf = ModuleNode(name="b.c", path="a.b.c", time_s=2.0)
    root = ModuleNode(name="", path="", time_s=3.0, children=[
        ModuleNode(name="a", path="a", time_s=2.5, children=[leaf])
    ])  # fmt: skip
    assert predicted_seconds(root, ".") == {"": 3.0, "a": 2.5, "a.b": 2.0, "a.b.c": 2.0}
