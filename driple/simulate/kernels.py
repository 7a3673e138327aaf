"""How long a device takes for each op: products by tiles and waves, all else by bytes.

    OpTable, Device -> UnitTimes at the device's peaks -> seconds of each kernel -> OpTimes

A product of [m, k] x [k, n] is cut into tiles that fill the multiprocessors in waves; the last wave
may be half empty, and k may be split over tiles where there are too few: the fastest choice of
tile and split counts, as a library picks it. Convolutions with windows of 3 x 3 and 5 x 5 may save
multiplications (Winograd, FFT) at the price of more memory traffic. What does not compute is bound
by memory. How far all this falls short of the peaks is fitted (`scripts.fits.device_fit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.errors import ConfigError
from driple.simulate.low_products import low_products
from driple.simulate.optable import (
    BIAS_GRADIENT,
    MATMUL,
    MEMORY_KINDS,
    PRODUCT_KINDS,
    WINDOW5,
    OpTable,
)
from driple.step.plan import OpTimes

__all__ = [
    "TILES",
    "DeviceEfficiency",
    "Efficiency",
    "Kernels",
    "UnitTimes",
    "emulated_ops",
    "kernel_times",
    "op_times",
    "unit_times",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Rows and columns of the tiles that libraries of matrix products have kernels for, and the share of
# the peak that one reaches: small tiles read more for what they compute.
TILES = ((256, 128), (128, 128), (128, 64), (64, 64), (64, 32), (32, 32))
TILE_SHARES = (1.0, 1.0, 0.95, 0.85, 0.7, 0.5)
RAMP = 40.0  # steps of k that a tile loses at its begin and end
SPLITS = (1, 2, 4, 8, 16, 32)  # parts that k may be cut into


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """What kernels make of a device's rates, on every device alike; factors on times.

    Attributes:
        product: on the time of a product, for each of `PRODUCT_KINDS`.
        tensor_product: the same on tensor cores.
        gradient: on that of a convolution's gradient, by its input and by its filter.
        tensor_gradient: the same on tensor cores.
        saving: on the time of what Winograd's algorithm leaves of products with windows of 3 x 3
            and of 5 x 5; not on tensor cores.
        saving_traffic: how often such a product moves its bytes.
        layout: how often a convolution on tensor cores moves its bytes again, between the layout
            of the program and that of the kernel, where no compiler chooses layouts.
        window_start: on the time to start a convolution, a pool or a norm.
        memory: on the time to move an op's bytes, for each of `MEMORY_KINDS`.
        half_memory: on that again in half precision.
        fused_memory: on that again where a compiler fuses ops.
        fused_start: on the time to start a kernel where a compiler fuses ops.
    """

    product: tuple[float, ...]
    tensor_product: tuple[float, ...]
    gradient: tuple[float, ...]
    tensor_gradient: tuple[float, ...]
    saving: tuple[float, ...]
    saving_traffic: tuple[float, ...]
    layout: float
    window_start: float
    memory: tuple[float, ...]
    half_memory: tuple[float, ...]
    fused_memory: tuple[float, ...]
    fused_start: float

    def __post_init__(self) -> None:
        lengths = {"product": len(PRODUCT_KINDS), "tensor_product": len(PRODUCT_KINDS)}
        lengths |= dict.fromkeys(("memory", "half_memory", "fused_memory"), len(MEMORY_KINDS))
        for field in fields(self):
            _check_numbers(field.name, getattr(self, field.name), lengths.get(field.name, 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceEfficiency:
    """What one device reaches.

    Attributes:
        compute: share of the peak FLOP/s of its plain cores.
        tensor: share of the peak FLOP/s of its tensor cores.
        memory: share of its peak bytes/s.
        start_s: seconds to start a kernel.
    """

    compute: float
    tensor: float
    memory: float
    start_s: float

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_numbers(field.name, getattr(self, field.name), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """How a device's kernels fall short of its peaks.

    Attributes:
        kernels: what holds for every device.
        device: what this one reaches.
        fused: whether a compiler fuses ops (XLA).
        memory_activity: how much longer memory is seen in use than its bytes take at the rate that
            kernels reach.
    """

    kernels: Kernels
    device: DeviceEfficiency
    fused: bool = False
    memory_activity: float = 1.0


def _check_numbers(name: str, value: object, length: int) -> None:
    """A positive number, or so many of them."""
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        odd = isinstance(number, bool) or not isinstance(number, int | float)
        if odd or not 0 < number < float("inf"):
            raise ConfigError(f"efficiency {name} must be positive numbers, got {value!r}")
    if isinstance(value, tuple) and len(value) != length:
        raise ConfigError(f"efficiency {name} needs {length} numbers, got {len(value)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitTimes:
    """Seconds of kernels at the peaks of a device; arrays of length n.

    Attributes:
        table: the ops.
        product_s: of the product, if any.
        saved_s: of the product that Winograd's algorithm leaves; infinite where it does not apply.
        memory_s: to move the bytes.
        tensor: whether tensor cores multiply.
    """

    table: OpTable
    product_s: FloatArray
    saved_s: FloatArray
    memory_s: FloatArray
    tensor: BoolArray

    def seconds(
        self,
        kernels: Kernels,
        device: DeviceEfficiency | Mapping[str, FloatArray],
        fused: bool | BoolArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Seconds that each kernel runs, and those to start it; 0 where nothing is moved.

        Args:
            kernels: factors on the times.
            device: what is reached of the peaks; one for all ops, or arrays of length n by name.
            fused: whether ops are fused; a bool, or an array of length n.
        """
        table = self.table
        reached = device if isinstance(device, Mapping) else asdict(device)
        plain = 1.0 / np.asarray(reached["compute"])
        gradient = np.array([1.0, *kernels.gradient])[table.gradient]
        on_tensor = np.array(kernels.tensor_product)[table.product_kind]
        on_tensor = on_tensor * np.array([1.0, *kernels.tensor_gradient])[table.gradient]
        factor = np.where(self.tensor, on_tensor / np.asarray(reached["tensor"]), plain)
        base_s = self.product_s * gradient * factor
        left_s = self.saved_s * gradient * plain
        moved_s = self.memory_s / np.asarray(reached["memory"])
        memory_s = moved_s * np.array(kernels.memory)[table.memory_kind]
        fused_memory = np.array(kernels.fused_memory)[table.memory_kind]
        memory_s = memory_s * np.where(fused, fused_memory, 1.0)
        # A compiler joins the sums over biases with what comes before, half precision or not.
        joined = np.asarray(fused) & (table.memory_kind == BIAS_GRADIENT)
        half_memory = np.array(kernels.half_memory)[table.memory_kind]
        memory_s = memory_s * np.where(table.half & ~joined, half_memory, 1.0)
        turned = self.tensor & (table.product_kind != MATMUL) & ~np.asarray(fused)
        turning_s = np.where(turned, moved_s, 0.0)
        direct_s = np.maximum(base_s * np.array(kernels.product)[table.product_kind], memory_s)
        direct_s = direct_s + turning_s * kernels.layout
        window = (table.product_kind == WINDOW5).astype(np.int64)
        saving = np.array(kernels.saving)[window]
        traffic = np.array(kernels.saving_traffic)[window]
        saved_s = left_s * saving + memory_s * traffic
        start_s = np.asarray(reached["start_s"]) * np.where(
            table.windowed, kernels.window_start, 1.0
        )
        start_s = start_s * np.where(fused, kernels.fused_start, 1.0)
        there = table.moved > 0
        return np.where(there, np.minimum(direct_s, saved_s), 0.0), np.where(there, start_s, 0.0)


