"""Transformer (Vaswani et al., 2017) and its form with averaged attention (Zhang et al., 2018).

source tokens -> encoder -> memory
target tokens -> decoder (self or averaged attention, attention to the memory) -> logits
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["transformer"]

_NUM_LAYERS = 6
_DROPOUT = 0.1
_MASKED = 1e4  # far below any score, and within half precision


def transformer(
    net: Net, tokens: Any, data: DataSet, *, units: int, heads: int, averaged: bool = False
) -> Any:
    """Logits of every target position; shape [batch * length, vocabulary].

    Args:
        net: where the layers go.
        tokens: shape [batch, length], int32; read as source and as target.
        data: shapes of the data set.
        units: width of the model (512 in the base, 1024 in the big form).
        heads: attention heads.
        averaged: averaged attention network in the decoder in place of self-attention.
    """
    units = net.channels(units)
    heads = max(2, round(heads * net.width)) if net.width < 1 else heads
    length = int(tokens.shape[1])
    source = _embed(net, tokens, data.num_classes, units)
    for _ in range(_NUM_LAYERS):
        source = _add_norm(net, source, _attention(net, source, source, heads, mask=None))
        source = _add_norm(net, source, _feed_forward(net, source, units))
    past = tf.constant(np.tril(np.ones((length, length))), net.dtype)
    target = _embed(net, tokens, data.num_classes, units)
    for _ in range(_NUM_LAYERS):
        looked_back = (
            _average_attention(net, target, past, units)
            if averaged
            else _attention(net, target, target, heads, mask=past)
        )
        target = _add_norm(net, target, looked_back)
        target = _add_norm(net, target, _attention(net, target, source, heads, mask=None))
        target = _add_norm(net, target, _feed_forward(net, target, units))
    return net.dense(tf.reshape(target, [-1, units]), data.num_classes)


def _embed(net: Net, tokens: Any, vocabulary: int, units: int) -> Any:
    """Token embedding plus sinusoidal positions."""
    length = int(tokens.shape[1])
    angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, units, 2)[None, :] / units)
    positions = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :units]
    x = net.embedding(tokens, vocabulary, units) * units**0.5
    return net.dropout(x + tf.constant(positions, net.dtype), _DROPOUT)


def _add_norm(net: Net, x: Any, y: Any) -> Any:
    return net.layer_norm(x + net.dropout(y, _DROPOUT))


def _feed_forward(net: Net, x: Any, units: int) -> Any:
    return net.dense(net.dense(x, 4 * units, relu=True), units)


def _attention(net: Net, x: Any, memory: Any, heads: int, *, mask: Any) -> Any:
    """Multi-head scaled dot-product attention of `x` to `memory`."""
    units = int(x.shape[-1])
    query, key, value = (
        _split_heads(net.dense(part, units), heads) for part in (x, memory, memory)
    )
    scores = tf.matmul(query, key, transpose_b=True) * (units // heads) ** -0.5
    if mask is not None:
        scores += (mask - 1.0) * _MASKED
    weights = net.dropout(tf.nn.softmax(scores), _DROPOUT)
    mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
    return net.dense(tf.reshape(mixed, [int(x.shape[0]), int(x.shape[1]), units]), units)


def _split_heads(x: Any, heads: int) -> Any:
    batch, length, units = (int(size) for size in x.shape)
    return tf.transpose(tf.reshape(x, [batch, length, heads, units // heads]), [0, 2, 1, 3])


def _average_attention(net: Net, x: Any, past: Any, units: int) -> Any:
    """Cumulative average of the past, feed-forward layer, gate (Zhang et al., eqs. 5 to 7)."""
    average = past / tf.reduce_sum(past, axis=1, keepdims=True)
    mean = tf.einsum("ij,bjd->bid", average, x)
    mean = _feed_forward(net, mean, units)
    gates = tf.sigmoid(net.dense(tf.concat([x, mean], axis=-1), 2 * units))
    keep, take = tf.split(gates, 2, axis=-1)
    return keep * x + take * mean
