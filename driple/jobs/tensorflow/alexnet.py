"""AlexNet as in tf_cnn_benchmarks: one tower for ImageNet (Krizhevsky, 2014), and for CIFAR-10.

The CIFAR-10 form is the one of TensorFlow's first tutorial (after Krizhevsky, 2009).
"""

from __future__ import annotations

from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["alexnet"]


def alexnet(net: Net, images: Any, data: DataSet) -> Any:
    """Logits of AlexNet; shape [batch, classes]."""
    if data.image_size >= 224:
        return _imagenet(net, images, data)
    c = net.channels
    x = net.conv_relu(images, c(64), 5)
    x = net.local_response_norm(net.max_pool(x, 3, 2))
    x = net.local_response_norm(net.conv_relu(x, c(64), 5))
    x = net.max_pool(x, 3, 2)
    x = net.dense(net.flatten(x), c(384), relu=True)
    x = net.dense(x, c(192), relu=True)
    return net.dense(x, data.num_classes)


def _imagenet(net: Net, images: Any, data: DataSet) -> Any:
    c = net.channels
    x = net.conv_relu(images, c(64), 11, stride=4, padding="VALID")
    x = net.max_pool(x, 3, 2, "VALID")
    x = net.conv_relu(x, c(192), 5)
    x = net.max_pool(x, 3, 2, "VALID")
    for filters in (384, 384, 256):
        x = net.conv_relu(x, c(filters), 3)
    x = net.max_pool(x, 3, 2, "VALID")
    x = net.flatten(x)
    for _ in range(2):
        x = net.dropout(net.dense(x, c(4096), relu=True), 0.5)
    return net.dense(x, data.num_classes)