def emulated_ops(table: OpTable, device: Device) -> BoolArray:
    """Which ops are in bfloat16 on a device without it, and so run in single precision, [n]."""
    emulated: BoolArray = table.bfloat16 & (not (table.bfloat16.any() and device.bf16_flops > 0))
    return emulated


def unit_times(table: OpTable, device: Device) -> UnitTimes:
    """Seconds of kernels at the peaks of a device.

    Where a device has no bfloat16 (Volta, Turing and before), such products run on the plain cores
    in single precision; so do those in single precision that may not use TF32.
    """
    # Libraries of later generations fill up sides that are no multiples.
    fits = table.fits_tensor_cores | (device.architecture.tensor_sides == 1)
    emulated = emulated_ops(table, device)
    half = table.half & ~emulated
    on_plain = emulated | (table.no_tf32 & ~table.half)
    tensor = np.where(half, fits & device.tensor_cores, device.tf32 & ~on_plain)
    at_half = half & (fits | (not device.tensor_cores))
    rows = np.flatnonzero(table.sides[:, 3] > 0)
    product_s = np.zeros(len(table.moved))
    if len(rows):
        single = np.where(on_plain, device.fp32_flops, device.matrix_flops)
        peak = np.where(at_half, device.half_flops, single)[rows]
        product_s[rows] = _product_s(table.sides[rows], peak, device)
    saved_s = np.full(len(table.moved), np.inf)
    rows = np.flatnonzero((table.saved_sides[:, 3] > 0) & ~tensor)
    if len(rows):
        peak = np.where(at_half, device.half_flops, device.fp32_flops)[rows]
        saved_s[rows] = _product_s(table.saved_sides[rows], peak, device)
    return UnitTimes(
        table=table,
        product_s=product_s,
        saved_s=saved_s,
        memory_s=table.moved / device.bytes_per_s,
        tensor=tensor & (table.sides[:, 3] > 0),
    )


