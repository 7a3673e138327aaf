"""GoogLeNet, also called Inception v1 (Szegedy et al., 2015, Table 1).

Like tf_cnn_benchmarks, without local response normalisation, auxiliary heads and dropout.
"""

from __future__ import annotations

from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["googlenet"]

# Filters of each inception module: 1x1; 3x3 after its reduction; 5x5 after its; after pooling.
_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(net: Net, images: Any, data: DataSet) -> Any:
    """Logits of GoogLeNet; shape [batch, classes].

    Below 224 pixels the stem keeps its layers but halves the image once, not three times.
    """
    c = net.channels
    large = data.image_size >= 224
    x = net.conv_relu(images, c(64), 7, stride=2)
    x = net.max_pool(x, 3, 2) if large else x
    x = net.conv_relu(x, c(64), 1)
    x = net.conv_relu(x, c(192), 3)
    x = net.max_pool(x, 3, 2) if large else x
    for name, filters in _MODULES.items():
        if name in ("4a", "5a"):
            x = net.max_pool(x, 3, 2)
        x = _module(net, x, tuple(c(f) for f in filters))
    return net.dense(net.average_to_vector(x), data.num_classes)


def _module(net: Net, x: Any, filters: tuple[int, ...]) -> Any:
    narrow, reduce3, three, reduce5, five, pooled = filters
    branches = [
        net.conv_relu(x, narrow, 1),
        net.conv_relu(net.conv_relu(x, reduce3, 1), three, 3),
        net.conv_relu(net.conv_relu(x, reduce5, 1), five, 5),
        net.conv_relu(net.max_pool(x, 3, 1), pooled, 1),
    ]
    return net.concat(branches)
