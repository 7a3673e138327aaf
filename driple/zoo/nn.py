"""Layers of the zoo's models on raw TensorFlow graph ops, one training step at a time.

    images or tokens -> Net.conv / batch_norm / pool / dense ... -> logits -> loss_of

Variables are plain reference variables, as parameter-server training has them. TensorFlow must be
in graph mode (`driple.zoo.training.use_graph_mode`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["Net", "loss_of"]

Tensor = Any

_BATCH_NORM_DECAY = 0.9
_BATCH_NORM_EPSILON = 1e-5


@dataclass(slots=True)
class Net:
    """Adds layers to the default graph; each layer gets a variable scope of its own.

    Attributes:
        width: share of the published channels that each hidden layer has.
        num_layers: layers made so far, for their names.
    """

    width: float = 1.0
    num_layers: int = 0

    def channels(self, published: int) -> int:
        """Channels of a layer at this width; at least 4."""
        return published if self.width == 1 else max(4, round(published * self.width))

    def _scope(self, kind: str) -> Any:
        self.num_layers += 1
        return tf.variable_scope(f"{kind}{self.num_layers}")

    def conv(
        self,
        x: Tensor,
        filters: int,
        size: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: str = "SAME",
        bias: bool = False,
    ) -> Tensor:
        """2-D convolution, NHWC, He initialisation."""
        height, width = (size, size) if isinstance(size, int) else size
        channels_in = int(x.shape[-1])
        with self._scope("conv"):
            deviation = (2.0 / (height * width * channels_in)) ** 0.5
            kernel = tf.get_variable(
                "kernel",
                (height, width, channels_in, filters),
                initializer=tf.truncated_normal_initializer(stddev=deviation),
            )
            y = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding=padding)
            return tf.nn.bias_add(y, _zeros("bias", filters)) if bias else y

    def batch_norm(self, x: Tensor) -> Tensor:
        """Fused batch normalisation; its moving averages are updated with every step."""
        channels = int(x.shape[-1])
        with self._scope("bn"):
            gamma = tf.get_variable("gamma", (channels,), initializer=tf.ones_initializer())
            y, mean, variance = tf.nn.fused_batch_norm(
                x, gamma, _zeros("beta", channels), epsilon=_BATCH_NORM_EPSILON, is_training=True
            )[:3]
            for name, now in (("moving_mean", mean), ("moving_variance", variance)):
                moving = tf.get_variable(
                    name, (channels,), initializer=tf.zeros_initializer(), trainable=False
                )
                step = (moving - now) * (1 - _BATCH_NORM_DECAY)
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, step))
            return y

    def conv_bn_relu(
        self, x: Tensor, filters: int, size: int | tuple[int, int], **kw: Any
    ) -> Tensor:
        """Convolution, batch normalisation, ReLU."""
        return tf.nn.relu(self.batch_norm(self.conv(x, filters, size, **kw)))

    def conv_relu(self, x: Tensor, filters: int, size: int | tuple[int, int], **kw: Any) -> Tensor:
        """Convolution with bias, ReLU."""
        return tf.nn.relu(self.conv(x, filters, size, bias=True, **kw))

    def max_pool(self, x: Tensor, size: int, stride: int, padding: str = "SAME") -> Tensor:
        """Max pooling over squares."""
        return tf.nn.max_pool2d(x, size, stride, padding)

    def avg_pool(self, x: Tensor, size: int, stride: int, padding: str = "SAME") -> Tensor:
        """Average pooling over squares."""
        return tf.nn.avg_pool2d(x, size, stride, padding)

    def global_pool(self, x: Tensor) -> Tensor:
        """Mean over the image."""
        return tf.reduce_mean(x, [1, 2])

    def flatten(self, x: Tensor) -> Tensor:
        """One row per example."""
        return tf.reshape(x, [int(x.shape[0]), -1])

    def dense(self, x: Tensor, units: int, *, relu: bool = False) -> Tensor:
        """Fully connected layer over the last axis."""
        shape = [int(size) for size in x.shape]
        with self._scope("dense"):
            kernel = tf.get_variable(
                "kernel",
                (shape[-1], units),
                initializer=tf.truncated_normal_initializer(stddev=(1.0 / shape[-1]) ** 0.5),
            )
            rows = x if len(shape) == 2 else tf.reshape(x, [-1, shape[-1]])
            y = tf.nn.bias_add(tf.matmul(rows, kernel), _zeros("bias", units))
            y = tf.nn.relu(y) if relu else y
            return y if len(shape) == 2 else tf.reshape(y, [*shape[:-1], units])

    def layer_norm(self, x: Tensor) -> Tensor:
        """Layer normalisation over the last axis."""
        channels = int(x.shape[-1])
        with self._scope("ln"):
            gain = tf.get_variable("gain", (channels,), initializer=tf.ones_initializer())
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return (x - mean) * tf.rsqrt(variance + 1e-6) * gain + _zeros("bias", channels)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        """Dropout: `rate` of the values become zero."""
        return tf.nn.dropout(x, rate=rate)

    def embedding(self, tokens: Tensor, vocabulary: int, units: int) -> Tensor:
        """Rows of an embedding table; its gradient is sparse."""
        with self._scope("embedding"):
            table = tf.get_variable(
                "table",
                (vocabulary, units),
                initializer=tf.truncated_normal_initializer(stddev=units**-0.5),
            )
            return tf.nn.embedding_lookup(table, tokens)


def _zeros(name: str, size: int) -> Tensor:
    return tf.get_variable(name, (size,), initializer=tf.zeros_initializer())


def loss_of(logits: Tensor, labels: Tensor, weight_decay: float = 0.0) -> Tensor:
    """Mean cross-entropy, plus weight decay over all trainable variables if asked.

    Args:
        logits: shape [rows, classes].
        labels: shape [rows], int32.
        weight_decay: factor of the sum of `L2Loss` over the trainable variables.
    """
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    )
    if weight_decay:
        loss += weight_decay * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
    return loss
