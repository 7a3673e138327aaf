"""How far simulated iteration times are from published ones, on rows that nothing was fitted to.

published runs -> each model, then each device, held out in turn: fit on the rest, predict it
               -> errors by source, beside those of a plain roofline fitted to the same rows
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from driple.graph.opgraph import OpGraph
from driple.hardware import DEVICES, Device
from driple.simulate.batched import BatchedGraph
from driple.simulate.calibrate import StepRows, fit_steps, step_rows
from driple.simulate.device import nearest_relative
from driple.simulate.kernels import Efficiency
from driple.simulate.published import PublishedRun
from driple.simulate.roofline import Roofline, fit_roofline
from driple.zoo.store import GraphStore
from driple.zoo.workload import Workload

__all__ = ["HeldOut", "Prediction", "Summary", "predict_singles", "read_graphs", "summarise"]

FloatArray = npt.NDArray[np.float64]
HeldOut = Literal["nothing", "model", "device"]
Graphs = Mapping[tuple[str, bool], BatchedGraph]
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One published run and what two models say of it.

    Attributes:
        run: the measurement.
        held_out: what the fit had not seen: nothing, this model on this device, or this device.
        simulated_s: by the simulator.
        roofline_s: by a roofline fitted to the same rows.
    """

    run: PublishedRun
    held_out: HeldOut
    simulated_s: float
    roofline_s: float

    @property
    def error(self) -> float:
        """|simulated - measured| / measured."""
        return abs(self.simulated_s / self.run.seconds - 1)

    @property
    def roofline_error(self) -> float:
        """The same of the roofline."""
        return abs(self.roofline_s / self.run.seconds - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Errors of some predictions, as shares."""

    rows: int
    median: float
    p90: float
    roofline_median: float
    roofline_p90: float


def read_graphs(folder: Path) -> dict[tuple[str, bool], BatchedGraph]:
    """Graphs of the published models by name and precision, from a store with two batch sizes each.

    Raises:
        DatasetError: no such store.
    """
    found: dict[tuple[str, bool], list[tuple[int, OpGraph]]] = defaultdict(list)
    for name, graph in GraphStore.open(folder).graphs():
        job = Workload.parse(name)
        found[job.model, job.precision == "fp16"].append((job.batch_size, graph))
    made = {}
    for key, pairs in found.items():
        small, large = sorted(pairs, key=lambda pair: pair[0])
        made[key] = BatchedGraph.of(small, large)
    return made


def summarise(predictions: Iterable[Prediction]) -> Summary:
    """Median and 90th percentile of the errors."""
    found = list(predictions)
    errors = [item.error for item in found]
    roofline = [item.roofline_error for item in found]
    return Summary(
        rows=len(found),
        median=float(np.median(errors)),
        p90=float(np.percentile(errors, 90)),
        roofline_median=float(np.median(roofline)),
        roofline_p90=float(np.percentile(roofline, 90)),
    )


def predict_singles(
    runs: Sequence[PublishedRun],
    graphs: Graphs,
    starts: Mapping[str, Efficiency],
    progress: Progress = lambda _: None,
) -> list[Prediction]:
    """Predict every run on one device, with its model and with its device held out.

    Args:
        runs: on one device each.
        graphs: of their models.
        starts: efficiency of single kernels by device, from which fits begin.
        progress: told what is being fitted.
    """
    # Steps of fused ops are a device of their own: less of them is bound by memory.
    by_device: dict[tuple[str, bool], list[PublishedRun]] = defaultdict(list)
    for run in runs:
        by_device[run.device, run.fused].append(run)
    rows = {key: step_rows(some, graphs) for key, some in by_device.items()}
    fitted = {}
    for key in by_device:
        progress(key[0])
        fitted[key] = _Both.fit(DEVICES[key[0]], rows[key], starts)
    predictions = []
    for key, some in by_device.items():
        name, fused = key
        device = DEVICES[name]
        predictions += _predicted(some, rows[key], device, fitted[key], "nothing")
        for model in sorted({run.model for run in some}):
            rest = [run for run in some if run.model != model]
            if not rest:
                continue
            progress(f"{name} without {model}")
            left = [run for run in some if run.model == model]
            fit = _Both.fit(device, step_rows(rest, graphs), starts)
            predictions += _predicted(left, step_rows(left, graphs), device, fit, "model")
        others = {other: fit for (other, same), fit in fitted.items()
                  if other != name and same == fused}  # fmt: skip
        if others:
            relative = others[nearest_relative(device, others)]
            predictions += _predicted(some, rows[key], device, relative, "device")
    return predictions


@dataclass(frozen=True, slots=True)
class _Both:
    """The simulator's efficiency and a roofline, fitted to the same rows."""

    efficiency: Efficiency
    roofline: Roofline

    @classmethod
    def fit(cls, device: Device, rows: StepRows, starts: Mapping[str, Efficiency]) -> _Both:
        start = starts[nearest_relative(device, starts)]
        return cls(fit_steps(device, rows, start), fit_roofline(device, rows))


def _predicted(
    runs: Sequence[PublishedRun], rows: StepRows, device: Device, fit: _Both, held_out: HeldOut
) -> list[Prediction]:
    simulated = rows.simulated(device, fit.efficiency).tolist()
    roofline = fit.roofline.seconds(device, rows).tolist()
    return [
        Prediction(run=run, held_out=held_out, simulated_s=one, roofline_s=other)
        for run, one, other in zip(runs, simulated, roofline, strict=True)
    ]
