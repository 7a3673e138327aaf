"""Seconds of products in 8 or 4 bits: the tensor cores' higher peak, fewer bytes, and their casts.

    OpTable (low > 0), Device -> seconds at the peaks: computing, bytes, casts

Shares of the higher peak over those in 16 bits are fitted to products of inference builds
(`datasets/runs/kernels`, decision 0065). A tensor is cast once for the two products that read it:
its 16 bits are read once, or twice where one scale needs the largest value first, and its copy and
the transposed copy of it are written. A layer keeps what it would keep in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.errors import SettingError
from driple.graph.low_precision import LOW_PRECISIONS
from driple.simulate.optable import OpTable

__all__ = ["CAST_KERNELS", "LowProducts", "low_products"]

FloatArray = npt.NDArray[np.float64]
CAST_KERNELS = 1.0  # of a product, two of its six tensors in three products each
_CAST_SHARE = 0.8  # of the peak bytes/s


@dataclass(frozen=True, slots=True)
class _Format:
    """A format of products.

    Attributes:
        peak: fact of a device.
        operand_bytes: of an element with its scales.
        cast_bytes: that casting an element moves, for each product that reads it.
        share: of the peak over that reached in 16 bits.
        shares: the same of generations that differ.
    """

    peak: str
    operand_bytes: float
    cast_bytes: float
    share: float
    shares: tuple[tuple[str, float], ...] = ()


_FORMATS = (
    _Format("fp8_flops", 1.0, 3.0, 0.84, (("Hopper", 0.92), ("Ada", 1.0))),
    _Format("fp8_flops", 1.0, 2.0, 0.98, (("Hopper", 0.9), ("Ada", 0.68))),
    _Format("fp4_flops", 0.5625, 1.6, 0.7),
)


@dataclass(frozen=True, slots=True)
class LowProducts:
    """Products in few bits at the peaks of a device.

    Attributes:
        rows: shape [p], positions among the ops.
        faster: shape [p], seconds of computing over those in 16 bits.
        memory_s: shape [p], seconds of the bytes of both operands and the result.
        cast_s: shape [p], seconds of casts.
    """

    rows: npt.NDArray[np.int64]
    faster: FloatArray
    memory_s: FloatArray
    cast_s: FloatArray


def low_products(table: OpTable, device: Device) -> LowProducts | None:
    """The products in few bits among some ops; None without any.

    Raises:
        SettingError: the device has no such products.
        CatalogError: whether it has them is not known.
    """
    rows = np.flatnonzero(table.low)
    if not len(rows):
        return None
    m, n, k, count = table.sides[rows].T
    faster, operand, cast = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows))
    for number in np.unique(table.low[rows]).tolist():
        form, some = _FORMATS[number - 1], table.low[rows] == number
        peak = 0.0 if device.is_cpu else getattr(device, form.peak)
        if not peak:
            usual = "bf16" if device.bf16_flops else "fp16"
            raise SettingError(
                f"{device.name} has no tensor cores for {LOW_PRECISIONS[number - 1]}; take the "
                f"precision {usual}-mixed, or a device that has them, such as {_having(form)}"
            )
        share = dict(form.shares).get(device.generation, form.share)
        faster[some] = device.half_flops / (peak * share)
        operand[some], cast[some] = form.operand_bytes, form.cast_bytes
    read = (m * k + k * n) * count
    return LowProducts(
        rows=rows,
        faster=faster,
        memory_s=(operand * read + 2 * m * n * count) / device.bytes_per_s,
        cast_s=cast * read / (device.bytes_per_s * _CAST_SHARE),
    )


def _having(form: _Format) -> str:
    return "B200" if form.peak == "fp4_flops" else "H100"
