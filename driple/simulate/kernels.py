"""How long a device takes for each op: products by tiles and waves, all else by bytes.

    OpSignature -> FLOPs, bytes, sides of its matrix product -> seconds of a kernel -> OpTimes

A product of [m, k] x [k, n] is cut into tiles that fill the multiprocessors in waves; the last wave
may be half empty, and k may be split over tiles where there are too few. The fastest choice of
tile and split counts, as a library picks it. What does not compute is bound by memory. The
parameters are fitted to published measurements (`driple.simulate.calibrate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import prod

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature
from driple.hardware import Device
from driple.opcost import cost_of_graph, cost_of_op
from driple.simulate.plan import OpTimes

__all__ = ["TILES", "Efficiency", "kernel_times", "op_times", "product_of"]

FloatArray = npt.NDArray[np.float64]

# Rows and columns of the tiles that libraries of matrix products have kernels for.
TILES = ((256, 128), (128, 128), (128, 64), (64, 64), (64, 32), (32, 32))
SPLITS = (1, 2, 4, 8, 16, 32)  # parts that k may be cut into
_HALF = frozenset({14, 19})  # data types that tensor cores multiply: BFLOAT16, HALF
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
    if op.op_type in {"Conv2D", "_FusedConv2D"} | _INPUT_GRADIENTS and len(op.inputs) > 1:
        window = [max(n, 1) for n in op.inputs[1].shape or ()]
        if len(window) != 4:
            return None
        n = float(window[2] if op.op_type in _INPUT_GRADIENTS else window[3])
        m = out.elements / n
        return Product(m, n, flops / (2 * m * n)) if m else None
    return None


def kernel_times(
    signatures: tuple[OpSignature, ...], device: Device, efficiency: Efficiency
) -> FloatArray:
    """Seconds of one execution of each op: kernel, and memory in use; shape [num_signatures, 2]."""
    costs = [cost_of_op(op) for op in signatures]
    moved = np.array([c.bytes_read + c.bytes_written for c in costs], dtype=np.float64)
    memory_s = moved / device.bytes_per_s
    kernel_s = memory_s / efficiency.memory
    products = [(i, product_of(op, costs[i].flops)) for i, op in enumerate(signatures)]
    found = [(i, product) for i, product in products if product is not None]
    if found:
        rows = np.array([i for i, _ in found])
        factors = np.array([_factor(signatures[i], efficiency) for i in rows.tolist()])
        half = np.array([signatures[i].outputs[0].dtype in _HALF for i in rows.tolist()])
        sides = np.array([[p.m, p.n, p.k, p.count] for _, p in found], dtype=np.float64)
        computing_s = factors * _product_s(sides, half, device, efficiency)
        kernel_s[rows] = np.maximum(kernel_s[rows], computing_s)
    runs = moved > 0
    kernel_s = np.where(runs, kernel_s + efficiency.kernel_s, 0.0)
    return np.stack([kernel_s, np.minimum(memory_s, kernel_s)], axis=1)


def op_times(graph: OpGraph, device: Device, efficiency: Efficiency) -> OpTimes:
    """How long each op of a graph keeps a device, all its turns together.

    Raises:
        GraphError: the graph does not tell what its ops compute on.
    """
    executions = cost_of_graph(graph).executions.astype(np.float64)
    times = kernel_times(graph.signatures, device, efficiency)[graph.signature_of]
    busy_s, memory_s = times[:, 0], times[:, 1]
    duration_s = np.where(busy_s > 0, np.maximum(busy_s, efficiency.dispatch_s), 0.0)
    return OpTimes(
        duration_s=duration_s * executions,
        busy_s=busy_s * executions,
        memory_s=memory_s * executions,
    )


def _factor(op: OpSignature, efficiency: Efficiency) -> float:
    """How much longer than a plain product of the same sides an op takes."""
    if op.op_type in _FILTER_GRADIENTS:
        return efficiency.filter_gradient
    factor = efficiency.input_gradient if op.op_type in _INPUT_GRADIENTS else 1.0
    window = op.inputs[1].shape if len(op.inputs) > 1 else None
    if window is not None and window[:2] == (3, 3) and _same_size(op):
        single = op.outputs[0].dtype not in _HALF
        factor *= efficiency.winograd if single else 1.0
    return factor


def _same_size(op: OpSignature) -> bool:
    """Whether a convolution keeps height and width, so that its stride is 1."""
    image = op.inputs[2 if op.op_type in _INPUT_GRADIENTS else 0].shape
    made, window = op.outputs[0].shape, op.inputs[1].shape
    if image is None or made is None or window is None or len(window) != 4:
        return False
    inner, outer = window[2], window[3]
    channels = (outer, inner) if op.op_type in _INPUT_GRADIENTS else (inner, outer)
    return prod(image) * channels[1] == prod(made) * channels[0]


def _product_s(
    sides: FloatArray, half: npt.NDArray[np.bool_], device: Device, efficiency: Efficiency
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
