"""Names in traces and kinds in graphs meet in the same groups."""

from __future__ import annotations

import pytest

from driple.graph.opkind import KINDS
from driple.measure.kineto.kinds import group_of_kind, group_of_op


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::conv2d", "depthwise_conv"),
        ("aten::convolution_backward", "conv_filter_gradient"),
        ("aten::convolution_backward", "depthwise_conv_input_gradient"),
        ("aten::addmm", "matmul"),
        ("aten::bmm", "batch_matmul"),
        ("aten::relu_", "relu"),
        ("aten::_to_copy", "cast"),
        ("aten::native_batch_norm", "batch_norm"),
        ("aten::native_layer_norm_backward", "layer_norm_gradient"),
        ("aten::_scaled_dot_product_flash_attention", "attention"),
        ("nccl:all_reduce", "all_reduce"),
        ("aten::_fused_adamw_", "update_adamw"),
    ],
)
def test_an_op_and_its_kind_are_one_group(name: str, kind: str) -> None:
    assert group_of_op(name.replace("nccl:", "nccl::")) == group_of_kind(kind)


def test_every_kind_has_a_group_and_composites_have_none() -> None:
    assert all(group_of_kind(kind) for kind in KINDS)
    for name in ("aten::linear", "aten::matmul", "aten::view", "ProfilerStep#3", ""):
        assert group_of_op(name) is None
