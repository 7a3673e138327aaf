"""What devices reach of their peaks, fitted to published measurements.

    times of single kernels -> Efficiency of three devices (tiles, memory, launch)
    times of whole steps    -> Efficiency of each device, which begins from a relative's

Least squares on the logarithm of simulated over measured time; a prior holds what few rows cannot
tell near the relative. Rows that a validation holds out are left out by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.errors import MissingExtraError
from driple.graph.signature import OpSignature, Tensor
from driple.hardware import Device
from driple.simulate.batched import BatchedGraph
from driple.simulate.kernels import Efficiency, OpTable, kernel_times
from driple.simulate.published import PublishedRun

__all__ = [
    "KERNEL_START",
    "StepRows",
    "fit_kernels",
    "fit_steps",
    "kernel_rows",
    "step_rows",
]

FloatArray = npt.NDArray[np.float64]

FLOAT = 1  # DataType of single precision
KERNEL_START = Efficiency(
    tiles=(0.85, 0.85, 0.75, 0.6, 0.4, 0.25),
    half_tiles=0.4,
    ramp=40.0,
    winograd=0.7,
    input_gradient=1.0,
    filter_gradient=1.1,
    memory=0.75,
    kernel_s=5e-6,
    dispatch_s=8e-6,
)
_KERNEL_FREE = ("tiles0", "tiles1", "tiles2", "tiles3", "tiles4", "tiles5", "ramp", "winograd",
                "memory", "kernel_s")  # fmt: skip
_STEP_FREE = ("tiles", "half_tiles", "winograd", "input_gradient", "filter_gradient", "memory",
              "kernel_s", "dispatch_s")  # fmt: skip
_PRIOR = 0.35  # deviation of the logarithm of a fitted number from its start
_NOISE = 0.05  # deviation of the logarithm of a measured time that no model explains
_ACCESSES_OF_SGD = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRows:
    """Whole steps of one device, as one table.

    Attributes:
        table: kinds of ops of all steps, one after another.
        runs: how often each runs.
        starts: where each step begins.
        update_bytes: moved to apply the gradients of each step.
        seconds: measured.
    """

    table: OpTable
    runs: FloatArray
    starts: npt.NDArray[np.int64]
    update_bytes: FloatArray
    seconds: FloatArray

    def simulated(self, device: Device, efficiency: Efficiency) -> FloatArray:
        """Seconds of each step on a device."""
        kernel_s = kernel_times(self.table, device, efficiency)[:, 0]
        each_s = np.where(kernel_s > 0, np.maximum(kernel_s, efficiency.dispatch_s), 0.0)
        sums: FloatArray = np.add.reduceat(each_s * self.runs, self.starts)
        return sums + self.update_bytes / (device.bytes_per_s * efficiency.memory)


def step_rows(
    runs: Sequence[PublishedRun], graphs: Mapping[tuple[str, bool], BatchedGraph]
) -> StepRows:
    """The steps of runs on single devices.

    Args:
        runs: on one device each.
        graphs: of each model in single and half precision.
    """
    tables, counts, starts, update_bytes = [], [], [0], []
    for run in runs:
        graph = graphs[run.model, run.half]
        tables.append(graph.table(run.batch_size))
        counts.append(graph.runs)
        starts.append(starts[-1] + len(graph.runs))
        update_bytes.append(_ACCESSES_OF_SGD * graph.graph.received_bytes)
    return StepRows(
        table=_joined(tables),
        runs=np.concatenate(counts),
        starts=np.array(starts[:-1], dtype=np.int64),
        update_bytes=np.array(update_bytes, dtype=np.float64),
        seconds=np.array([run.seconds for run in runs]),
    )


def kernel_rows(rows: Sequence[Mapping[str, str]]) -> tuple[OpTable, FloatArray]:
    """Published convolutions or matrix products, and their seconds."""
    ops = [_convolution(row) if "kernel" in row else _product(row) for row in rows]
    return OpTable.of(ops), np.array([float(row["ms"]) / 1e3 for row in rows])


def fit_kernels(
    device: Device, sets: Sequence[tuple[OpTable, FloatArray]], start: Efficiency
) -> Efficiency:
    """Efficiency of single kernels; every set weighs the same, however many rows it has."""

    def off(efficiency: Efficiency) -> FloatArray:
        logs = [
            np.log(kernel_times(table, device, efficiency)[:, 0] / seconds) / np.sqrt(len(seconds))
            for table, seconds in sets
        ]
        return np.concatenate(logs) / _NOISE

    return _fit(off, start, _KERNEL_FREE, prior=2.0)


def fit_steps(
    device: Device, rows: StepRows, start: Efficiency, prior: float = _PRIOR
) -> Efficiency:
    """Efficiency of whole steps."""

    def off(efficiency: Efficiency) -> FloatArray:
        logs: FloatArray = np.log(rows.simulated(device, efficiency) / rows.seconds)
        return logs / _NOISE

    return _fit(off, start, _STEP_FREE, prior)


def _fit(
    off: Callable[[Efficiency], FloatArray],
    start: Efficiency,
    free: Sequence[str],
    prior: float,
) -> Efficiency:
    """The efficiency with the least squares, numbers of `free` on a logarithmic scale."""
    try:
        from scipy.optimize import least_squares  # an extra, loaded when needed
    except ImportError as error:
        raise MissingExtraError(
            "fitting needs scipy, which is not installed; pip install 'driple[train]'"
        ) from error

    def residuals(steps: FloatArray) -> FloatArray:
        return np.concatenate([off(_moved(start, free, steps)), steps / prior])

    found = least_squares(residuals, np.zeros(len(free)), loss="soft_l1", diff_step=0.02)
    return _moved(start, free, found.x)


def _moved(start: Efficiency, free: Sequence[str], steps: FloatArray) -> Efficiency:
    """The efficiency with each free number times the exponential of its step."""
    tiles = np.array(start.tiles)
    values = asdict(start)
    for name, factor in zip(free, np.exp(steps).tolist(), strict=True):
        if name == "tiles":
            tiles *= factor
        elif name.startswith("tiles"):
            tiles[int(name.removeprefix("tiles"))] *= factor
        else:
            values[name] *= factor
    return replace(start, **{**values, "tiles": tuple(tiles.tolist())})


def _joined(tables: Sequence[OpTable]) -> OpTable:
    """One table after another."""
    return OpTable(**{
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in OpTable.__dataclass_fields__
    })  # fmt: skip


def _convolution(row: Mapping[str, str]) -> OpSignature:
    batch, inner, outer, window, size, stride, edge = (
        int(float(row[name]))
        for name in ("batch", "c_in", "c_out", "kernel", "size_in", "stride", "pad")
    )
    made = (size + 2 * edge - window) // stride + 1
    return OpSignature(
        "Conv2D",
        (
            Tensor((batch, size, size, inner), FLOAT),
            Tensor((window, window, inner, outer), FLOAT),
        ),
        (Tensor((batch, made, made, outer), FLOAT),),
    )


def _product(row: Mapping[str, str]) -> OpSignature:
    count, m, n, k = (int(float(row[name])) for name in "bmnk")
    if row["op"] == "linear":
        inputs = (Tensor((count * m, k), FLOAT), Tensor((k, n), FLOAT))
        return OpSignature("MatMul", inputs, (Tensor((count * m, n), FLOAT),))
    inputs = (Tensor((count, m, k), FLOAT), Tensor((count, k, n), FLOAT))
    return OpSignature("BatchMatMulV2", inputs, (Tensor((count, m, n), FLOAT),))
