"""What a row's step has to do, as every baseline takes it: FLOPs, bytes, kernels, traffic.

MeasuredRun, ... + StepSource --work_of--> RowWork (kinds of ops of each row, by intensity)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.runs.measured_run import ALL_REDUCE, MeasuredRun
from driple.runs.steps import StepSource
from driple.simulate.optable import MEMORY_KINDS, PRODUCT_KINDS
from driple.simulate.prepared_job import PreparedJob

__all__ = ["RowWork", "work_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Width in ln(compute over memory) of kinds that count as one, and how many bins there are each way.
_BIN, _BINS = 0.5, 12

# Times that a gradient, or a parameter, crosses the link of a device in a step.
_CROSSINGS = {"single": 0.0, ALL_REDUCE: 2.0, "sharded": 3.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class RowWork:
    """The work of n rows, whose m kinds of ops stand one row after another.

    Attributes:
        starts: shape [n], first kind of each row.
        lengths: shape [n], how many kinds each row has.
        compute_s: shape [m], seconds of all products of a kind at the peak of the row's device.
        memory_s: shape [m], seconds to move its bytes at the peak of the memory.
        kernels: shape [m], how many ops of the kind move bytes.
        link_s: shape [n], seconds of the exchange at the nominal rate of the slowest link.
        features: shape [n, f], what a regression learns from.
        names: of the features.
    """

    starts: IntArray
    lengths: IntArray
    compute_s: FloatArray
    memory_s: FloatArray
    kernels: FloatArray
    link_s: FloatArray
    features: FloatArray
    names: tuple[str, ...]

    def summed(self, values: FloatArray) -> FloatArray:
        """Sums over each row's kinds, shape [n]."""
        sums: FloatArray = np.add.reduceat(values, self.starts)
        return sums

    def followed_by(self, other: RowWork) -> RowWork:
        """This work, then another's."""
        return RowWork(
            starts=np.concatenate([self.starts, other.starts + len(self.compute_s)]),
            lengths=np.concatenate([self.lengths, other.lengths]),
            compute_s=np.concatenate([self.compute_s, other.compute_s]),
            memory_s=np.concatenate([self.memory_s, other.memory_s]),
            kernels=np.concatenate([self.kernels, other.kernels]),
            link_s=np.concatenate([self.link_s, other.link_s]),
            features=np.concatenate([self.features, other.features]),
            names=self.names,
        )

    def take(self, rows: IntArray) -> RowWork:
        """The work of some of the rows."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        at = np.repeat(self.starts[rows] - starts, lengths) + np.arange(lengths.sum())
        return RowWork(
            starts=starts,
            lengths=lengths,
            compute_s=self.compute_s[at],
            memory_s=self.memory_s[at],
            kernels=self.kernels[at],
            link_s=self.link_s[rows],
            features=self.features[rows],
            names=self.names,
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """FLOPs, bytes and runs of the kinds of a step that run, whatever device runs them."""

    flops: FloatArray
    nbytes: FloatArray
    runs: FloatArray
    half: npt.NDArray[np.bool_]
    product_kind: IntArray
    memory_kind: IntArray
    gradient_bytes: float
    update_bytes: float


def work_of(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    progress: Callable[[str], None] = lambda _: None,
) -> RowWork:
    """The work of one or more rows; rows of one step are worked out together.

    Args:
        rows: the rows.
        steps: where their steps come from.
        progress: called with the job of each row.

    Raises:
        DripleError: a step cannot be made.
    """
    order = sorted(range(len(rows)), key=lambda i: repr(rows[i].step_key))
    known: dict[tuple[object, ...], _Step] = {}
    places: dict[str, Topology] = {}
    parts: dict[int, tuple[FloatArray, FloatArray, FloatArray, float, list[float]]] = {}
    for i in order:
        row = rows[i]
        progress(row.job)
        if row.step_key not in known:
            known = {row.step_key: _step(steps.prepared(row))}
        if row.setting not in places:
            places[row.setting] = topology_of(Setting.parse(row.setting))
        parts[i] = _on_device(row, known[row.step_key], places[row.setting])
    ordered = [parts[i] for i in range(len(rows))]
    lengths = np.array([len(one[0]) for one in ordered], dtype=np.int64)
    return RowWork(
        starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        lengths=lengths,
        compute_s=np.concatenate([one[0] for one in ordered]),
        memory_s=np.concatenate([one[1] for one in ordered]),
        kernels=np.concatenate([one[2] for one in ordered]),
        link_s=np.array([one[3] for one in ordered]),
        features=np.array([one[4] for one in ordered]),
        names=_NAMES,
    )


def _step(job: PreparedJob) -> _Step:
    table = job.kinds.table
    runs = np.bincount(
        job.kinds.kind_of, weights=job.kinds.executions, minlength=len(table.moved)
    ).astype(np.float64)
    some = np.flatnonzero((runs > 0) & (table.moved > 0))
    return _Step(
        flops=2 * table.sides[some].prod(axis=1) * runs[some],
        nbytes=table.moved[some] * runs[some],
        runs=runs[some],
        half=table.half[some],
        product_kind=table.product_kind[some],
        memory_kind=table.memory_kind[some],
        gradient_bytes=float(job.graph.traffic.sent_bytes.sum()),
        update_bytes=float(job.graph.update.moved_bytes),
    )


_NAMES = (
    "compute_s", "memory_s", "kernels", "link_s", "peak_flops", "bytes_per_s", "multiprocessors",
    "batch_size", "half", "compiled", "forward", "num_devices", "num_machines", "update_s",
    *(f"share of {name}" for name in PRODUCT_KINDS), *(f"bytes of {name}" for name in MEMORY_KINDS),
)  # fmt: skip


def _on_device(
    row: MeasuredRun, step: _Step, topology: Topology
) -> tuple[FloatArray, FloatArray, FloatArray, float, list[float]]:
    """Compute, memory and kernels of each kind, seconds of the link, and the features."""
    device = topology.workers[0]
    peak = np.where(step.half, _half_flops(device), device.matrix_flops)
    compute_s, memory_s = step.flops / peak, step.nbytes / device.bytes_per_s
    link_s, update_s = _link_s(row, step, topology), step.update_bytes / device.bytes_per_s
    total = max(float(compute_s.sum()), 1e-12)
    shares = np.bincount(step.product_kind, weights=compute_s, minlength=len(PRODUCT_KINDS))
    moved = np.bincount(step.memory_kind, weights=memory_s, minlength=len(MEMORY_KINDS))
    logs = np.log(
        np.maximum(
            [
                total, memory_s.sum(), step.runs.sum(), link_s, device.matrix_flops,
                device.bytes_per_s, device.multiprocessors, row.batch_size or 1,
            ],
            1e-12,
        )
    )  # fmt: skip
    half = float(step.flops[step.half].sum() / max(step.flops.sum(), 1.0))
    features = [
        *logs.tolist(), half, float(row.compiled), float(row.task == "forward"),
        float(row.num_devices), float(row.num_machines), float(np.log(max(update_s, 1e-12))),
        *(shares / total).tolist(), *(moved / max(float(memory_s.sum()), 1e-12)).tolist(),
    ]  # fmt: skip
    binned = _binned(compute_s, memory_s, step.runs)
    # The update of the parameters is one more kernel, bound by memory.
    return (
        np.append(binned[0], 0.0),
        np.append(binned[1], update_s),
        np.append(binned[2], 1.0),
        link_s,
        features,
    )


def _binned(
    compute_s: FloatArray, memory_s: FloatArray, runs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Kinds of like intensity as one: their larger part is nearly that of their sums."""
    ratio = np.log(np.maximum(compute_s, 1e-15) / np.maximum(memory_s, 1e-15))
    bins = np.clip(np.rint(ratio / _BIN), -_BINS, _BINS).astype(np.int64) + _BINS
    sums = [
        np.bincount(bins, weights=values, minlength=2 * _BINS + 1).astype(np.float64)
        for values in (compute_s, memory_s, runs)
    ]
    some = sums[2] > 0
    return sums[0][some], sums[1][some], sums[2][some]


def _half_flops(device: Device) -> float:
    return device.half_flops if device.half_flops > 0 else device.fp32_flops


def _link_s(row: MeasuredRun, step: _Step, topology: Topology) -> float:
    """Seconds of a step's exchange at the nominal rate of what joins the devices."""
    if row.num_devices == 1 and row.scheme != "servers":
        return 0.0
    link = topology.joined_by
    if link is None:
        return 0.0
    if row.scheme == "servers":
        crossings = 2.0 * row.num_devices / max(len(topology.server_machine), 1)
    else:
        crossings = _CROSSINGS[row.scheme] * (row.num_devices - 1) / row.num_devices
    return crossings * step.gradient_bytes / link.bytes_per_s
