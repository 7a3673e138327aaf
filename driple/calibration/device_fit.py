"""Fit of the GPU model to published times of whole steps; needs torch.

    StepRow, ... -> FitTable (seconds at the peaks of every kind of op of every step) -> GpuModel

All devices, models and frameworks are fitted together: that a grouped convolution falls further
short of the peak than a dense one holds on every device, so few rows tell of a new one. What a
device reaches is shrunk towards its generation, and a generation towards all (partial pooling).
Sources differ by hosts and drivers that nobody describes: each has an offset of its own in the fit,
which predictions leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.calibration.batched import BatchedGraph
from driple.catalog import Device
from driple.graph.step_facts import OptimizerUpdate
from driple.simulate.calibration import GpuModel
from driple.simulate.gpu_kernels import (
    INPUTS,
    GpuKernels,
    Runtime,
    kernel_inputs,
    kernel_seconds,
    log_shares,
    smooth_max,
)
from driple.simulate.gpu_rates import GpuReached, GpuShares, HostPace, balance_factor
from driple.simulate.gpu_times import peak_seconds

__all__ = ["FitOptions", "FitTable", "StepRow", "fit_devices", "fit_table"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SHARES = ("half", "tf32", "plain", "memory")
PACES = ("op_s", "torch1_op_s", "tensorflow_op_s", "compiled_s", "update_s", "step_s")
_MS = 1e3  # the fit computes in milliseconds, in single precision


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """One published step on one device.

    Attributes:
        graph: of the job at every batch size.
        batch_size: samples of a pass.
        device: that ran it.
        runtime: software that ran it.
        update: of the optimizer.
        source: of the measurement.
        seconds: measured.
        weight: in the fit.
    """

    graph: BatchedGraph
    batch_size: int
    device: Device
    runtime: Runtime
    update: OptimizerUpdate
    source: str
    seconds: float
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FitOptions:
    """How it is fitted.

    Attributes:
        steps: of the optimizer.
        rate: its learning rate.
        width: of the hidden layers.
        kind_penalty: on squares of offsets of kinds and of linear weights.
        net_penalty: on squares of the network's weights.
        share_penalty: on squares of deviations of devices.
        tolerance: of the logarithm of a time; larger errors count by their size, not its square.
        seed: of the network's first weights.
    """

    steps: int = 400
    rate: float = 0.02
    width: int = 32
    kind_penalty: float = 1e-4
    net_penalty: float = 3e-5
    share_penalty: float = 3e-4
    tolerance: float = 0.05
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FitTable:
    """Ops of many steps as arrays; `ops` below are kinds of ops of single steps.

    Attributes:
        rows: the steps.
        row_of: shape [num_ops], step of each.
        launches: shape [num_ops], kernels that are started.
        runs: shape [num_ops], executions.
        compute_s: shape [num_ops], seconds of all its executions' multiply-adds at the peak.
        memory_s: shape [num_ops], seconds of all its executions' bytes at the peak.
        pipes: shape [num_ops], position in `PIPES`.
        inputs: shape [num_inputs, I], distinct inputs of the network.
        input_of: shape [num_ops], row of `inputs`.
        kinds: names of all kinds.
        kind_of: shape [num_inputs], position in `kinds`.
    """

    rows: tuple[StepRow, ...]
    row_of: IntArray
    launches: FloatArray
    runs: FloatArray
    compute_s: FloatArray
    memory_s: FloatArray
    pipes: IntArray
    inputs: FloatArray
    input_of: IntArray
    kinds: tuple[str, ...]
    kind_of: IntArray

    def take(self, rows: Sequence[int]) -> FitTable:
        """Some of the steps."""
        place = np.full(len(self.rows), -1, dtype=np.int64)
        place[list(rows)] = np.arange(len(rows))
        some = np.flatnonzero(place[self.row_of] >= 0)
        names = ("launches", "runs", "compute_s", "memory_s", "pipes", "input_of")
        return replace(
            self,
            rows=tuple(self.rows[i] for i in rows),
            row_of=place[self.row_of[some]],
            **{name: getattr(self, name)[some] for name in names},
        )


def fit_table(rows: Sequence[StepRow]) -> FitTable:
    """The ops of published steps.

    Args:
        rows: the steps; those of one graph, batch size, device and runtime share their ops.
    """
    parts: dict[Any, tuple[npt.NDArray[Any], ...]] = {}
    kinds: dict[str, int] = {}
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    for number, row in enumerate(rows):
        key = (id(row.graph), row.batch_size, row.device.name, row.runtime)
        if key not in parts:
            parts[key] = _ops_of(row, kinds)
        found = parts[key]
        columns.append((np.full(len(found[0]), number), *found))
    joined = [np.concatenate(one) for one in zip(*columns, strict=True)]
    inputs = np.ascontiguousarray(joined[6].astype(np.float32))
    distinct, first, input_of = np.unique(
        inputs.view(np.dtype((np.void, inputs.dtype.itemsize * inputs.shape[1]))).ravel(),
        return_index=True,
        return_inverse=True,
    )
    del distinct
    return FitTable(
        rows=tuple(rows),
        row_of=joined[0].astype(np.int64),
        launches=joined[1],
        runs=joined[2],
        compute_s=joined[3],
        memory_s=joined[4],
        pipes=joined[5].astype(np.int64),
        inputs=inputs[first][:, :-1].astype(np.float64),
        input_of=input_of.ravel().astype(np.int64),
        kinds=tuple(kinds),
        kind_of=inputs[first][:, -1].astype(np.int64),
    )


def _ops_of(row: StepRow, kinds: dict[str, int]) -> tuple[npt.NDArray[Any], ...]:
    """Launches, runs, compute and memory seconds, pipes, and inputs with the kind last."""
    graph, table = row.graph, row.graph.table(row.batch_size)
    some = np.flatnonzero((table.moved > 0) & (graph.runs > 0))
    table = table.take(some)
    peaks = peak_seconds(table, row.device)
    runs = graph.runs[some]
    memory_s = peaks.memory_s * runs
    launches: FloatArray = runs
    if row.runtime.compiled and graph.fused is not None:
        count = len(graph.runs)
        weights = graph.executions * graph.fused.bytes_share
        memory_s = peaks.memory_s * np.bincount(graph.kind_of, weights, count)[some]
        starts = graph.executions * graph.fused.starts.astype(np.float64)
        launches = np.bincount(graph.kind_of, starts, count)[some].astype(np.float64)
    numbers = np.array([kinds.setdefault(kind, len(kinds)) for kind in table.facts.kinds])
    inputs = np.concatenate([kernel_inputs(table.facts, row.runtime), numbers[:, None]], axis=1)
    return launches, runs, peaks.compute_s * runs, memory_s, peaks.pipes, inputs


def fit_devices(
    table: FitTable,
    options: FitOptions = FitOptions(),
    progress: Callable[[int, float], None] = lambda _, __: None,
) -> GpuModel:
    """The most likely numbers, given rows and priors.

    Args:
        table: the rows.
        options: how it is fitted.
        progress: given the step and the loss.
    """
    import torch  # an extra, loaded when something is fitted

    torch.manual_seed(options.seed)
    made = _Parameters(table, options, torch)
    optimizer = torch.optim.Adam(made.parameters(), lr=options.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.steps, pct_start=0.1
    )
    measured = torch.tensor([row.seconds * _MS for row in table.rows], dtype=torch.float32).log()
    weights = torch.tensor([row.weight for row in table.rows], dtype=torch.float32)
    weights = weights / weights.sum()
    data = _Data(table, torch)
    for step in range(options.steps):
        off = (made.step_ms(data).log() + made.source_offsets(data) - measured) / options.tolerance
        # Least absolute deviations far out: some systems were throttled, and nobody says which.
        fit = (weights * ((1 + off * off).sqrt() - 1)).sum() * options.tolerance
        loss = fit + made.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        progress(step, float(fit.detach()))
    return made.model()


class _Data:
    """A table as torch's tensors, in milliseconds."""

    def __init__(self, table: FitTable, torch: Any) -> None:
        def single(values: Any) -> Any:
            return torch.tensor(np.asarray(values), dtype=torch.float32)

        names = sorted({row.device.name for row in table.rows})
        sources = sorted({row.source for row in table.rows})
        self.count = len(table.rows)
        self.row_of = torch.tensor(table.row_of)
        self.launches, self.runs = single(table.launches), single(table.runs)
        self.compute, self.memory = single(table.compute_s * _MS), single(table.memory_s * _MS)
        self.pipes, self.inputs = torch.tensor(table.pipes), single(table.inputs)
        self.input_of, self.kind_of = torch.tensor(table.input_of), torch.tensor(table.kind_of)
        self.device_of = torch.tensor([names.index(row.device.name) for row in table.rows])
        self.source_of = torch.tensor([sources.index(row.source) for row in table.rows])
        rows = table.rows
        self.update_ms = single(
            [_MS * row.update.moved_bytes / row.device.bytes_per_s for row in rows]
        )
        self.update_kernels = single([row.update.num_kernels for row in rows])
        self.step_launches = single(np.bincount(table.row_of, table.launches, len(rows)))
        self.pace_of = torch.tensor([PACES.index(_pace(row.runtime)) for row in rows])


