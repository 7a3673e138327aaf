"""Ten kinds of networks that no shipped data set has, measured as workloads of the test bed are.

    python -m scripts.checks.new_families -o runs/families --dataset datasets/families

Needs what `driple measure` needs. `scripts.studies.cpu_host` compares them, and the twelve
workloads of datasets/runs/other-hosts, with what Driple predicts for this machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from driple.jobs.catalogue import MODELS, Model

__all__ = ["WORKLOADS", "main", "register"]

WORKLOADS = (
    "plain_mlp-x0.5/mnist/b64/adam/async",
    "wide_mlp-x0.25/cifar10/b32/sgd/sync",
    "network_in_network-x0.25/cifar10/b32/momentum/sync",
    "squeezenet-x0.5/cifar10/b16/adam/async",
    "all_conv-x0.5/cifar10/b16/rmsprop/sync",
    "mixer-x0.25/cifar10/b32/adam/async",
    "mobilenet-x0.5/cifar10/b32/momentum/async",
    "squeeze_excite-x0.5/cifar10/b16/sgd/sync",
    "gated_conv_text-x0.125/europarl-short/b32/adam/sync",
    "bag_of_words-x0.25/europarl-short/b64/sgd/async",
)
Tensor = Any
_WORKER = "scripts.checks.new_families_worker"


def plain_mlp(net: Any, images: Tensor, data: Any) -> Tensor:
    """Three hidden layers of 1,024."""
    x = net.flatten(images)
    for _ in range(3):
        x = net.dense(x, net.channels(1024), relu=True)
    return net.dense(x, data.num_classes)


def wide_mlp(net: Any, images: Tensor, data: Any) -> Tensor:
    """A hidden layer of 4,096 with dropout, as an ablation of convolutions has it."""
    x = net.dropout(net.dense(net.flatten(images), net.channels(4096), relu=True), 0.5)
    return net.dense(net.dense(x, net.channels(2048), relu=True), data.num_classes)


def network_in_network(net: Any, images: Tensor, data: Any) -> Tensor:
    """Convolutions of 5x5 and 3x3, each followed by two of 1x1 (Lin et al., 2014)."""
    c, x = net.channels, images
    for size, widths in ((5, (192, 160, 96)), (5, (192, 192, 192)), (3, (192, 192))):
        x = net.conv_relu(x, c(widths[0]), size)
        for width in widths[1:]:
            x = net.conv_relu(x, c(width), 1)
        x = net.dropout(net.max_pool(x, 3, 2), 0.5)
    return net.global_pool(net.conv_relu(x, data.num_classes, 1))


def squeezenet(net: Any, images: Tensor, data: Any) -> Tensor:
    """Fire modules: few channels of 1x1, then many of 1x1 beside 3x3 (Iandola et al., 2016)."""
    c = net.channels
    x = net.max_pool(net.conv_relu(images, c(64), 3), 3, 2)
    for number, (few, many) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192))):
        squeezed = net.conv_relu(x, c(few), 1)
        x = net.concat([net.conv_relu(squeezed, c(many), 1), net.conv_relu(squeezed, c(many), 3)])
        if number in (1, 3):
            x = net.max_pool(x, 3, 2)
    return net.global_pool(net.conv_relu(net.dropout(x, 0.5), data.num_classes, 1))


def all_conv(net: Any, images: Tensor, data: Any) -> Tensor:
    """Convolutions with a stride in place of pooling (Springenberg et al., 2015)."""
    c, x = net.channels, images
    for width in (96, 192):
        x = net.conv_relu(net.conv_relu(x, c(width), 3), c(width), 3)
        x = net.conv_relu(x, c(width), 3, stride=2)
    x = net.conv_relu(net.conv_relu(x, c(192), 3), c(192), 1)
    return net.global_pool(net.conv_relu(x, data.num_classes, 1))


def mixer(net: Any, images: Tensor, data: Any) -> Tensor:
    """Four layers of an MLP over patches, then over channels (Tolstikhin et al., 2021)."""
    import tensorflow.compat.v1 as tf

    x = net.conv(images, net.channels(256), 4, stride=4)
    batch, rows, columns, width = (int(size) for size in x.shape)
    x = tf.reshape(x, [batch, rows * columns, width])
    for _ in range(4):
        y = tf.transpose(net.layer_norm(x), [0, 2, 1])
        y = net.dense(net.dense(y, 2 * rows * columns, relu=True), rows * columns)
        x += tf.transpose(y, [0, 2, 1])
        x += net.dense(net.dense(net.layer_norm(x), 4 * width, relu=True), width)
    return net.dense(tf.reduce_mean(net.layer_norm(x), 1), data.num_classes)


def mobilenet(net: Any, images: Tensor, data: Any) -> Tensor:
    """A convolution for each channel alone, then one of 1x1 (Howard et al., 2017)."""
    import tensorflow.compat.v1 as tf

    c = net.channels
    x = net.conv_bn_relu(images, c(32), 3)
    for number, (width, stride) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1))):
        with tf.variable_scope(f"depthwise{number}"):
            kernel = net.variable(
                "kernel",
                (3, 3, net.num_channels(x), 1),
                tf.truncated_normal_initializer(stddev=0.3),
            )
            x = tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME")
        x = net.conv_bn_relu(tf.nn.relu(net.batch_norm(x)), c(width), 1)
    return net.dense(net.global_pool(x), data.num_classes)


def squeeze_excite(net: Any, images: Tensor, data: Any) -> Tensor:
    """Residual blocks whose channels are weighted by two small layers (Hu et al., 2018)."""
    import tensorflow.compat.v1 as tf

    c = net.channels
    x = net.conv_bn_relu(images, c(64), 3)
    for stage, width in enumerate((64, 128, 256)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = net.conv_bn_relu(x, c(width), 3, stride=stride)
            y = net.batch_norm(net.conv(y, c(width), 3))
            weights = net.dense(net.global_pool(y), max(4, c(width) // 16), relu=True)
            weights = tf.nn.sigmoid(net.dense(weights, c(width)))
            y *= weights[:, None, None, :]
            if stride > 1 or int(y.shape[-1]) != net.num_channels(x):
                x = net.batch_norm(net.conv(x, c(width), 1, stride=stride))
            x = tf.nn.relu(x + y)
    return net.dense(net.global_pool(x), data.num_classes)


def gated_conv_text(net: Any, tokens: Tensor, data: Any) -> Tensor:
    """Four convolutions over words with gates (Dauphin et al., 2017)."""
    import tensorflow.compat.v1 as tf

    width = net.channels(512)
    x = net.embedding(tokens, data.num_classes, width)[:, None]
    for _ in range(4):
        y = net.conv(x, 2 * width, (1, 4), bias=True)
        x += y[..., :width] * tf.nn.sigmoid(y[..., width:])
    batch, _, length, _ = (int(size) for size in x.shape)
    return net.dense(tf.reshape(x, [batch * length, width]), data.num_classes)


def bag_of_words(net: Any, tokens: Tensor, data: Any) -> Tensor:
    """The mean of a sentence's words beside each word, and two layers."""
    import tensorflow.compat.v1 as tf

    width = net.channels(512)
    words = net.embedding(tokens, data.num_classes, width)
    mean = tf.reduce_mean(words, 1, keepdims=True) + tf.zeros_like(words)
    x = net.dense(tf.concat([words, mean], -1), net.channels(1024), relu=True)
    batch, length, width = (int(size) for size in x.shape)
    return net.dense(tf.reshape(x, [batch * length, width]), data.num_classes)


