"""DenseNet for CIFAR-10 (Huang et al., 2017): three dense blocks, no bottleneck.

Like tf_cnn_benchmarks, whose graphs the paper measured: convolutions have a bias, and a transition
ends with a ReLU and keeps two growth rates of channels, where the published one keeps all. Thus
densenet40_k12 has 0.36 million parameters in place of 1.02 million.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["densenet"]


def densenet(net: Net, images: Any, data: DataSet, *, depth: int, growth: int) -> Any:
    """Logits of DenseNet with `depth` layers and growth rate `growth`; shape [batch, classes]."""
    growth = net.channels(growth)
    layers_per_block = (depth - 4) // 3
    x = net.conv(images, net.channels(16), 3, bias=True)
    for block in range(3):
        for _ in range(layers_per_block):
            y = net.conv(tf.nn.relu(net.batch_norm(x)), growth, 3, bias=True)
            x = net.concat([x, y])
        if block < 2:
            x = net.conv_relu(tf.nn.relu(net.batch_norm(x)), 2 * growth, 1)
            x = net.avg_pool(x, 2, 2, "VALID")
    x = tf.nn.relu(net.batch_norm(x))
    return net.dense(net.global_pool(x), data.num_classes)
