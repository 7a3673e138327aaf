"""TensorFlow's op types as kinds: variants collapse, unknown names keep what their parts say."""

from __future__ import annotations

import pytest

from driple.graph.opkind import KINDS
from driple.graph.tf.op_kinds import _TABLE, kind_of_op_type, op_type_of_kind


def test_the_table_names_kinds_of_the_vocabulary_and_each_op_type_once() -> None:
    op_types = [op_type for names in _TABLE.values() for op_type in names]
    assert set(_TABLE) <= KINDS
    assert len(op_types) == len(set(op_types)) > 700


@pytest.mark.parametrize(
    ("op_types", "kind"),
    [
        (("Conv2D", "_FusedConv2D", "Conv3D"), "conv"),
        (("FusedBatchNorm", "FusedBatchNormV3", "_FusedBatchNormEx"), "batch_norm"),
        (("ApplyAdam", "ResourceApplyAdam"), "update_adam"),
        (("SparseApplyMomentum", "ResourceSparseApplyKerasMomentum"), "sparse_update_momentum"),
        (("Add", "AddV2"), "add"),
        (("SelectV2",), "where"),
        (("Where",), "nonzero"),
    ],
)
def test_variants_of_an_op_are_one_kind(op_types: tuple[str, ...], kind: str) -> None:
    assert {kind_of_op_type(op_type) for op_type in op_types} == {kind}


@pytest.mark.parametrize(
    ("op_type", "kind"),
    [
        ("QuantizedConv2D", "other_convolution"),
        ("_MklLayerNorm", "other_normalisation"),
        ("QuantizedMatMul", "other_matmul"),
        ("ResourceApplyLamb", "update_other"),
        ("HorovodAllgather", "collective"),
        ("TFRecordReaderV2", "host"),
        ("MyOwnKernel", "other"),
    ],
)
def test_an_op_type_in_no_table_is_known_by_a_part_of_its_name(op_type: str, kind: str) -> None:
    assert kind_of_op_type(op_type) == kind


def test_the_way_back_leads_to_the_most_usual_op_type() -> None:
    for kind, op_types in _TABLE.items():
        assert op_type_of_kind(kind) == op_types[0]
        assert kind_of_op_type(op_types[0]) == kind
    assert op_type_of_kind("add") == "AddV2"
    assert op_type_of_kind("attention") is None
