"""Layers of the zoo's models on raw TensorFlow graph ops, one training step at a time.

    images or tokens -> Net.conv / batch_norm / pool / dense ... -> logits
    logits, labels -> image_loss or text_loss

Image layers are those of `ConvNetBuilder` in tf_cnn_benchmarks, op by op. Variables are plain
reference variables in single precision, as parameter-server training has them; in half precision
each is cast where it is read. TensorFlow must be in graph mode
(`driple.jobs.tensorflow.training.use_graph_mode`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["Net", "image_loss", "text_loss"]

Tensor = Any

_BATCH_NORM_DECAY = 0.9
_BATCH_NORM_EPSILON = 1e-5
_LAYER_NORM_EPSILON = 1e-6


@dataclass(slots=True)
class Net:
    """Adds layers to the default graph; each layer gets a variable scope of its own.

    Attributes:
        width: share of the published channels that each hidden layer has.
        channels_first: whether images are NCHW, else NHWC.
        half: whether layers compute in half precision.
        num_layers: layers made so far, for their names.
        decayed: variables on which weight decay acts: all but those of normalisations.
    """

    width: float = 1.0
    channels_first: bool = False
    half: bool = False
    num_layers: int = 0
    decayed: list[Tensor] = field(default_factory=list)

    def channels(self, published: int) -> int:
        """Channels of a layer at this width; at least 4."""
        return published if self.width == 1 else max(4, round(published * self.width))

    @property
    def dtype(self) -> Any:
        """What layers compute in."""
        return tf.float16 if self.half else tf.float32

    @property
    def data_format(self) -> str:
        """TensorFlow's name for where the channels stand."""
        return "NCHW" if self.channels_first else "NHWC"

    @property
    def channel_axis(self) -> int:
        """Axis of the channels of an image."""
        return 1 if self.channels_first else -1

    def num_channels(self, x: Tensor) -> int:
        """Channels of an image tensor."""
        return int(x.shape[self.channel_axis])

    def images(self, x: Tensor) -> Tensor:
        """Input images [batch, height, width, channels] as the layers want them."""
        x = tf.cast(x, self.dtype)
        return tf.transpose(x, [0, 3, 1, 2]) if self.channels_first else x

    def variable(self, name: str, shape: Sequence[int], initializer: Any) -> Tensor:
        """A trainable variable, read in the precision of the layers."""
        value = tf.get_variable(name, shape, initializer=initializer)
        self.decayed.append(value)
        return tf.cast(value, self.dtype) if self.half else value

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
        """2-D convolution, He initialisation.

        Args:
            x: image.
            filters: channels of the result.
            size: height and width of the kernel.
            stride: pixels between two places of the kernel.
            padding: `SAME`, `VALID`, or `FIXED`: a convolution with a stride pads by an op of its
                own, which depends on the kernel alone (`SAME_RESNET` in tf_cnn_benchmarks).
            bias: whether a bias is added.
        """
        height, width = (size, size) if isinstance(size, int) else size
        channels_in = self.num_channels(x)
        if padding == "FIXED":
            x = self._padded(x, height, width) if stride > 1 else x
            padding = "VALID" if stride > 1 else "SAME"
        with self._scope("conv"):
            deviation = (2.0 / (height * width * channels_in)) ** 0.5
            kernel = self.variable(
                "kernel",
                (height, width, channels_in, filters),
                tf.truncated_normal_initializer(stddev=deviation),
            )
            strides = [1, 1, stride, stride] if self.channels_first else [1, stride, stride, 1]
            y = tf.nn.conv2d(
                x, kernel, strides=strides, padding=padding, data_format=self.data_format
            )
            if not bias:
                return y
            biased = tf.nn.bias_add(y, self._zeros("bias", filters), data_format=self.data_format)
            return tf.reshape(biased, y.shape)

    def batch_norm(self, x: Tensor, *, scale: bool = True) -> Tensor:
        """Fused batch normalisation; its moving averages are updated with every step.

        Its variables and statistics are in single precision, whatever the layers compute in. The
        averages are computed where their variables are, so that one vector crosses for each.

        Args:
            x: image.
            scale: whether it has a trainable factor; otherwise the factor is a constant 1.
        """
        channels = self.num_channels(x)
        with self._scope("bn"):
            gamma = (
                tf.get_variable("gamma", (channels,), initializer=tf.ones_initializer())
                if scale
                else tf.constant(1.0, shape=(channels,))
            )
            beta = tf.get_variable("beta", (channels,), initializer=tf.zeros_initializer())
            averages = [
                tf.get_variable(name, (channels,), initializer=start, trainable=False)
                for name, start in (
                    ("moving_mean", tf.zeros_initializer()),
                    ("moving_variance", tf.ones_initializer()),
                )
            ]
            y, *statistics = tf.nn.fused_batch_norm(
                x,
                gamma,
                beta,
                *averages,  # inputs of the op since TensorFlow 2.2, though training ignores them
                epsilon=_BATCH_NORM_EPSILON,
                data_format=self.data_format,
                is_training=True,
            )[:3]
            decay = tf.constant(_BATCH_NORM_DECAY)
            for moving, now in zip(averages, statistics, strict=True):
                with tf.colocate_with(moving, ignore_existing=True):
                    step = (moving - now) * (1.0 - decay)
                    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, step))
            return y

    def conv_bn_relu(
        self,
        x: Tensor,
        filters: int,
        size: int | tuple[int, int],
        *,
        scale: bool = True,
        **kw: Any,
    ) -> Tensor:
        """Convolution, batch normalisation, ReLU."""
        return tf.nn.relu(self.batch_norm(self.conv(x, filters, size, **kw), scale=scale))

    def conv_relu(self, x: Tensor, filters: int, size: int | tuple[int, int], **kw: Any) -> Tensor:
        """Convolution with bias, ReLU."""
        return tf.nn.relu(self.conv(x, filters, size, bias=True, **kw))

    def max_pool(self, x: Tensor, size: int, stride: int, padding: str = "SAME") -> Tensor:
        """Max pooling over squares."""
        return tf.nn.max_pool2d(x, size, stride, padding, data_format=self.data_format)

    def avg_pool(self, x: Tensor, size: int, stride: int, padding: str = "SAME") -> Tensor:
        """Average pooling over squares."""
        return tf.nn.avg_pool2d(x, size, stride, padding, data_format=self.data_format)

    def global_pool(self, x: Tensor) -> Tensor:
        """Mean over the image."""
        return tf.reduce_mean(x, [2, 3] if self.channels_first else [1, 2])

    def average_to_vector(self, x: Tensor) -> Tensor:
        """Mean over the image by a pooling layer as large as the image."""
        height = int(x.shape[2 if self.channels_first else 1])
        channels = self.num_channels(x)
        return tf.reshape(self.avg_pool(x, height, 1, "VALID"), [-1, channels])

    def concat(self, images: Sequence[Tensor]) -> Tensor:
        """Images side by side in their channels."""
        return tf.concat(list(images), axis=self.channel_axis)

    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        """Zeros before and after the channels, until there are so many."""
        missing = channels - self.num_channels(x)
        around = [missing // 2, missing - missing // 2]
        if self.channels_first:
            return tf.pad(x, [[0, 0], around, [0, 0], [0, 0]])
        return tf.pad(x, [[0, 0], [0, 0], [0, 0], around])

    def local_response_norm(self, x: Tensor) -> Tensor:
        """Local response normalisation over the last axis.

        tf_cnn_benchmarks does not transpose an NCHW image for it, and so this does not either: the
        cost is the same, the values are not those of the paper.
        """
        return tf.nn.local_response_normalization(
            x, depth_radius=4, bias=1.0, alpha=0.001 / 9.0, beta=0.75
        )

    def flatten(self, x: Tensor) -> Tensor:
        """One row per example."""
        return tf.reshape(x, [int(x.shape[0]), -1])

    def dense(self, x: Tensor, units: int, *, relu: bool = False, bias: bool = True) -> Tensor:
        """Fully connected layer over the last axis."""
        shape = [int(size) for size in x.shape]
        with self._scope("dense"):
            kernel = self.variable(
                "kernel",
                (shape[-1], units),
                tf.truncated_normal_initializer(stddev=(1.0 / shape[-1]) ** 0.5),
            )
            rows = x if len(shape) == 2 else tf.reshape(x, [-1, shape[-1]])
            y = tf.matmul(rows, kernel)
            y = tf.nn.bias_add(y, self._zeros("bias", units)) if bias else y
            y = tf.nn.relu(y) if relu else y
            return y if len(shape) == 2 else tf.reshape(y, [*shape[:-1], units])

    def layer_norm(self, x: Tensor) -> Tensor:
        """Layer normalisation over the last axis, in single precision."""
        channels = int(x.shape[-1])
        with self._scope("ln"):
            gain = tf.get_variable("gain", (channels,), initializer=tf.ones_initializer())
            y = tf.cast(x, tf.float32) if self.half else x
            mean, variance = tf.nn.moments(y, [-1], keepdims=True)
            y = (y - mean) * tf.rsqrt(variance + _LAYER_NORM_EPSILON) * gain
            y += tf.get_variable("bias", (channels,), initializer=tf.zeros_initializer())
            return tf.cast(y, self.dtype) if self.half else y

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
            rows = tf.nn.embedding_lookup(table, tokens)
            return tf.cast(rows, self.dtype) if self.half else rows

    def _zeros(self, name: str, size: int) -> Tensor:
        return self.variable(name, (size,), tf.zeros_initializer())

    def _padded(self, x: Tensor, height: int, width: int) -> Tensor:
        """Zeros around an image, as many as a kernel of this size reaches over its edges."""
        rows = [(height - 1) // 2, height // 2]
        columns = [(width - 1) // 2, width // 2]
        if self.channels_first:
            return tf.pad(x, [[0, 0], [0, 0], rows, columns])
        return tf.pad(x, [[0, 0], rows, columns, [0, 0]])


def image_loss(
    logits: Tensor, labels: Tensor, weight_decay: float, decayed: Sequence[Tensor]
) -> Tensor:
    """Mean cross-entropy in single precision plus weight decay, as in tf_cnn_benchmarks.

    Args:
        logits: shape [rows, classes].
        labels: shape [rows], int32.
        weight_decay: factor of the sum of `L2Loss`.
        decayed: variables that enter this sum.
    """
    entropy = tf.losses.sparse_softmax_cross_entropy(
        logits=tf.cast(logits, tf.float32), labels=labels
    )
    loss = tf.reduce_mean(entropy)
    return loss + weight_decay * tf.add_n([tf.nn.l2_loss(v) for v in decayed])


def text_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy in single precision.

    Args:
        logits: shape [rows, classes].
        labels: shape [rows], int32.
    """
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=tf.cast(logits, tf.float32), labels=labels
        )
    )
