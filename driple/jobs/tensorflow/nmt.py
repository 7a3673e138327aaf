"""NMT: encoder-decoder LSTM with attention, in the three sizes of OpenNMT-tf 1.

    source -> encoder loops, one or both ways -> memory, last states
    target -> decoder loop: layers fed with the last attention -> attention to the memory -> logits

Attention is Luong's general form (Luong et al., 2015) with input feeding. All loops are real
while-loops of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["nmt"]

_EMBEDDING = 512
_FORGET_BIAS = 1.0
_DROPOUT = 0.3

Tensor = Any
State = tuple[Tensor, Tensor]  # cell and hidden values of one layer, each [batch, units]


def nmt(
    net: Net, tokens: Tensor, data: DataSet, *, units: int, layers: int, bidirectional: bool = False
) -> Tensor:
    """Logits of every target position; shape [batch * length, vocabulary].

    Args:
        net: where the layers go.
        tokens: shape [batch, length], int32; read as source and as target.
        data: shapes of the data set.
        units: cells of each layer; half of them run each way in an encoder that runs both.
        layers: LSTM layers of the encoder, and of the decoder.
        bidirectional: whether the encoder reads the source both ways.
    """
    units, width = net.channels(units), net.channels(_EMBEDDING)
    source, target = (
        tf.transpose(net.embedding(tokens, data.num_classes, width), [1, 0, 2]) for _ in range(2)
    )
    memory, states = _encode(net, source, units, layers, bidirectional=bidirectional)
    mixed = _decode(net, target, memory, states, units)
    length, batch = int(target.shape[0]), int(target.shape[1])
    return net.dense(tf.reshape(mixed, [length * batch, units]), data.num_classes)


@dataclass(frozen=True, slots=True)
class _Stack:
    """LSTM layers on top of each other."""

    net: Net
    kernels: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    @classmethod
    def make(cls, net: Net, name: str, width: int, units: int, layers: int) -> _Stack:
        """Layers of `units` cells each; `width` values go into the first."""
        kernels, biases = [], []
        for i in range(layers):
            rows = (units if i else width) + units
            with tf.variable_scope(f"{name}{i}"):
                scale = tf.truncated_normal_initializer(stddev=rows**-0.5)
                kernels.append(net.variable("kernel", (rows, 4 * units), scale))
                biases.append(net.variable("bias", (4 * units,), tf.zeros_initializer()))
        return cls(net, tuple(kernels), tuple(biases))

    def step(self, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """One position through all layers."""
        after: list[State] = []
        for kernel, bias, (cell, hidden) in zip(self.kernels, self.biases, states, strict=True):
            joined = tf.concat([self.net.dropout(x, _DROPOUT), hidden], axis=1)
            gates = tf.nn.bias_add(tf.matmul(joined, kernel), bias)
            enter, new, forget, output = tf.split(gates, 4, axis=1)
            kept = cell * tf.sigmoid(forget + _FORGET_BIAS)
            fresh = kept + tf.sigmoid(enter) * tf.tanh(new)
            x = tf.tanh(fresh) * tf.sigmoid(output)
            after.append((fresh, x))
        return x, after


def _encode(
    net: Net, source: Tensor, units: int, layers: int, *, bidirectional: bool
) -> tuple[Tensor, list[State]]:
    """Outputs [batch, length, units] of the last layer, and each layer's last state."""
    width = int(source.shape[2])
    if not bidirectional:
        outputs, states = _run(_Stack.make(net, "encoder", width, units, layers), source)
        return tf.transpose(outputs, [1, 0, 2]), states
    ahead = _Stack.make(net, "encoder_forward", width, units // 2, layers)
    back = _Stack.make(net, "encoder_backward", width, units - units // 2, layers)
    outputs_a, states_a = _run(ahead, source)
    outputs_b, states_b = _run(back, tf.reverse(source, [0]))
    outputs = tf.concat([outputs_a, tf.reverse(outputs_b, [0])], axis=2)
    states = [
        (tf.concat([a[0], b[0]], axis=1), tf.concat([a[1], b[1]], axis=1))
        for a, b in zip(states_a, states_b, strict=True)
    ]
    return tf.transpose(outputs, [1, 0, 2]), states


def _run(stack: _Stack, inputs: Tensor) -> tuple[Tensor, list[State]]:
    """The layers over all positions of `inputs` [length, batch, width], from zero states."""
    length, batch, width = (int(size) for size in inputs.shape)
    dtype, units = inputs.dtype, int(stack.biases[0].shape[0]) // 4
    rows = tf.TensorArray(dtype, length, element_shape=(batch, width)).unstack(inputs)
    outputs = tf.TensorArray(dtype, length, element_shape=(batch, units))
    zero = tf.zeros((batch, units), dtype)

    def body(time: Tensor, out: Any, *flat: Tensor) -> tuple[Any, ...]:
        top, states = stack.step(rows.read(time), _paired(flat))
        return (time + 1, out.write(time, top), *_flat(states))

    start = [(zero, zero)] * len(stack.kernels)
    _, out, *flat = tf.while_loop(
        lambda time, *_: time < length, body, (tf.constant(0), outputs, *_flat(start))
    )
    return out.stack(), _paired(flat)


def _decode(net: Net, target: Tensor, memory: Tensor, states: list[State], units: int) -> Tensor:
    """Attention vectors of all target positions; shape [length, batch, units]."""
    length, batch, width = (int(size) for size in target.shape)
    dtype = target.dtype
    stack = _Stack.make(net, "decoder", width + units, units, len(states))
    keys = net.dense(memory, units, bias=False)
    scale = tf.truncated_normal_initializer(stddev=(2 * units) ** -0.5)
    mixing = net.variable("attention", (2 * units, units), scale)
    rows = tf.TensorArray(dtype, length, element_shape=(batch, width)).unstack(target)
    outputs = tf.TensorArray(dtype, length, element_shape=(batch, units))

    def body(time: Tensor, out: Any, last: Tensor, *flat: Tensor) -> tuple[Any, ...]:
        query, after = stack.step(tf.concat([rows.read(time), last], axis=1), _paired(flat))
        scores = tf.matmul(tf.expand_dims(query, 1), keys, transpose_b=True)
        context = tf.squeeze(tf.matmul(tf.nn.softmax(scores), memory), 1)
        mixed = tf.matmul(tf.concat([query, context], axis=1), mixing)
        return (time + 1, out.write(time, mixed), mixed, *_flat(after))

    start = (tf.constant(0), outputs, tf.zeros((batch, units), dtype), *_flat(states))
    done = tf.while_loop(lambda time, *_: time < length, body, start)
    return done[1].stack()


def _flat(states: list[State]) -> list[Tensor]:
    return [value for state in states for value in state]


def _paired(flat: Any) -> list[State]:
    return list(zip(flat[::2], flat[1::2], strict=True))
