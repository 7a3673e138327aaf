"""What Driple's kernel model says of kernels that others measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from driple.catalog import Device, device_named
from driple.graph.datatypes import NUMBER_OF
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import GpuModel, shipped_calibration
from driple.simulate.gpu_kernels import Runtime, kernel_seconds
from driple.simulate.gpu_times import (
    EMPTY_KERNEL_S,
    PIPES,
    GpuEfficiency,
    most_shares,
    peak_seconds,
)
from driple.simulate.optable import OpTable
from scripts.fits.calibration_gpu import gpu_model_of

__all__ = [
    "CHIPS",
    "attention_ops",
    "chip_of",
    "expert_ops",
    "kernel_us",
    "model_without",
    "product_ops",
]

FloatArray = npt.NDArray[np.float64]
_BF16 = NUMBER_OF["DT_BFLOAT16"]
_RUNTIME = Runtime()
# Devices of one chip, whatever their memory, clock and host; the B300 is a B200 with other FP4.
CHIPS = {
    "A100-80G": "GA100", "H100": "GH100", "H200": "GH100", "B200": "GB100", "GB200": "GB100",
    "B300": "GB100", "GB300": "GB100", "L40S": "AD102", "RTXPRO6000-Server": "GB202",
}  # fmt: skip


def chip_of(device: str) -> str:
    """The chip of a device in the tables."""
    return CHIPS[device]


def product_ops(shapes: pd.DataFrame) -> OpTable:
    """Products of layers, with rows `m`, columns `n` and depth `k`, in bfloat16."""
    sides = shapes[["m", "n", "k"]].to_numpy().tolist()
    return OpTable.of([
        OpSignature(
            "matmul",
            (Tensor((m, k), _BF16), Tensor((k, n), _BF16, is_parameter=True)),
            (Tensor((m, n), _BF16),),
        )
        for m, n, k in sides
    ])  # fmt: skip


def attention_ops(shapes: pd.DataFrame) -> OpTable:
    """Causal attention, forward, in bfloat16."""
    columns = ["batch", "length", "heads", "kv_heads", "head_size"]
    ops = []
    for batch, length, heads, kv_heads, size in shapes[columns].to_numpy().tolist():
        query = Tensor((batch, heads, length, size), _BF16)
        key = Tensor((batch, kv_heads, length, size), _BF16)
        ops.append(OpSignature("attention", (query, key, key), (query,), (("causal", (1,)),)))
    return OpTable.of(ops)


def expert_ops(shapes: pd.DataFrame) -> OpTable:
    """Gated experts with as many tokens each, in bfloat16: their three products as one."""
    ops = []
    columns = ["tokens", "topk", "experts", "hidden", "inner"]
    for tokens, topk, experts, hidden, inner in shapes[columns].to_numpy().tolist():
        rows = max(tokens * topk // experts, 1)
        ops.append(OpSignature(
            "batch_matmul",
            (
                Tensor((experts, rows, hidden), _BF16),
                Tensor((experts, hidden, 3 * inner), _BF16, is_parameter=True),
            ),
            (Tensor((experts, rows, 3 * inner), _BF16),),
        ))  # fmt: skip
    return OpTable.of(ops)


def _shipped_model() -> GpuModel:
    model = gpu_model_of(shipped_calibration())
    return model


def model_without(names: Iterable[str]) -> GpuModel:
    """The shipped model, to which some devices have no rows of their own.

    Generations stay: they were fitted with all devices.
    """
    model, out = _shipped_model(), set(names)
    kept = {name: own for name, own in model.devices.measured.items() if name not in out}
    return replace(model, devices=replace(model.devices, measured=kept))


def kernel_us(ops: OpTable, device: Device | str, model: GpuModel | None = None) -> FloatArray:
    """Microseconds of each op's kernel on a device, shape [n]; no launch, as in a CUDA graph."""
    spec = device_named(device) if isinstance(device, str) else device
    efficiency, _ = (model or _shipped_model()).of(spec, 1.0)
    return 1e6 * _seconds(ops, spec, efficiency)


def _seconds(ops: OpTable, device: Device, efficiency: GpuEfficiency) -> FloatArray:
    peaks = peak_seconds(ops, device)
    shares = efficiency.kernel_shares(peaks.facts, _RUNTIME)
    own = np.array([getattr(efficiency.shares, pipe) for pipe in PIPES])[peaks.pipes]
    reached = np.minimum(shares[:, 0] * own, most_shares(peaks.pipes))
    seconds: FloatArray = kernel_seconds(
        peaks.compute_s / reached,
        peaks.memory_s / (shares[:, 1] * efficiency.shares.memory),
        np.full(len(reached), EMPTY_KERNEL_S),
        np.zeros(len(reached)),
        np.zeros(len(reached)),
        sharpness=efficiency.kernels.sharpness,
        xp=np,
    )
    return seconds
