"""The inspector's forward pass in NumPy, one graph at a time, without padding (paper, section 3.2).

    InspectorInput (scaled) + weights  ->  scaled targets [12]

The same numbers as the torch model of `model.py` within 1e-5 (a test holds it to that), for GCN,
both updates and the readouts of the presets, in single precision. Equations and citations stand
with the torch layers; `variants.py` runs the other layers and readouts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.features.builder import InspectorInput
from driple.inspector.config import CONV_NEGATIVE_SLOPE, InspectorConfig
from driple.inspector.shapes import member_prefix

__all__ = ["run_inspector"]

Array = npt.NDArray[np.float32]
Weights = Mapping[str, Array]
Conv = Callable[[Array], Array]

LAYER_NORM_EPSILON = 1e-5  # torch's default


def run_inspector(
    weights: Weights,
    config: InspectorConfig,
    num_groups: int,
    graph_input: InspectorInput,
    num_tuned: int = 0,
) -> Array:
    """Scaled targets of one graph, shape [12]: the mean over the members.

    Args:
        weights: weights by the names of the torch model's state.
        config: structure of the model.
        num_groups: M of the model, from which its depth follows.
        graph_input: the scaled input; it may have fewer groups than M.
        num_tuned: repeated layers, counted from the last, that have the second set of weights.

    Raises:
        ConfigError: a layer or readout that only torch runs.
    """
    if config.needs_torch:
        raise ConfigError(
            f"NumPy runs no inspector with graph layer {config.layer} and readout "
            f"{config.readout}; run it by variants.torch_runner"
        )
    joined = _joined(graph_input)
    if config.members == 1:
        return _run_member(weights, config, num_groups, graph_input, joined, num_tuned=num_tuned)
    single = replace(config, members=1)
    outputs = [
        _run_member(
            _of_member(weights, i), single, num_groups, graph_input, joined, num_tuned=num_tuned
        )
        for i in range(config.members)
    ]
    return cast(Array, np.mean(outputs, axis=0))


def _of_member(weights: Weights, number: int) -> Weights:
    prefix = member_prefix(number)
    return {
        name.removeprefix(prefix): array
        for name, array in weights.items()
        if name.startswith(prefix)
    }


def _run_member(
    weights: Weights,
    config: InspectorConfig,
    num_groups: int,
    graph_input: InspectorInput,
    joined: Array,
    *,
    num_tuned: int,
) -> Array:
    h = _stage(weights, "first", config, graph_input, joined)(graph_input.features)
    num_kept = config.num_layers(num_groups) - 1 - num_tuned
    for name, times in (("shared", num_kept), ("tuned", num_tuned)):
        if times:
            stage = _stage(weights, name, config, graph_input, joined)
            for _ in range(times):
                h = stage(h)
    out = np.concatenate([_readout(weights, config, num_groups, h), graph_input.context])
    for i in range(config.mlp_layers - 1):
        out = np.maximum(_linear(weights, f"mlp.{i}", out), 0)
    out = _linear(weights, f"mlp.{config.mlp_layers - 1}", out)
    return out if config.output == "linear" else _leaky_relu(out, CONV_NEGATIVE_SLOPE)


def _stage(
    weights: Weights,
    prefix: str,
    config: InspectorConfig,
    graph_input: InspectorInput,
    joined: Array,
) -> Callable[[Array], Array]:
    """One graph layer and its update, with what does not change between its runs made ready."""
    conv = _gcn(weights, f"{prefix}.conv", joined)
    if config.update == "gru":
        return _gru(weights, f"{prefix}.gru", conv)
    if prefix == "first":
        return lambda h: _leaky_relu(conv(h), CONV_NEGATIVE_SLOPE)
    scale, shift = weights[f"{prefix}.norm.weight"], weights[f"{prefix}.norm.bias"]

    def residual(h: Array) -> Array:
        centred = h - h.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        normed = centred / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON)) * scale + shift
        return h + _leaky_relu(conv(normed), CONV_NEGATIVE_SLOPE)

    return residual


def _gru(weights: Weights, prefix: str, conv: Conv) -> Callable[[Array], Array]:
    """GRU cell on (input: h, state: the convolution); columns of h that it lacks are zeros."""
    on_input, on_state = weights[f"{prefix}.weight_ih"].T, weights[f"{prefix}.weight_hh"].T
    input_bias, state_bias = weights[f"{prefix}.bias_ih"], weights[f"{prefix}.bias_hh"]
    width = len(on_state)

    def update(h: Array) -> Array:
        y = _leaky_relu(conv(h), CONV_NEGATIVE_SLOPE)
        from_input = h @ on_input[: h.shape[1]]
        from_input += input_bias
        from_state = y @ on_state
        from_state += state_bias
        gates = _sigmoid(from_input[:, : 2 * width] + from_state[:, : 2 * width])
        from_state[:, 2 * width :] *= gates[:, :width]
        from_state[:, 2 * width :] += from_input[:, 2 * width :]
        new = np.tanh(from_state[:, 2 * width :])
        y -= new
        y *= gates[:, width:]
        y += new
        return y

    return update


def _gcn(weights: Weights, prefix: str, mixed: Array) -> Conv:
    weight, bias = weights[f"{prefix}.linear.weight"].T, weights[f"{prefix}.linear.bias"]
    return lambda h: mixed @ (h @ weight) + bias


def _readout(weights: Weights, config: InspectorConfig, num_groups: int, h: Array) -> Array:
    """All embeddings to one vector."""
    if config.readout == "max":
        return cast(Array, h.max(axis=0))
    return _set2set(weights, config.num_set2set_steps(num_groups), h)


def _set2set(weights: Weights, num_steps: int, h: Array) -> Array:
    hidden = h.shape[1]
    on_both = weights["readout.lstm.weight_ih"].T.copy()
    on_both[:hidden] += weights["readout.lstm.weight_hh"].T
    bias = weights["readout.lstm.bias_ih"] + weights["readout.lstm.bias_hh"]
    state = np.zeros(2 * hidden, dtype=np.float32)
    cell = np.zeros(hidden, dtype=np.float32)
    for _ in range(num_steps):
        gates = state @ on_both + bias
        update = np.tanh(gates[2 * hidden : 3 * hidden])
        gates = _sigmoid(gates)
        cell = gates[hidden : 2 * hidden] * cell + gates[:hidden] * update
        state[:hidden] = gates[3 * hidden :] * np.tanh(cell)
        state[hidden:] = _softmax(h @ state[:hidden]) @ h
    return state


def _joined(graph_input: InspectorInput) -> Array:
    """Normalised adjacency of groups, shape [M, M], for all layers of all members."""
    looped = _adjacency(graph_input) + np.eye(graph_input.num_groups, dtype=np.float32)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    mixed: Array = looped * scale[:, None] * scale[None, :]
    return mixed


def _adjacency(graph_input: InspectorInput) -> Array:
    """Shape [M, M], 1 where two groups are joined, else 0."""
    adjacency = np.zeros((graph_input.num_groups, graph_input.num_groups), dtype=np.float32)
    adjacency[graph_input.edges[:, 0], graph_input.edges[:, 1]] = 1
    adjacency[graph_input.edges[:, 1], graph_input.edges[:, 0]] = 1
    return adjacency


def _linear(weights: Weights, name: str, x: Array) -> Array:
    return cast(Array, x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])


def _leaky_relu(x: Array, slope: float) -> Array:
    return cast(Array, np.maximum(x, np.float32(slope) * x))


def _sigmoid(x: Array) -> Array:
    """Sigmoid by tanh, which neither overflows nor warns."""
    half = np.float32(0.5)
    out: Array = np.tanh(half * x)
    out *= half
    out += half
    return out


def _softmax(x: Array) -> Array:
    """Over the last axis."""
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    return cast(Array, weight / weight.sum(axis=-1, keepdims=True))
