"""A model of GPUs with made-up weights, for laws that hold whatever was fitted."""

from __future__ import annotations

import numpy as np

from driple.simulate.calibration import GpuModel
from driple.simulate.gpu_kernels import CHANNEL_RATES, INPUTS, GpuKernels
from driple.simulate.gpu_rates import GpuReached, GpuShares, HostPace
from driple.simulate.kernel_picks import PICKS, TURNS
from driple.simulate.present_kernels import STARTS, PresentKernels

KINDS = ("add", "conv", "matmul", "relu", "batch_norm")


def kernels(seed: int = 0, size: float = 0.3) -> GpuKernels:
    """Weights drawn at random."""
    draw = np.random.default_rng(seed)
    count, width = len(INPUTS), 8

    def drawn(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return size * draw.standard_normal(shape)

    return GpuKernels(
        kinds=KINDS,
        inputs=INPUTS,
        linear=drawn(count, 2),
        hidden=drawn(count, width),
        hidden_bias=drawn(width),
        second=drawn(width, width),
        second_bias=drawn(width),
        out=drawn(width, 2),
        kind_offset=drawn(len(KINDS), 2),
        kind_last_offset=drawn(len(KINDS), 2),
        sharpness=3.0,
        start_s=2e-6,
        update_share=0.8,
        channel_rates=1e9 * np.exp(drawn(len(CHANNEL_RATES))),
    )


def present(seed: int = 0) -> PresentKernels:
    """Numbers drawn at random."""
    draw = np.random.default_rng(seed + 2)
    return PresentKernels(
        picks=PICKS,
        starts=STARTS,
        pick=draw.standard_normal((len(PICKS), 2)),
        start_s=2e-6 * np.exp(draw.standard_normal(len(STARTS))),
        turn_s=2e-6 * np.exp(draw.standard_normal(len(TURNS))),
    )


def gpu_model(seed: int = 0, *, op_s: float = 5e-6) -> GpuModel:
    """The same with shares of a few devices."""
    draw = np.random.default_rng(seed + 1)

    def shares() -> GpuShares:
        half, tf32, plain, memory = np.exp(0.3 * draw.standard_normal(4)).tolist()
        return GpuShares(half=half, tf32=tf32, plain=plain, memory=memory)

    return GpuModel(
        kernels=kernels(seed),
        devices=GpuReached(
            measured={"V100": shares()},
            generations={"Ampere": shares(), "Hopper": shares()},
            usual=shares(),
            tensor_fall=0.3,
        ),
        host=HostPace(
            op_s=op_s, torch1_op_s=op_s, tensorflow_op_s=op_s, compiled_s=op_s / 2,
            update_s=op_s / 2, step_s=1e-4, sharpness=6.0,
        ),
        present=present(seed),
    )  # fmt: skip