def _pace(runtime: Runtime) -> str:
    if runtime.compiled:
        return "compiled_s"
    return {"torch1": "torch1_op_s", "tensorflow": "tensorflow_op_s"}.get(runtime.library, "op_s")


class _Parameters:
    """The numbers that are fitted, as deviations from where the fit begins."""

    def __init__(self, table: FitTable, options: FitOptions, torch: Any) -> None:
        self._torch, self._options, self._kinds = torch, options, table.kinds
        self._devices = {row.device.name: row.device for row in table.rows}
        names = sorted(self._devices)
        self._names = names
        self._generations = sorted({self._devices[name].generation for name in names})
        self._generation_of = [
            self._generations.index(self._devices[name].generation) for name in names
        ]
        self._balance = torch.tensor(
            [float(balance_factor(self._devices[name], -1.0)) for name in names]
        )
        width, kinds, count = options.width, len(table.kinds), len(INPUTS)

        def zeros(*shape: int) -> Any:
            return torch.zeros(*shape, requires_grad=True)

        def drawn(rows: int, columns: int) -> Any:
            return (torch.randn(rows, columns) / rows**0.5).requires_grad_()

        self.weights: dict[str, Any] = {
            "linear": zeros(count, 2),
            "hidden": drawn(count, width),
            "hidden_bias": zeros(width),
            "second": drawn(width, width),
            "second_bias": zeros(width),
            "out": zeros(width, 2),
            "kind_offset": zeros(kinds, 2),
            "kind_last_offset": zeros(kinds, 2),
        }
        self.usual = zeros(len(SHARES))
        self.of_generation = zeros(len(self._generations), len(SHARES))
        self.of_device = zeros(len(names), len(SHARES))
        self.fall = torch.tensor(0.2, requires_grad=True)
        self.of_source = zeros(len({row.source for row in table.rows}))
        self.paces = torch.tensor([-11.5, -11.5, -11.5, -12.5, -12.0, -8.5], requires_grad=True)
        self.sharpness = torch.tensor(1.5, requires_grad=True)
        self.start = torch.tensor(-12.5, requires_grad=True)
        self.update = torch.tensor(-0.2, requires_grad=True)
        self.host_sharpness = 6.0

    def parameters(self) -> list[Any]:
        """All of them."""
        return [
            *self.weights.values(), self.usual, self.of_generation, self.of_device, self.fall,
            self.of_source, self.paces, self.sharpness, self.start, self.update,
        ]  # fmt: skip

    def penalty(self) -> Any:
        """What it costs to be far from where the fit begins."""
        options = self._options
        square = {name: (value**2).sum() for name, value in self.weights.items()}
        kinds = square["linear"] + square["kind_offset"] + square["kind_last_offset"]
        net = square["hidden"] + square["second"] + square["out"]
        shares = (
            (self.of_device**2).sum() * 4
            + (self.of_generation**2).sum()
            + (self.usual**2).sum()
            + (self.fall - 0.2) ** 2 * 4
            + (self.of_source**2).sum() * 10
        )
        return (
            options.kind_penalty * kinds
            + options.net_penalty * net
            + options.share_penalty * shares
        )

    def _log_device_shares(self) -> Any:
        """Shape [devices, SHARES]."""
        found = self.usual + self.of_generation[self._generation_of] + self.of_device
        tensor = self._torch.tensor([1.0, 1.0, 0.0, 0.0])
        return found - self.fall * self._balance.log()[:, None] * tensor

    def step_ms(self, data: _Data) -> Any:
        """Milliseconds of each step."""
        torch = self._torch
        logs = log_shares(self.weights, data.inputs, data.kind_of, torch)[data.input_of]
        device = self._log_device_shares()[data.device_of[data.row_of]]
        own = device.gather(1, data.pipes[:, None])[:, 0]
        sharpness = 1 + self.sharpness.exp()
        start_ms = self.start.exp() * _MS
        busy = kernel_seconds(
            data.compute * (-(logs[:, 0] + own)).exp(),
            data.memory * (-(logs[:, 1] + device[:, 3])).exp(),
            data.launches,
            sharpness=sharpness,
            start_s=start_ms,
            xp=torch,
        )
        of_device = torch.zeros(data.count).index_add(0, data.row_of, busy)
        memory = self._log_device_shares()[data.device_of][:, 3]
        of_device = of_device + data.update_ms * (-(self.update + memory)).exp()
        of_device = of_device + data.update_kernels * start_ms
        pace = self.paces.exp() * _MS
        host = (
            data.step_launches * pace[data.pace_of]
            + data.update_kernels * pace[PACES.index("update_s")]
            + pace[PACES.index("step_s")]
        )
        return smooth_max(of_device, host, self.host_sharpness, torch)

    def source_offsets(self, data: _Data) -> Any:
        """Logarithm of what each row's source adds to its time."""
        return self.of_source[data.source_of]

    def model(self) -> GpuModel:
        """The numbers that were found, in NumPy's arrays."""
        arrays = {
            name: np.round(value.detach().numpy().astype(np.float64), 5)
            for name, value in self.weights.items()
        }
        kernels = GpuKernels(
            kinds=self._kinds,
            inputs=INPUTS,
            sharpness=round(1 + float(self.sharpness.detach().exp()), 4),
            start_s=float(self.start.detach().exp()),
            update_share=float(self.update.detach().exp()),
            **arrays,
        )
        usual = self.usual.detach()
        generations = usual + self.of_generation.detach()
        paces = dict(zip(PACES, self.paces.detach().exp().tolist(), strict=True))
        return GpuModel(
            kernels=kernels,
            devices=GpuReached(
                measured=_shares(self._names, self._log_device_shares().detach()),
                generations=_shares(self._generations, generations),
                usual=_shares([""], usual[None])[""],
                tensor_fall=float(self.fall.detach()),
            ),
            host=HostPace(sharpness=self.host_sharpness, **paces),
        )


def _shares(names: Sequence[str], logs: Any) -> Mapping[str, GpuShares]:
    """From logarithms of shape [names, SHARES]."""
    return {
        name: GpuShares(**dict(zip(SHARES, row, strict=True)))
        for name, row in zip(names, logs.exp().tolist(), strict=True)
    }
