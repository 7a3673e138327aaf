"""What kernels and devices reach of their peaks, fitted to published times of whole steps.

    PublishedRun, graphs, PublishedOp -> StepRows (unit times of every kind of op of every step)
    StepRows -> Fit: Kernels, one for all devices; DeviceEfficiency of each; both with their priors

One fit over all devices: that a pointwise convolution falls further short of the peak than a large
product holds on every one, so a model that few have measured is known from its layers. A model's
own deviation, the same on every device, is an effect of its own in the fit (a mixed model; Pinheiro
and Bates, 2000), and left out of predictions: without it, numbers of layers would bend to it. Rows
that a validation holds out are left out by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.calibration.batched import BatchedGraph
from driple.calibration.published import PublishedRun
from driple.calibration.published_ops import PublishedOp
from driple.calibration.solver import least_squares
from driple.catalog import DEVICES
from driple.simulate.calibration import Reached, tensor_factor
from driple.simulate.kernels import DeviceEfficiency, Efficiency, Kernels, UnitTimes, unit_times
from driple.simulate.op_facts import OpFacts
from driple.simulate.optable import OpTable

__all__ = ["Fit", "StepRows", "fit_steps", "step_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Where the fit begins, and the deviations of the logarithms that it takes for likely. Winograd's
# transforms move each pixel more than twice, in and out (Lavin and Gray, CVPR 2016).
KERNELS = Kernels(
    product=(1.0, 1.0, 1.0, 1.2, 1.5, 1.2, 1.0),
    tensor_product=(1.0, 1.0, 1.0, 1.2, 1.5, 1.2, 1.0),
    gradient=(1.1, 1.1),
    tensor_gradient=(1.1, 1.1),
    saving=(1.1, 1.1),
    saving_traffic=(3.0, 4.0),
    layout=2.0,
    window_start=1.0,
    memory=(1.0, 1.5, 1.5, 1.0, 1.0, 1.5, 1.0),
    half_memory=(1.0,) * 7,
    fused_memory=(0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    fused_start=0.7,
)
_KERNELS_LIKELY = Kernels(
    product=(0.02, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2),
    tensor_product=(0.02, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25),
    gradient=(0.2, 0.2),
    tensor_gradient=(0.2, 0.2),
    saving=(0.25, 0.3),
    saving_traffic=(0.3, 0.4),
    layout=0.3,
    window_start=1e-6,  # fixed: a launch is a launch, on a GPU
    memory=(0.02, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3),
    half_memory=(0.15, 0.3, 0.3, 0.3, 0.3, 0.7, 0.3),
    fused_memory=(0.3,) * 7,
    fused_start=0.3,
)
DEVICE = DeviceEfficiency(compute=0.8, tensor=0.35, memory=0.75, start_s=8e-6)
_ALL_DEVICES_LIKELY = DeviceEfficiency(compute=0.3, tensor=0.4, memory=0.15, start_s=0.5)
_GENERATION_LIKELY = DeviceEfficiency(compute=0.25, tensor=0.15, memory=0.05, start_s=0.2)
_DEVICE_LIKELY = DeviceEfficiency(compute=0.25, tensor=0.25, memory=0.1, start_s=0.3)
TENSOR_FALL, _TENSOR_FALL_LIKELY = 0.5, 0.3
_GROUP_LIKELY = 0.05  # deviation of a model's effect, and of those in half precision and fused
# Deviations of the logarithm of a measured time that nothing explains; libraries pick kernels for
# single ops by rules that nobody published.
_NOISE, _OP_NOISE = 0.03, 0.3
_ACCESSES_OF_SGD = 3
_EFFECTS = 3
_NUMBERS = tuple(field.name for field in fields(DeviceEfficiency))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRows:
    """Whole steps on single devices, and single ops, as one table.

    Runs of the same step on the same device are one case, which is simulated once.

    Attributes:
        groups: of each measurement, the model, or the op; each may have an effect of its own.
        half: shape [num_measurements], whether it was in half precision.
        noise: shape [num_measurements], deviation of the logarithm that nothing explains.
        case_of: shape [num_measurements], case of each.
        devices: names of the devices, sorted.
        device_of: shape [num_cases], position in `devices`.
        fused: shape [num_cases], whether a compiler fused the ops.
        units: times of the kinds of ops that run, one case after another.
        executions: shape [num_rows], how often each kind runs.
        row_case: shape [num_rows], case of each row.
        starts: shape [num_cases], first row of each case.
        update_s: shape [num_cases], seconds at the peak to apply the gradients.
        seconds: shape [num_measurements], measured.
    """

    groups: tuple[str, ...]
    half: BoolArray
    noise: FloatArray
    case_of: IntArray
    devices: tuple[str, ...]
    device_of: IntArray
    fused: BoolArray
    units: UnitTimes
    executions: FloatArray
    row_case: IntArray
    starts: IntArray
    update_s: FloatArray
    seconds: FloatArray

    def simulated(self, kernels: Kernels, devices: Mapping[str, FloatArray]) -> FloatArray:
        """Seconds of each step.

        Args:
            kernels: factors on the times.
            devices: what each of `devices` reaches, arrays by name of the number.
        """
        reached = {name: values[self.device_of] for name, values in devices.items()}
        rows = {name: values[self.row_case] for name, values in reached.items()}
        kernel_s, start_s = self.units.seconds(kernels, rows, self.fused[self.row_case])
        sums = np.add.reduceat((kernel_s + start_s) * self.executions, self.starts)
        cases: FloatArray = sums + self.update_s / reached["memory"]
        return cases[self.case_of]


def step_rows(
    runs: Sequence[PublishedRun],
    graphs: Mapping[tuple[str, bool], BatchedGraph],
    ops: Sequence[PublishedOp] = (),
) -> StepRows:
    """The steps of runs on single devices.

    Args:
        runs: on one device each, one or more.
        graphs: of each model in single and half precision.
        ops: single ones, each a step of its own.
    """
    keys = [(run.device, run.model, run.half, run.batch_size, run.fused) for run in runs]
    cases = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    devices = tuple(sorted({run.device for run in runs} | {op.device for op in ops}))
    units, executions, update_s = [], [], []
    for name, model, half, batch_size, _ in cases:
        graph, device = graphs[model, half], DEVICES[name]
        table = graph.table(batch_size)
        some = np.flatnonzero((table.moved > 0) & (graph.runs > 0))
        units.append(unit_times(table.take(some), device))
        executions.append(graph.runs[some])
        update_s.append(_ACCESSES_OF_SGD * graph.graph.received_bytes / device.bytes_per_s)
    by_device: dict[str, list[PublishedOp]] = {}
    for op in ops:
        by_device.setdefault(op.device, []).append(op)
    for name, some_ops in by_device.items():
        units.append(unit_times(OpTable.of([op.signature for op in some_ops]), DEVICES[name]))
    ordered = [op for some_ops in by_device.values() for op in some_ops]
    executions += [np.ones(1)] * len(ordered)
    update_s += [0.0] * len(ordered)
    lengths = [len(rows) for rows in executions]
    on = [name for name, *_ in cases] + [op.device for op in ordered]
    return StepRows(
        groups=(*(run.model for run in runs), *(op.name for op in ordered)),
        half=np.array([run.half for run in runs] + [False] * len(ordered), dtype=np.bool_),
        noise=np.array([_NOISE] * len(runs) + [_OP_NOISE] * len(ordered)),
        case_of=np.array(
            [cases[key] for key in keys] + [len(cases) + i for i in range(len(ordered))],
            dtype=np.int64,
        ),
        devices=devices,
        device_of=np.array([devices.index(name) for name in on], dtype=np.int64),
        fused=np.array([fused for *_, fused in cases] + [False] * len(ordered), dtype=np.bool_),
        units=_joined(units),
        executions=np.concatenate(executions),
        row_case=np.repeat(np.arange(len(lengths)), lengths),
        starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        update_s=np.array(update_s),
        seconds=np.array([run.seconds for run in runs] + [op.seconds for op in ordered]),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """What was found.

    Attributes:
        kernels: for all devices.
        devices: what devices reach.
    """

    kernels: Kernels
    devices: Reached

    def device(self, name: str) -> DeviceEfficiency:
        """What a device of the catalogue reaches; one without runs as its generation."""
        return self.devices.of(DEVICES[name])[0]

    def efficiency(self, device: str, *, fused: bool = False) -> Efficiency:
        """Of a device by its name in the catalogue."""
        return Efficiency(kernels=self.kernels, device=self.device(device), fused=fused)

    def simulated(self, rows: StepRows) -> FloatArray:
        """Seconds of each step."""
        reached = [self.device(name) for name in rows.devices]
        values = {key: np.array([getattr(one, key) for one in reached]) for key in _NUMBERS}
        return rows.simulated(self.kernels, values)


def fit_steps(rows: StepRows) -> Fit:
    """The most likely numbers, given runs and priors.

    Args:
        rows: the runs.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    layout = _Layout(rows)

    def residuals(steps: FloatArray) -> FloatArray:
        simulated = rows.simulated(layout.kernels(steps), layout.devices(steps))
        off = (np.log(simulated / rows.seconds) + layout.effects(steps)) / rows.noise
        # Least absolute deviations far out: some systems were throttled, and nobody says which.
        robust = np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off * off) - 1))
        return np.concatenate([robust, steps])

    found = least_squares(
        residuals,
        np.zeros(layout.count),
        max_nfev=30,
        jac_sparsity=layout.sparsity(rows),
        x_scale="jac",
    ).x
    return Fit(kernels=layout.kernels(found), devices=layout.reached(found))


