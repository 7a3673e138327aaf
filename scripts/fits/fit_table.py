"""Ops of many steps as arrays, for a fit of what kernels reach.

    OpKinds, StepRow, ... --fit_table--> FitTable: seconds at the peaks of each kind of op

A step may be a whole one, or a part of one whose kernels were timed by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.graph.step_facts import OptimizerUpdate
from driple.simulate.gpu_kernels import Runtime, kernel_inputs
from driple.simulate.gpu_times import inner_starts, peak_seconds
from driple.simulate.prepared_job import OpKinds

__all__ = ["FitTable", "StepRow", "fit_table"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """One published step on one device.

    Attributes:
        device: that ran it.
        runtime: software that ran it.
        update: of the optimizer.
        source: of the measurement.
        seconds: measured.
        weight: in the fit.
        alone: whether kernels were timed by themselves, so that no host delays them.
        tensors: trained ones that the host hands on.
    """

    device: Device
    runtime: Runtime
    update: OptimizerUpdate
    source: str
    seconds: float
    weight: float = 1.0
    alone: bool = False
    tensors: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FitTable:
    """Ops of many steps as arrays; `ops` below are kinds of ops of single steps.

    Attributes:
        rows: the steps.
        row_of: shape [num_ops], step of each.
        launches: shape [num_ops], kernels that are started.
        handed: shape [num_ops], kernels from within a library, in ops of the host.
        apart: shape [num_ops], of these, those whose time is no other op's.
        runs: shape [num_ops], executions.
        compute_s: shape [num_ops], seconds of all its executions' multiply-adds at the peak.
        memory_s: shape [num_ops], seconds of all its executions' bytes at the peak.
        pipes: shape [num_ops], position in `PIPES`.
        channel_elements: shape [num_ops], elements of one channel's block, all its executions.
        channel_rows: shape [num_ops], position in `CHANNEL_RATES`.
        inputs: shape [num_inputs, I], distinct inputs of the network.
        input_of: shape [num_ops], row of `inputs`.
        kinds: names of all kinds.
        kind_of: shape [num_inputs], position in `kinds`.
    """

    rows: tuple[StepRow, ...]
    row_of: IntArray
    launches: FloatArray
    handed: FloatArray
    apart: FloatArray
    runs: FloatArray
    compute_s: FloatArray
    memory_s: FloatArray
    pipes: IntArray
    channel_elements: FloatArray
    channel_rows: IntArray
    inputs: FloatArray
    input_of: IntArray
    kinds: tuple[str, ...]
    kind_of: IntArray

    def take(self, rows: Sequence[int]) -> FitTable:
        """Some of the steps."""
        place = np.full(len(self.rows), -1, dtype=np.int64)
        place[list(rows)] = np.arange(len(rows))
        some = np.flatnonzero(place[self.row_of] >= 0)
        names = (
            "launches", "handed", "apart", "runs", "compute_s", "memory_s", "pipes",
            "channel_elements", "channel_rows", "input_of",
        )  # fmt: skip
        return replace(
            self,
            rows=tuple(self.rows[i] for i in rows),
            row_of=place[self.row_of[some]],
            **{name: getattr(self, name)[some] for name in names},
        )


def fit_table(steps: Iterable[tuple[OpKinds, StepRow]]) -> FitTable:
    """The ops of published steps.

    Args:
        steps: kinds of ops and facts of each step; steps of the same kinds on the same device in
            the same runtime are worked out once if they follow each other.
    """
    kinds: dict[str, int] = {}
    rows: list[StepRow] = []
    parts: list[_Ops] = []
    inputs: list[npt.NDArray[np.float32]] = []
    part_of: list[int] = []
    last: tuple[Any, ...] = ()
    for kinds_of_step, row in steps:
        if not last or last[0] is not kinds_of_step or last[1:] != (row.device.name, row.runtime):
            ops = _ops_of(kinds_of_step, row, kinds)
            distinct, place = np.unique(ops.inputs, axis=0, return_inverse=True)
            parts.append(replace(ops, inputs=place.ravel()))
            inputs.append(distinct)
            last = (kinds_of_step, row.device.name, row.runtime)
        rows.append(row)
        part_of.append(len(parts) - 1)
    begins = np.cumsum([0, *(len(one) for one in inputs)])
    joined, place = np.unique(np.concatenate(inputs), axis=0, return_inverse=True)
    place = place.ravel()
    some = [parts[number] for number in part_of]

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in some])

    return FitTable(
        rows=tuple(rows),
        row_of=np.repeat(np.arange(len(rows)), [len(one.runs) for one in some]),
        launches=all_of("launches"),
        handed=all_of("handed"),
        apart=all_of("apart"),
        runs=all_of("runs"),
        compute_s=all_of("compute_s"),
        memory_s=all_of("memory_s"),
        pipes=all_of("pipes"),
        channel_elements=all_of("channel_elements"),
        channel_rows=all_of("channel_rows"),
        inputs=joined[:, :-1].astype(np.float64),
        input_of=np.concatenate(
            [place[one.inputs + begins[number]] for one, number in zip(some, part_of, strict=True)]
        ),
        kinds=tuple(kinds),
        kind_of=joined[:, -1].astype(np.int64),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ops:
    """Kinds of ops of one step; see `FitTable`. The kind is the last column of the inputs."""

    launches: FloatArray
    handed: FloatArray
    apart: FloatArray
    runs: FloatArray
    compute_s: FloatArray
    memory_s: FloatArray
    pipes: IntArray
    channel_elements: FloatArray
    channel_rows: IntArray
    inputs: Any


def _ops_of(kinds: OpKinds, row: StepRow, numbers: dict[str, int]) -> _Ops:
    count = len(kinds.table.moved)
    runs = np.bincount(kinds.kind_of, kinds.executions, count).astype(np.float64)
    some = np.flatnonzero((kinds.table.moved > 0) & (runs > 0))
    table = kinds.table.take(some)
    peaks = peak_seconds(table, row.device)
    runs = runs[some]
    memory_s = peaks.memory_s * runs
    launches: FloatArray = runs
    if kinds.fused is not None:
        shares = kinds.executions * kinds.fused.bytes_share
        starts = kinds.executions * kinds.fused.starts
        memory_s = peaks.memory_s * np.bincount(kinds.kind_of, shares, count)[some]
        launches = np.bincount(kinds.kind_of, starts, count)[some].astype(np.float64)
    number = np.array([numbers.setdefault(kind, len(numbers)) for kind in table.facts.kinds])
    inputs = np.concatenate([kernel_inputs(peaks.facts, row.runtime), number[:, None]], axis=1)
    inner, apart = inner_starts(table, row.runtime)
    return _Ops(
        launches=launches,
        handed=inner * runs,
        apart=apart * runs,
        runs=runs,
        compute_s=peaks.compute_s * runs,
        memory_s=memory_s,
        pipes=peaks.pipes,
        channel_elements=peaks.channel_elements * runs * (not row.runtime.compiled),
        channel_rows=peaks.channel_rows,
        inputs=inputs.astype(np.float32),
    )
