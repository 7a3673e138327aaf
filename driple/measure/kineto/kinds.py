"""Kinds of op that a trace and a graph both show.

    names of ops around a kernel, the outermost first -> group;  kind of a graph's op -> group

A trace does not show some differences that a graph has, such as that of the two gradients of a
convolution, which one op computes: kinds that differ by these alone are one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.opkind import CONVOLUTION_FAMILIES, family_of
from driple.graph.torch.aten_kinds import KIND_OF

__all__ = ["COLLECTIVE", "COPY_TO_DEVICE", "OTHER", "UPDATE", "group_of_kind", "group_of_op"]

UPDATE, COLLECTIVE, OTHER = "update", "collective", "other"
COPY_TO_DEVICE = "transfer"

# Ops that run several kernels, or that `driple.graph.torch.aten` looks at by their inputs.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "conv": "convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d _convolution cudnn_convolution mkldnn_convolution miopen_convolution",
        "conv_gradient": "convolution_backward cudnn_convolution_backward "
        "mkldnn_convolution_backward",
        "matmul": "addmm mv addmv dot vdot _grouped_mm",
        "batch_matmul": "bmm baddbmm",
        "attention": "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention",
        "attention_gradient": "_scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_efficient_attention_backward "
        "_scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_cudnn_attention_backward",
        "batch_norm": "batch_norm native_batch_norm _native_batch_norm_legit cudnn_batch_norm "
        "_batch_norm_impl_index miopen_batch_norm _batch_norm_with_update",
        "batch_norm_gradient": "native_batch_norm_backward cudnn_batch_norm_backward "
        "miopen_batch_norm_backward batch_norm_backward",
        "group_norm": "native_group_norm",
        "group_norm_gradient": "native_group_norm_backward",
        "max_pool": "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices "
        "max_pool3d_with_indices",
        "max_pool_gradient": "max_pool2d_with_indices_backward max_pool3d_with_indices_backward",
        "avg_pool": "avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d",
        "avg_pool_gradient": "avg_pool2d_backward avg_pool3d_backward "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward",
        "dropout": "dropout feature_dropout",
        "cudnn_rnn": "_cudnn_rnn",
        "cudnn_rnn_gradient": "_cudnn_rnn_backward",
        UPDATE: "_fused_adam _fused_adamw _fused_sgd _fused_adagrad",
    }
)
_GROUP_OF: Mapping[str, str] = MappingProxyType(
    {name: group for group, names in _NAMES.items() for name in names.split()}
)
_ALIKE: Mapping[str, str] = MappingProxyType(
    {
        "bias_add": "conv",
        "bias_gradient": "conv_gradient",
        "cast": "copy",
        "host_cast": "copy",
        "fill_like": "fill",
        "given_batch_norm": "batch_norm",
        "given_batch_norm_gradient": "batch_norm_gradient",
        "all_reduce": COLLECTIVE,
        "all_gather": COLLECTIVE,
        "reduce_scatter": COLLECTIVE,
        "all_to_all": COLLECTIVE,
    }
)


def group_of_kind(kind: str) -> str:
    """The group of a kind of a graph's ops.

    Args:
        kind: one of `driple.graph.opkind.KINDS`.
    """
    if kind in _ALIKE:
        return _ALIKE[kind]
    if "update_" in kind:
        return UPDATE
    family = family_of(kind)
    if family not in CONVOLUTION_FAMILIES:
        return kind
    return "conv" if family == CONVOLUTION_FAMILIES[0] else "conv_gradient"


def group_of_op(name: str) -> str | None:
    """The group of an op's name in a trace, such as `aten::addmm`; None if it has none."""
    namespace, _, bare = name.partition("::")
    if namespace != "aten":
        return COLLECTIVE if namespace.startswith(("nccl", "c10d")) else None
    bare = bare if bare.startswith("__") else bare.removesuffix("_")
    group = _GROUP_OF.get(bare)
    if group is not None:
        return group
    kind = KIND_OF.get(bare)
    return None if kind is None else group_of_kind(kind)