class _Layout:
    """Where each number lies in the vector of the fit; all are steps in deviations from a prior."""

    def __init__(self, rows: StepRows) -> None:
        self.start = np.log(_flat(KERNELS))
        self.likely = _flat(_KERNELS_LIKELY)
        groups = sorted(set(rows.groups))
        self._devices = [DEVICES[name] for name in rows.devices]
        self._generations = sorted({device.generation for device in self._devices})
        self._generation_of = np.array(
            [self._generations.index(device.generation) for device in self._devices]
        )
        self._num_devices, self._num_groups = len(rows.devices), len(groups)
        self._usual = len(self.start)
        self._fall = self._usual + len(_NUMBERS)
        self._of_generations = self._fall + 1
        self._own = self._of_generations + len(_NUMBERS) * len(self._generations)
        self._effects = self._own + len(_NUMBERS) * self._num_devices
        self.count = self._effects + _EFFECTS * self._num_groups
        self._group_of = np.array([groups.index(name) for name in rows.groups])
        self._half = rows.half
        self._fused = rows.fused[rows.case_of]

    def sparsity(self, rows: StepRows) -> npt.NDArray[np.int8]:
        """Which residuals each number moves: a device's and a model's only their own runs'."""
        count = self.count
        moves = np.zeros((len(rows.groups), count), dtype=np.int8)
        moves[:, : self._own] = 1
        run = np.arange(len(rows.groups))
        for i in range(len(_NUMBERS)):
            moves[run, self._own + i * self._num_devices + rows.device_of[rows.case_of]] = 1
        for i in range(_EFFECTS):
            moves[run, self._effects + i * self._num_groups + self._group_of] = 1
        return np.concatenate([moves, np.eye(count, dtype=np.int8)])

    def kernels(self, steps: FloatArray) -> Kernels:
        """Factors that a vector stands for."""
        values = np.exp(self.start + self.likely * steps[: self._usual]).tolist()
        made: dict[str, Any] = {}
        at = 0
        for field in fields(Kernels):
            start = getattr(KERNELS, field.name)
            length = len(start) if isinstance(start, tuple) else 0
            made[field.name] = tuple(values[at : at + length]) if length else values[at]
            at += max(length, 1)
        return Kernels(**made)

    def devices(self, steps: FloatArray) -> dict[str, FloatArray]:
        """What each device reaches, arrays by name of the number."""
        own = steps[self._own : self._effects].reshape(len(_NUMBERS), self._num_devices)
        values = self._generation_values(steps)[:, self._generation_of]
        values = values * np.exp(_flat(_DEVICE_LIKELY)[:, None] * own)
        found = dict(zip(_NUMBERS, values, strict=True))
        fall = self._tensor_fall(steps)
        balance = np.array([tensor_factor(device, fall) for device in self._devices])
        return {**found, "tensor": found["tensor"] * balance}

    def reached(self, steps: FloatArray) -> Reached:
        """What devices reach, measured or not."""
        measured = np.array(list(self.devices(steps).values()))
        return Reached(
            measured=_by_name([device.name for device in self._devices], measured),
            generations=_by_name(self._generations, self._generation_values(steps)),
            usual=_by_name([""], self._usual_values(steps)[:, None])[""],
            tensor_fall=self._tensor_fall(steps),
        )

    def _usual_values(self, steps: FloatArray) -> FloatArray:
        """What a device reaches of which nothing is known, shape [4]."""
        moved = steps[self._usual : self._fall] * _flat(_ALL_DEVICES_LIKELY)
        values: FloatArray = _flat(DEVICE) * np.exp(moved)
        return values

    def _generation_values(self, steps: FloatArray) -> FloatArray:
        """The same of each generation, shape [4, num_generations]."""
        moved = steps[self._of_generations : self._own].reshape(len(_NUMBERS), -1)
        likely = _flat(_GENERATION_LIKELY)[:, None]
        values: FloatArray = self._usual_values(steps)[:, None] * np.exp(likely * moved)
        return values

    def _tensor_fall(self, steps: FloatArray) -> float:
        return TENSOR_FALL + _TENSOR_FALL_LIKELY * float(steps[self._fall])

    def effects(self, steps: FloatArray) -> FloatArray:
        """Logarithm of what each measurement's group adds to its time."""
        of_all, of_half, of_fused = _GROUP_LIKELY * steps[self._effects :].reshape(
            _EFFECTS, self._num_groups
        )
        own: FloatArray = of_all[self._group_of]
        own = own + np.where(self._half, of_half[self._group_of], 0.0)
        return own + np.where(self._fused, of_fused[self._group_of], 0.0)


