"""How long a device takes for each op: products by tiles and waves, all else by bytes.

    OpSignature -> FLOPs, bytes, sides of its matrix product -> seconds of a kernel -> OpTimes

A product of [m, k] x [k, n] is cut into tiles that fill the multiprocessors in waves; the last wave
may be half empty, and k may be split over tiles where there are too few. The fastest choice of
tile and split counts, as a library picks it. What does not compute is bound by memory. The
parameters are fitted to published measurements (`driple.simulate.calibrate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import prod

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.graph.signature import OpSignature
from driple.hardware import Device
from driple.opcost import cost_of_op
from driple.simulate.plan import OpTimes

__all__ = ["TILES", "Efficiency", "OpTable", "kernel_times", "op_times", "product_of"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Rows and columns of the tiles that libraries of matrix products have kernels for.
TILES = ((256, 128), (128, 128), (128, 64), (64, 64), (64, 32), (32, 32))
SPLITS = (1, 2, 4, 8, 16, 32)  # parts that k may be cut into
_HALF = frozenset({14, 19})  # data types that tensor cores multiply: BFLOAT16, HALF
_CONVOLUTIONS = frozenset({"Conv2D", "_FusedConv2D"})
_INPUT_GRADIENTS = frozenset({"Conv2DBackpropInput"})
_FILTER_GRADIENTS = frozenset({"Conv2DBackpropFilter"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """What a device reaches of its peaks.

    Attributes:
        tiles: share of peak FLOP/s within a full tile, for each of `TILES`.
        half_tiles: factor on `tiles` for half precision.
        ramp: steps of k that a tile loses at its begin and end.
        winograd: factor on the time of a 3 x 3 convolution of stride 1 in single precision, which
            saves multiplications.
        input_gradient: factor on the time of a convolution's gradient by its input.
        filter_gradient: factor on the time of a convolution's gradient by its filter.
        memory: share of peak bytes/s.
        kernel_s: least time of a kernel.
        dispatch_s: least time between the starts of two ops.
    """

    tiles: tuple[float, ...]
    half_tiles: float
    ramp: float
    winograd: float
    input_gradient: float
    filter_gradient: float
    memory: float
    kernel_s: float
    dispatch_s: float

    def __post_init__(self) -> None:
        numbers = [*self.tiles, *(getattr(self, f.name) for f in fields(self) if f.name != "tiles")]
        if len(self.tiles) != len(TILES) or not all(n >= 0 and np.isfinite(n) for n in numbers):
            raise ConfigError(
                f"efficiencies need {len(TILES)} tiles and finite numbers >= 0, got {asdict(self)}"
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Efficiency:
        """From plain JSON; raises ConfigError on unknown or missing fields."""
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise ConfigError(f"efficiencies have fields too many or too few: {odd}")
        tiles = tuple(float(str(n)) for n in values["tiles"])  # type: ignore[attr-defined]  # a list
        rest = {name: float(str(values[name])) for name in names - {"tiles"}}
        return cls(tiles=tiles, **rest)


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product: `count` times [m, k] x [k, n]."""

    m: float
    n: float
    k: float
    count: float = 1.0


def product_of(op: OpSignature, flops: float) -> Product | None:
    """The matrix product that an op comes to; None if it is none, or its shapes are unknown.

    Args:
        op: what it computes on.
        flops: its floating-point operations, 2 m n k.
    """
    if flops <= 0 or not op.outputs or op.outputs[0].shape is None:
        return None
    out = op.outputs[0]
    if op.op_type.endswith(("MatMul", "MatMulV2", "MatMulV3")):
        shape = [max(n, 1) for n in out.shape or ()]
        m, n = float(shape[-2]), float(shape[-1])
        count = float(prod(shape[:-2]))
        return Product(m, n, flops / (2 * m * n * count), count)
    if op.op_type in _FILTER_GRADIENTS:
        window = [max(n, 1) for n in out.shape or ()]
        m, n = float(prod(window[:-1])), float(window[-1])
        return Product(m, n, flops / (2 * m * n))
    if op.op_type in _CONVOLUTIONS | _INPUT_GRADIENTS and len(op.inputs) > 1:
        window = [max(n, 1) for n in op.inputs[1].shape or ()]
        if len(window) != 4:
            return None
        n = float(window[2] if op.op_type in _INPUT_GRADIENTS else window[3])
        m = out.elements / n
        return Product(m, n, flops / (2 * m * n)) if m else None
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpTable:
    """What decides the time of a kernel, for many ops, as arrays of length n.

    Attributes:
        moved: bytes read and written.
        sides: shape [n, 4], m, n, k and count of the matrix product; zeros where there is none.
        half: whether it computes in half precision.
        is_input_gradient: whether it is a convolution's gradient by its input.
        is_filter_gradient: whether it is a convolution's gradient by its filter.
        is_winograd: whether it is a 3 x 3 convolution of stride 1, or its gradient by the input.
    """

    moved: FloatArray
    sides: FloatArray
    half: BoolArray
    is_input_gradient: BoolArray
    is_filter_gradient: BoolArray
    is_winograd: BoolArray

    @classmethod
    def of(cls, signatures: Sequence[OpSignature]) -> OpTable:
        """The table of some ops."""
        costs = [cost_of_op(op) for op in signatures]
        products = [product_of(op, c.flops) for op, c in zip(signatures, costs, strict=True)]
        sides = [(p.m, p.n, p.k, p.count) if p else (0.0,) * 4 for p in products]
        return cls(
            moved=np.array([c.bytes_read + c.bytes_written for c in costs], dtype=np.float64),
            sides=np.array(sides, dtype=np.float64).reshape(-1, 4),
            half=_marks(signatures, lambda op: op.outputs[:1] and op.outputs[0].dtype in _HALF),
            is_input_gradient=_marks(signatures, lambda op: op.op_type in _INPUT_GRADIENTS),
            is_filter_gradient=_marks(signatures, lambda op: op.op_type in _FILTER_GRADIENTS),
            is_winograd=_marks(signatures, _is_winograd),
        )


