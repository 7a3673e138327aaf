"""OverFeat, fast form (Sermanet et al., 2014, Table 1)."""

from __future__ import annotations

from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["overfeat"]


def overfeat(net: Net, images: Any, data: DataSet) -> Any:
    """Logits of OverFeat; shape [batch, classes].

    Below 224 pixels the first convolution has stride 2 in place of 4, so that the feature maps do
    not vanish.
    """
    c = net.channels
    large = data.image_size >= 224
    padding = "VALID" if large else "SAME"
    x = net.conv_relu(images, c(96), 11, stride=4 if large else 2, padding=padding)
    x = net.max_pool(x, 2, 2, padding)
    x = net.max_pool(net.conv_relu(x, c(256), 5, padding=padding), 2, 2, padding)
    for filters in (512, 1024, 1024):
        x = net.conv_relu(x, c(filters), 3)
    x = net.flatten(net.max_pool(x, 2, 2, padding))
    x = net.dropout(net.dense(x, c(3072), relu=True), 0.5)
    x = net.dropout(net.dense(x, c(4096), relu=True), 0.5)
    return net.dense(x, data.num_classes)