def _by_name(names: Sequence[str], values: FloatArray) -> dict[str, DeviceEfficiency]:
    """From values of shape [4, number of names]."""
    return {
        name: DeviceEfficiency(**dict(zip(_NUMBERS, column.tolist(), strict=True)))
        for name, column in zip(names, values.T, strict=True)
    }


def _flat(numbers: Kernels | DeviceEfficiency) -> FloatArray:
    """All numbers, field after field."""
    return np.concatenate(
        [np.atleast_1d(getattr(numbers, field.name)) for field in fields(numbers)]
    ).astype(np.float64)


def _joined(units: Sequence[UnitTimes]) -> UnitTimes:
    """One table after another."""
    tables = [one.table for one in units]
    return UnitTimes(
        table=OpTable(
            facts=OpFacts(
                kinds=tuple(kind for table in tables for kind in table.facts.kinds),
                groups=np.concatenate([table.facts.groups for table in tables]),
                values=np.concatenate([table.facts.values for table in tables]),
            ),
            **{
                name: np.concatenate([getattr(table, name) for table in tables])
                for name in OpTable.__dataclass_fields__
                if name != "facts"
            },
        ),
        product_s=np.concatenate([one.product_s for one in units]),
        saved_s=np.concatenate([one.saved_s for one in units]),
        memory_s=np.concatenate([one.memory_s for one in units]),
        tensor=np.concatenate([one.tensor for one in units]),
    )