def _marks(signatures: Sequence[OpSignature], holds: Callable[[OpSignature], object]) -> BoolArray:
    return np.array([bool(holds(op)) for op in signatures], dtype=np.bool_)


def kernel_times(table: OpTable, device: Device, efficiency: Efficiency) -> FloatArray:
    """Seconds of one execution of each op: kernel, and memory in use; shape [n, 2]."""
    memory_s = table.moved / device.bytes_per_s
    kernel_s = memory_s / efficiency.memory
    rows = np.flatnonzero(table.sides[:, 3] > 0)
    if len(rows):
        factor = np.where(table.is_input_gradient, efficiency.input_gradient, 1.0)
        factor = np.where(table.is_filter_gradient, efficiency.filter_gradient, factor)
        factor *= np.where(table.is_winograd & ~table.half, efficiency.winograd, 1.0)
        computing_s = _product_s(table.sides[rows], table.half[rows], device, efficiency)
        kernel_s[rows] = np.maximum(kernel_s[rows], factor[rows] * computing_s)
    kernel_s = np.where(table.moved > 0, kernel_s + efficiency.kernel_s, 0.0)
    return np.stack([kernel_s, np.minimum(memory_s, kernel_s)], axis=1)


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
    busy_s, memory_s = times[:, 0], times[:, 1]
    duration_s = np.where(busy_s > 0, np.maximum(busy_s, efficiency.dispatch_s), 0.0)
    return OpTimes(
        duration_s=duration_s * executions,
        busy_s=busy_s * executions,
        memory_s=memory_s * executions,
    )


def _is_winograd(op: OpSignature) -> bool:
    """Whether a library may save multiplications: 3 x 3, stride 1, forward or by the input."""
    if op.op_type not in _CONVOLUTIONS | _INPUT_GRADIENTS or len(op.inputs) < 2:
        return False
    window = op.inputs[1].shape
    return window is not None and window[:2] == (3, 3) and _same_size(op)


def _same_size(op: OpSignature) -> bool:
    """Whether a convolution keeps height and width, so that its stride is 1."""
    position = 2 if op.op_type in _INPUT_GRADIENTS else 0
    image = op.inputs[position].shape if position < len(op.inputs) else None
    made, window = op.outputs[0].shape, op.inputs[1].shape
    if image is None or made is None or window is None or len(window) != 4:
        return False
    inner, outer = window[2], window[3]
    channels = (outer, inner) if op.op_type in _INPUT_GRADIENTS else (inner, outer)
    return prod(image) * channels[1] == prod(made) * channels[0]


def _product_s(
    sides: FloatArray, half: BoolArray, device: Device, efficiency: Efficiency
) -> FloatArray:
    """Seconds of matrix products, the fastest tile and split of each; `sides` is [p, 4]."""
    m, n, k, count = (sides[:, i, None, None] for i in range(4))
    rows = np.array([tile[0] for tile in TILES])[None, :, None]
    columns = np.array([tile[1] for tile in TILES])[None, :, None]
    splits = np.array(SPLITS)[None, None, :]
    blocks = np.ceil(m / rows) * np.ceil(n / columns) * count * splits
    waves = np.ceil(blocks / device.multiprocessors)
    per_block = 2 * rows * columns * (k / splits + efficiency.ramp)
    peak = np.where(half, device.half_flops * efficiency.half_tiles, device.fp32_flops)
    rate = peak[:, None, None] * np.array(efficiency.tiles)[None, :, None] / device.multiprocessors
    # A split adds up its parts through memory.
    adding = (splits > 1) * splits * m * n * count * 4 / (device.bytes_per_s * efficiency.memory)
    seconds: FloatArray = (waves * per_block / rate + adding).min(axis=(1, 2))
    return seconds
