"""ResNet v1 (He et al., 2016a) and v2 (He et al., 2016b), for CIFAR-10 and for ImageNet.

As published: the stride of a bottleneck is in its first convolution (what is called v1.5 moves it
to the second), and the CIFAR-10 form has shortcuts without weights (option A). Like
tf_cnn_benchmarks, v2 has a normalisation with ReLU after its first convolution, and those before a
block and at the end have no factor; v1 for CIFAR-10 has no ReLU before its first block.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["resnet"]

_IMAGENET_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
_IMAGENET_FILTERS = (256, 512, 1024, 2048)
_CIFAR_FILTERS = (16, 32, 64)


def resnet(net: Net, images: Any, data: DataSet, *, depth: int, version: int) -> Any:
    """Logits of a ResNet; shape [batch, classes].

    Args:
        net: where the layers go.
        images: shape [batch, height, width, 3].
        data: shapes of the data set.
        depth: 6n + 2 for CIFAR (basic blocks), or 50, 101, 152 for ImageNet (bottlenecks).
        version: 1, or 2 for pre-activation.
    """
    bottleneck = depth in _IMAGENET_BLOCKS
    c = net.channels
    counts: tuple[int, ...]
    if bottleneck:
        counts, filters = _IMAGENET_BLOCKS[depth], tuple(c(f) for f in _IMAGENET_FILTERS)
        x = net.conv_bn_relu(images, c(64), 7, stride=2, padding="FIXED")
        x = net.max_pool(x, 3, 2)
    else:
        counts, filters = ((depth - 2) // 6,) * 3, tuple(c(f) for f in _CIFAR_FILTERS)
        x = net.batch_norm(net.conv(images, c(16), 3))
        x = tf.nn.relu(x) if version == 2 else x
    block = _block_v1 if version == 1 else _block_v2
    for stage, (count, width) in enumerate(zip(counts, filters, strict=True)):
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            x = block(net, x, width, stride=stride, bottleneck=bottleneck)
    if version == 2:
        x = _before(net, x)
    return net.dense(net.global_pool(x), data.num_classes)


def _block_v1(net: Net, x: Any, filters: int, *, stride: int, bottleneck: bool) -> Any:
    """Convolution, normalisation, ReLU; the sum is followed by a ReLU."""
    shortcut = x
    if stride != 1 or net.num_channels(x) != filters:
        if bottleneck:
            shortcut = net.batch_norm(net.conv(x, filters, 1, stride=stride))
        else:
            shortcut = _plain_shortcut(net, x, filters, stride)
    if bottleneck:
        y = net.conv_bn_relu(x, filters // 4, 1, stride=stride)
        y = net.conv_bn_relu(y, filters // 4, 3)
        y = net.batch_norm(net.conv(y, filters, 1))
    else:
        y = net.conv_bn_relu(x, filters, 3, stride=stride)
        y = net.batch_norm(net.conv(y, filters, 3))
    return tf.nn.relu(shortcut + y)


def _block_v2(net: Net, x: Any, filters: int, *, stride: int, bottleneck: bool) -> Any:
    """Normalisation and ReLU come before each convolution; the sum is left as it is."""
    y = _before(net, x)
    shortcut = x
    if stride != 1 or net.num_channels(x) != filters:
        if bottleneck:
            shortcut = net.conv(y, filters, 1, stride=stride)
        else:
            shortcut = _plain_shortcut(net, x, filters, stride)
    if bottleneck:
        y = net.conv_bn_relu(y, filters // 4, 1, stride=stride)
        y = net.conv_bn_relu(y, filters // 4, 3)
        y = net.conv(y, filters, 1)
    else:
        y = net.conv_bn_relu(y, filters, 3, stride=stride)
        y = net.conv(y, filters, 3)
    return shortcut + y


def _before(net: Net, x: Any) -> Any:
    """Normalisation without a factor and ReLU, before a block and after the last one."""
    return tf.nn.relu(net.batch_norm(x, scale=False))


def _plain_shortcut(net: Net, x: Any, filters: int, stride: int) -> Any:
    """Every `stride`-th pixel, and zeros for the new channels (option A)."""
    return net.pad_channels(net.avg_pool(x, 1, stride, "VALID"), filters)
