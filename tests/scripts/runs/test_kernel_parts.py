"""Which part of a step an op of PyTorch's profiler belongs to."""

from __future__ import annotations

import json

import pytest

from scripts.fits.measured_kernels import KernelTime
from scripts.runs.kernel_parts import part_of, parts_of

_IMAGES = [8, 32, 14, 14]


@pytest.mark.parametrize(
    ("name", "sizes", "part"),
    [
        ("aten::cudnn_convolution", [_IMAGES, [64, 32, 3, 3]], "convolution"),
        ("aten::cudnn_convolution", [_IMAGES, [64, 8, 3, 3]], "grouped_convolution"),
        ("aten::_conv_depthwise2d", [_IMAGES, [32, 1, 3, 3]], "depthwise_convolution"),
        (
            "aten::convolution_backward",
            [[8, 64, 14, 14], _IMAGES, [64, 8, 3, 3]],
            "grouped_convolution",
        ),
        ("aten::addmm", [[64], [8, 32], [32, 64]], "matmul"),
        ("aten::_scaled_dot_product_cudnn_attention_backward", [], "attention"),
        ("aten::native_batch_norm", [], "norm"),
        ("aten::cudnn_batch_norm_backward", [], "norm_gradient"),
        ("aten::_fused_rms_norm", [], "norm"),
        ("aten::linalg_vector_norm", [], "rest"),
        ("aten::avg_pool2d_backward", [], "pooling"),
        ("aten::_softmax", [], "softmax"),
        ("aten::_cudnn_rnn", [], "recurrent"),
        ("aten::_foreach_add_", [], "update"),
        ("aten::copy_", [], "rest"),
        ("Activity Buffer Request", [], ""),
        ("", [], ""),
    ],
)
def test_part_of_an_op(name: str, sizes: list[list[int]], part: str) -> None:
    """By its name, and of convolutions by the channels of images and filters."""
    assert part_of(name, json.dumps(sizes)) == part


def test_a_convolution_of_one_channel_is_a_plain_one() -> None:
    """All images of one channel would else count as depthwise."""
    assert part_of("aten::cudnn_convolution", "[[8, 1, 28, 28], [16, 1, 3, 3]]") == "convolution"


def test_ops_of_a_part_are_summed() -> None:
    """Kernels and seconds; parts without kernels are not listed."""
    ops = [
        ("aten::mm", "[]", 3, 0.25), ("aten::bmm", "[]", 1, 0.5), ("aten::add", "[]", 2, 0.125),
        ("", "[]", 1, 0.0625),
    ]  # fmt: skip
    assert parts_of("a job", ops) == [
        KernelTime(key="a job", part="matmul", kernels=4, seconds=0.75),
        KernelTime(key="a job", part="rest", kernels=2, seconds=0.125),
        KernelTime(key="a job", part="", kernels=1, seconds=0.0625),
    ]
