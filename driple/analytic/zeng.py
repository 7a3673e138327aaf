"""Iteration time of heterogeneous parameter-server clusters, after Zeng et al.

FLOPs of a network -> seconds of each worker -> queue of pushes at the server -> seconds in all

Y. Zeng et al., "Modeling the Training Iteration Time for Heterogeneous Distributed Deep Learning
Systems", Int. J. of Intelligent Systems, 2023. Each function is one equation or algorithm of it.
All take numbers or arrays that broadcast; workers are the last axis. The model is synchronous
training with one server, whose link is the bottleneck.
"""

from __future__ import annotations

import numpy as np

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "BIAS_FLOPS",
    "SERIES_TERMS",
    "backward_flops",
    "bias_and_weight_flops",
    "distributed_gpu_seconds",
    "first_gradient_seconds",
    "sigmoid_flops",
    "transfer_s",
    "unequal_workers_seconds",
]

SERIES_TERMS = 20  # of the exponential's Taylor series, as the authors found it
BIAS_FLOPS = 2.0  # equation 24
_UPDATE_AND_PRODUCTS = 6.0  # equation 23, without the sigmoid


def sigmoid_flops(terms: Numbers = SERIES_TERMS) -> FloatArray:
    """FLOPs of a sigmoid whose exponential is a series of `terms` terms (equations 25 and 26)."""
    return 2 + 1 + 4 * as_array(terms)


def bias_and_weight_flops(terms: Numbers = SERIES_TERMS) -> tuple[float, FloatArray]:
    """Backward FLOPs of one bias and of one weight (equations 23 and 24)."""
    return BIAS_FLOPS, _UPDATE_AND_PRODUCTS + sigmoid_flops(terms)


def backward_flops(
    weights: Numbers, biases: Numbers = 0, *, flops_per_weight: Numbers | None = None
) -> FloatArray:
    """FLOPs of the backward pass of an iteration (equation 22); the batch size is not in it.

    Args:
        weights: parameters but the biases.
        biases: biases.
        flops_per_weight: by default that of equation 23, which is 89; the authors' own tables come
            from 85 and no biases.
    """
    per_bias, per_weight = bias_and_weight_flops()
    chosen = per_weight if flops_per_weight is None else as_array(flops_per_weight)
    return as_array(weights) * chosen + as_array(biases) * per_bias


def transfer_s(nbytes: Numbers, bits_per_s: Numbers) -> FloatArray:
    """Seconds of parameters or gradients on the server's link (equations 30 and 31)."""
    return 8 * as_array(nbytes) / positive("bits_per_s", bits_per_s)


def unequal_workers_seconds(compute_s: Numbers, push_s: Numbers, pull_s: Numbers) -> FloatArray:
    """Seconds of an iteration of unlike workers (algorithm 1).

    Pushes queue at the server's link in the order in which workers finish computing. With times
    sorted, the last push ends at max over i of (time i + pushes from i on).

    Args:
        compute_s: shape [..., workers].
        push_s: shape [...], seconds of one worker's gradients.
        pull_s: shape [...], seconds of the parameters for one worker.

    Raises:
        ConfigError: no worker.
    """
    times = np.sort(as_array(compute_s), axis=-1)
    count = times.shape[-1] if times.ndim else 0
    if count < 1:
        raise ConfigError("an iteration needs one worker or more; give their times")
    push = as_array(push_s)[..., None]
    ends = (times + push * np.arange(count, 0, -1)).max(axis=-1)
    return as_array(ends + count * as_array(pull_s))


def first_gradient_seconds(
    batch_size: Numbers,
    forward: Numbers,
    backward: Numbers,
    num_pushes: Numbers,
    flops_per_s: Numbers,
) -> FloatArray:
    """Seconds until a GPU has its first gradient to push (algorithm 2, lines 3 and 4)."""
    share = as_array(backward) / positive("num_pushes", num_pushes)
    return (as_array(batch_size) * as_array(forward) + share) / positive("flops_per_s", flops_per_s)


def distributed_gpu_seconds(first_s: Numbers, push_s: Numbers, pull_s: Numbers) -> FloatArray:
    """Seconds of an iteration on GPUs, whose pushes overlap the backward pass (algorithm 2).

    Args:
        first_s: shape [..., workers], of `first_gradient_seconds`.
        push_s: as in `unequal_workers_seconds`.
        pull_s: as there.
    """
    return unequal_workers_seconds(first_s, push_s, pull_s)
