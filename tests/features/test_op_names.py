"""Kinds of ops in TensorFlow's names, which the encoding of op types is made of."""

from __future__ import annotations

from dataclasses import replace

from driple.features.features import unknown_op_types
from driple.features.op_names import _STANDS_FOR, op_type_names, remote_names
from driple.graph.opgraph import RemoteOps
from driple.graph.opkind import KINDS, PRODUCT_FAMILIES, family_of
from driple.graph.tf.op_kinds import kind_of_op_type, op_type_of_kind
from tests.dataset.examples import chain_graph

# Kinds of which nothing is known but their family, and those that only the host runs.
WITHOUT_NAME = {kind for kind in KINDS if kind.startswith("other")} | {
    "collective", "host", "update_other",
}  # fmt: skip


def test_every_kind_has_a_name_of_tensorflow() -> None:
    named = {kind for kind in KINDS if op_type_of_kind(kind) or kind in _STANDS_FOR}
    assert named == KINDS - WITHOUT_NAME


def test_products_stand_for_products_and_updates_for_updates() -> None:
    for kind, op_type in _STANDS_FOR.items():
        stand_in = kind_of_op_type(op_type)
        assert not stand_in.startswith("other")
        same = [family_of(one) in PRODUCT_FAMILIES for one in (kind, stand_in)]
        assert same[0] == same[1], kind
        assert kind.startswith("update_") == stand_in.startswith("update_"), kind


def test_a_graph_of_tensorflow_keeps_its_own_names() -> None:
    graph = chain_graph(8)
    assert op_type_names(graph) == graph.op_types
    assert remote_names(graph) == {"ApplyAdam": 2}


def test_a_graph_of_another_framework_is_named_by_its_kinds() -> None:
    """What has no kind keeps the framework's name and is said to be unknown."""
    chain = chain_graph(4)
    kinds = ("conv", "layer_norm", "gelu", "other")
    graph = replace(
        chain,
        framework="pytorch",
        op_types=("aten::convolution", "aten::native_layer_norm", "aten::gelu", "own::kernel"),
        signatures=tuple(
            replace(op, kind=kind, variant="")
            for op, kind in zip(chain.signatures, kinds, strict=True)
        ),
        remote=(
            RemoteOps(
                op_type="aten::_fused_adamw_", kind="update_adamw", num_nodes=3, tensor_bytes=0
            ),
        ),
    )
    assert op_type_names(graph) == ("Conv2D", "FusedBatchNormV3", "Mul", "own::kernel")
    assert remote_names(graph) == {"ApplyAdam": 3}
    table = dict.fromkeys(("Conv2D", "FusedBatchNormV3", "Mul"), 0.1)
    assert unknown_op_types(graph, table, remote=True) == {"ApplyAdam": 3, "own::kernel": 1}
