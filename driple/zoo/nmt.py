"""NMT: encoder-decoder LSTM with attention (Luong et al., 2015), with real loops in the graph."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from driple.zoo.nn import Net
from driple.zoo.workload import DataSet

__all__ = ["nmt"]

_FORGET_BIAS = 1.0


def nmt(net: Net, tokens: Any, data: DataSet, *, units: int, layers: int) -> Any:
    """Logits of every target position; shape [batch * length, vocabulary].

    Args:
        net: where the layers go.
        tokens: shape [batch, length], int32; read as source and as target.
        data: shapes of the data set.
        units: cells of each LSTM layer, and width of the embeddings.
        layers: LSTM layers of the encoder and of the decoder.
    """
    units = net.channels(units)
    batch = int(tokens.shape[0])
    source = tf.transpose(net.embedding(tokens, data.num_classes, units), [1, 0, 2])
    target = tf.transpose(net.embedding(tokens, data.num_classes, units), [1, 0, 2])
    for i in range(layers):
        source = _lstm(source, units, f"encoder{i}")
    for i in range(layers):
        target = _lstm(target, units, f"decoder{i}")
    memory = tf.transpose(source, [1, 0, 2])
    query = tf.transpose(target, [1, 0, 2])
    scores = tf.matmul(net.dense(query, units), memory, transpose_b=True)
    context = tf.matmul(tf.nn.softmax(scores), memory)
    mixed = tf.tanh(net.dense(tf.concat([query, context], axis=-1), units))
    length = int(tokens.shape[1])
    return net.dense(tf.reshape(mixed, [batch * length, units]), data.num_classes)


def _lstm(inputs: Any, units: int, name: str) -> Any:
    """One LSTM layer as a while-loop over time; shape [length, batch, units] in and out."""
    length, batch, width = (int(size) for size in inputs.shape)
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel",
            (width + units, 4 * units),
            initializer=tf.truncated_normal_initializer(stddev=(width + units) ** -0.5),
        )
        bias = tf.get_variable("bias", (4 * units,), initializer=tf.zeros_initializer())
        steps = tf.TensorArray(tf.float32, length, element_shape=(batch, width)).unstack(inputs)
        outputs = tf.TensorArray(tf.float32, length, element_shape=(batch, units))
        zero = tf.zeros((batch, units))

        def body(time: Any, cell: Any, hidden: Any, out: Any) -> tuple[Any, Any, Any, Any]:
            joined = tf.concat([steps.read(time), hidden], axis=1)
            gates = tf.nn.bias_add(tf.matmul(joined, kernel), bias)
            enter, new, forget, output = tf.split(gates, 4, axis=1)
            kept = cell * tf.sigmoid(forget + _FORGET_BIAS)
            cell = kept + tf.sigmoid(enter) * tf.tanh(new)
            hidden = tf.tanh(cell) * tf.sigmoid(output)
            return time + 1, cell, hidden, out.write(time, hidden)

        last = tf.while_loop(
            lambda time, *_: time < length, body, (tf.constant(0), zero, zero, outputs)
        )
        return last[3].stack()