def kernel_times(table: OpTable, device: Device, efficiency: Efficiency) -> FloatArray:
    """Seconds of one execution of each op: in all, kernel running, memory in use; shape [n, 3]."""
    low_products(table, device)  # refuses formats that a processor lacks
    units = unit_times(table, device)
    kernel_s, start_s = units.seconds(efficiency.kernels, efficiency.device, efficiency.fused)
    active_s = units.memory_s / efficiency.device.memory * efficiency.memory_activity
    active_s = active_s * np.array(efficiency.kernels.memory)[table.memory_kind]
    return np.stack([kernel_s + start_s, kernel_s, np.minimum(active_s, kernel_s)], axis=1)


def op_times(
    table: OpTable,
    kind_of: npt.NDArray[np.integer],
    executions: npt.NDArray[np.int64],
    device: Device,
    efficiency: Efficiency,
) -> OpTimes:
    """How long each op of a graph keeps a device, all its turns together.

    Args:
        table: of the kinds of ops.
        kind_of: shape [num_nodes], row of each node in the table.
        executions: shape [num_nodes], turns of each node in a step.
        device: that runs them.
        efficiency: what it reaches of its peaks.
    """
    times = kernel_times(table, device, efficiency)[kind_of]
    return OpTimes(
        duration_s=times[:, 0] * executions,
        busy_s=times[:, 1] * executions,
        memory_s=times[:, 2] * executions,
    )


def _product_s(sides: FloatArray, peak: FloatArray, device: Device) -> FloatArray:
    """Seconds of products, sides [p, 4], at `peak` FLOP/s, [p]; the fastest tile and split."""
    m, n, k, count = (sides[:, i, None, None] for i in range(4))
    rows = np.array([tile[0] for tile in TILES])[None, :, None]
    columns = np.array([tile[1] for tile in TILES])[None, :, None]
    splits = np.array(SPLITS)[None, None, :]
    blocks = np.ceil(m / rows) * np.ceil(n / columns) * count * splits
    waves = np.ceil(blocks / device.multiprocessors)
    per_block = 2 * rows * columns * (k / splits + RAMP)
    rate = peak[:, None, None] * np.array(TILE_SHARES)[None, :, None] / device.multiprocessors
    # A split adds up its parts through memory.
    adding = (splits > 1) * splits * m * n * count * 4 / device.bytes_per_s
    seconds: FloatArray = (waves * per_block / rate + adding).min(axis=(1, 2))
    return seconds
