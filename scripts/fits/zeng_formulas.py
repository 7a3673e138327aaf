"""Zeng's equations that only the comparison with the published runs uses.

FLOPs of a network -> seconds of a device, as published and with measured speed

Y. Zeng et al., "Modeling the Training Iteration Time for Heterogeneous Distributed Deep Learning
Systems", Int. J. of Intelligent Systems, 2023; what `driple predict` uses of it is in
`driple.analytic.zeng`. All take numbers or arrays that broadcast; workers are the last axis.
"""

from __future__ import annotations

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "BACKWARD_RATIO",
    "backward_seconds",
    "convolution_flops",
    "cpu_seconds",
    "dense_flops",
    "equal_workers_seconds",
    "forward_flops",
    "forward_seconds",
    "gpu_seconds",
    "iteration_flops",
    "network_bound_seconds",
    "window_flops",
]

# The gradient of a matrix product is two products of its size: for weights and for input.
BACKWARD_RATIO = 2.0


def window_flops(in_channels: Numbers, height: Numbers, width: Numbers) -> FloatArray:
    """FLOPs of one element of a convolution's output, bias included (equation 3)."""
    return as_array(in_channels) * as_array(height) * as_array(width) * 2


def convolution_flops(
    in_channels: Numbers,
    window: tuple[Numbers, Numbers],
    out_channels: Numbers,
    out_size: tuple[Numbers, Numbers],
) -> FloatArray:
    """FLOPs of a convolution for one example (equations 4 and 20)."""
    elements = as_array(out_channels) * as_array(out_size[0]) * as_array(out_size[1])
    return window_flops(in_channels, *window) * elements


def dense_flops(inputs: Numbers, outputs: Numbers) -> FloatArray:
    """FLOPs of a fully connected layer for one example (equation 4 with windows of 1)."""
    return convolution_flops(inputs, (1, 1), outputs, (1, 1))


def forward_flops(layers: Numbers) -> FloatArray:
    """FLOPs of the forward pass of one example: the sum over its layers (equation 21)."""
    return as_array(as_array(layers).sum(axis=-1))


def iteration_flops(batch_size: Numbers, forward: Numbers, backward: Numbers) -> FloatArray:
    """FLOPs of an iteration (equation 27)."""
    return as_array(batch_size) * as_array(forward) + as_array(backward)


def cpu_seconds(flops: Numbers, clock_hz: Numbers, simd: Numbers = 2) -> FloatArray:
    """Seconds of a CPU core that does `simd` FLOPs a cycle (equation 28)."""
    return as_array(flops) / (positive("clock_hz", clock_hz) * positive("simd", simd))


def gpu_seconds(
    flops: Numbers, clock_hz: Numbers, num_cores: Numbers, flops_per_cycle: Numbers = 1
) -> FloatArray:
    """Seconds of a GPU (equation 33); 2 FLOPs a cycle with fused multiply-adds."""
    rate = positive("clock_hz", clock_hz) * positive("num_cores", num_cores)
    return as_array(flops) / (rate * positive("flops_per_cycle", flops_per_cycle))


def equal_workers_seconds(
    compute_s: Numbers, push_s: Numbers, pull_s: Numbers, num_workers: Numbers
) -> FloatArray:
    """Seconds of an iteration of equal workers (equation 29)."""
    count = positive("num_workers", num_workers)
    return as_array(compute_s) + count * (as_array(push_s) + as_array(pull_s))


def network_bound_seconds(compute_s: Numbers, push_s: Numbers, pull_s: Numbers) -> FloatArray:
    """Seconds of an iteration whose pushes never pause (equation 32).

    Args:
        compute_s: shape [..., workers]; only the fastest matters.
        push_s: as in `unequal_workers_seconds`.
        pull_s: as there.

    Raises:
        ConfigError: no worker.
    """
    times = as_array(compute_s)
    if not times.ndim or not times.shape[-1]:
        raise ConfigError("an iteration needs one worker or more; give their times")
    return as_array(times.min(axis=-1) + times.shape[-1] * (as_array(push_s) + as_array(pull_s)))


def forward_seconds(
    batch_size: Numbers,
    forward_flops: Numbers,
    flops_per_s: Numbers,
    *,
    copied_bytes: Numbers = 0.0,
    copy_s_per_byte: Numbers = 0.0,
) -> FloatArray:
    """Time of a forward pass at the measured speed of the device, seconds (section 5.3).

    Args:
        batch_size: examples per worker.
        forward_flops: FLOPs of one example (equation 21).
        flops_per_s: measured speed of the device, not its peak.
        copied_bytes: examples and parameters copied from host to device.
        copy_s_per_byte: time of that copy per byte.
    """
    work = as_array(batch_size) * as_array(forward_flops) / positive("flops_per_s", flops_per_s)
    return work + as_array(copied_bytes) * as_array(copy_s_per_byte)


def backward_seconds(
    batch_size: Numbers,
    forward_flops: Numbers,
    flops_per_s: Numbers,
    *,
    parameters: Numbers = 0.0,
    parameter_s: Numbers = 0.0,
) -> FloatArray:
    """Time of a backward pass, seconds: proportional to the batch, plus updates per parameter.

    Equation 22 has only the parameters; each example costs twice its forward pass.

    Args:
        batch_size: examples per worker.
        forward_flops: FLOPs of one example.
        flops_per_s: measured speed of the device.
        parameters: number of weights and biases.
        parameter_s: time of the device per parameter, seconds.
    """
    work = BACKWARD_RATIO * as_array(batch_size) * as_array(forward_flops)
    return work / positive("flops_per_s", flops_per_s) + as_array(parameters) * as_array(
        parameter_s
    )