@dataclass(frozen=True, kw_only=True, slots=True)
class _OwnModel(Model):
    build: Callable[[Any, Tensor, Any], Tensor] = field(default=plain_mlp)

    def logits(self, net: Any, inputs: Tensor, data: Any) -> Tensor:
        """Add the model to the default TensorFlow graph."""
        return self.build(net, inputs, data)


_IMAGES = (plain_mlp, wide_mlp, network_in_network, squeezenet, all_conv, mixer, mobilenet,
           squeeze_excite)  # fmt: skip
_TEXTS = (gated_conv_text, bag_of_words)


def register() -> Mapping[str, Model]:
    """Add the networks to the zoo of this process."""
    for reads, builders in (("images", _IMAGES), ("text", _TEXTS)):
        for build in builders:
            MODELS[build.__name__] = _OwnModel(
                family=build.__name__,
                builder=("", ""),
                build=build,
                reads=reads,
                weight_decay=1e-4 if reads == "images" else 0.0,
            )
    return MODELS


def main(argv: Sequence[str] | None = None) -> int:
    """`driple measure` of them; what is measured already is left."""
    from driple.cli.main import run
    from driple.measure.testbed import processes

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--dataset", required=True)
    given = parser.parse_args(argv)
    register()
    processes.WORKER_MODULE = _WORKER
    words = ["measure", *WORKLOADS, "-o", given.output, "--dataset", given.dataset]
    run(words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
