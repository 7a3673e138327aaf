"""Fits of all devices and links to published runs, with any model or device left out.

tables of single kernels -> efficiency of kernels of three devices, from which the others begin
runs on one device       -> DeviceFits: efficiency of steps of any device, without any one model
runs on clusters + these -> efficiency of each kind of link
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driple.errors import ConfigError
from driple.hardware import DEVICES, device_named
from driple.simulate.batched import BatchedGraph
from driple.simulate.calibrate import KERNEL_START, fit_kernels, fit_steps, kernel_rows, step_rows
from driple.simulate.device import LinkEfficiency, nearest_relative
from driple.simulate.kernels import Efficiency
from driple.simulate.links import Prepared, by_link, fit_link, prepare_run
from driple.simulate.published import PublishedRun, read_rows
from driple.simulate.roofline import Roofline, fit_roofline

__all__ = ["DeviceFits", "Fit", "Graphs", "fit_links", "fit_starts", "prepare_runs"]

Graphs = Mapping[tuple[str, bool], BatchedGraph]  # by model, and whether in half precision
Progress = Callable[[str], None]

_EVERY = 4  # row of the single kernels; more of them change nothing
# What a compiler changes that fuses ops: they read and write less, and are fewer.
_FUSED_FIELDS = ("memory", "kernel_s", "dispatch_s")


@dataclass(frozen=True, slots=True)
class Fit:
    """A device, as two models describe it."""

    efficiency: Efficiency
    roofline: Roofline


def fit_starts(folder: Path) -> dict[str, Efficiency]:
    """Efficiency of single kernels on the devices of which they were published.

    Args:
        folder: of the published tables.
    """
    sets = defaultdict(list)
    for name in ("conv", "matmul"):
        kinds = defaultdict(list)
        for row in read_rows(folder / f"neusight_{name}_forward_ms.csv.gz")[::_EVERY]:
            kinds[device_named(row["gpu"]).name, row.get("op", "")].append(row)
        for (device, _), rows in kinds.items():
            sets[device].append(kernel_rows(rows))
    return {name: fit_kernels(DEVICES[name], some, KERNEL_START) for name, some in sets.items()}


class DeviceFits:
    """Efficiency of every device; each fit is made once, when it is asked for.

    Steps of fused ops are a device of their own: less of them is bound by memory.

    Args:
        runs: published ones, those on one device count.
        graphs: of their models.
        starts: efficiency of single kernels by device.
        progress: told what is being fitted.
    """

    def __init__(
        self,
        runs: Sequence[PublishedRun],
        graphs: Graphs,
        starts: Mapping[str, Efficiency],
        progress: Progress = lambda _: None,
    ) -> None:
        self._graphs, self._starts, self._progress = graphs, starts, progress
        self.runs: dict[tuple[str, bool], list[PublishedRun]] = defaultdict(list)
        for run in runs:
            if run.kind == "single":
                self.runs[run.device, run.fused].append(run)
        self._known: dict[tuple[str, bool, str], Fit] = {}

    @property
    def devices(self) -> list[str]:
        """Those with runs."""
        return sorted({name for name, _ in self.runs})

    def own(self, device: str, *, fused: bool, without: str = "") -> Fit | None:
        """The fit to a device's own runs of other models; None if there are none."""
        rows = [run for run in self.runs.get((device, fused), []) if run.model != without]
        if not rows:
            return None
        left_out = without if len(rows) < len(self.runs[device, fused]) else ""
        key = (device, fused, left_out)
        if key not in self._known:
            self._progress(f"{device}{' fused' * fused}{f' without {left_out}' * bool(left_out)}")
            table = step_rows(rows, self._graphs)
            spec = DEVICES[device]
            start = self._starts[nearest_relative(spec, self._starts)]
            self._known[key] = Fit(fit_steps(spec, table, start), fit_roofline(spec, table))
        return self._known[key]

    def relative(self, device: str, *, fused: bool, without: str = "") -> Fit:
        """What a device's nearest relative does, as if there were no runs of its own.

        Raises:
            ConfigError: there is no run on any other device.
        """
        measured = {
            (name, same)
            for (name, same), runs in self.runs.items()
            if name != device and any(run.model != without for run in runs)
        }
        if not measured:
            raise ConfigError(f"no published run tells what {device} does; none is of a relative")
        alike = [name for name, same in measured if same == fused]
        nearest = nearest_relative(DEVICES[device], sorted(alike or {name for name, _ in measured}))
        return self.any(nearest, fused=fused, without=without)

    def any(self, device: str, *, fused: bool, without: str = "") -> Fit:
        """The best there is: own runs, else own ones fused otherwise, else a relative's."""
        fit = self.own(device, fused=fused, without=without)
        if fit is not None:
            return fit
        other = self.own(device, fused=not fused, without=without)
        if other is None:
            return self.relative(device, fused=fused, without=without)
        scale = self._scale(fused=fused, without=without)
        changed = {name: getattr(other.efficiency, name) * scale[name] for name in _FUSED_FIELDS}
        return Fit(replace(other.efficiency, **changed), other.roofline)

    def _scale(self, *, fused: bool, without: str) -> dict[str, float]:
        """What (not) fusing changes, as the mean over the devices that did both."""
        pairs = []
        for name in self.devices:
            one = self.own(name, fused=fused, without=without)
            other = self.own(name, fused=not fused, without=without)
            if one is not None and other is not None:
                pairs.append((one.efficiency, other.efficiency))
        return {
            name: float(np.exp(np.mean([
                np.log(getattr(one, name) / getattr(other, name)) for one, other in pairs
            ]))) if pairs else 1.0
            for name in _FUSED_FIELDS
        }  # fmt: skip


def prepare_runs(
    runs: Sequence[PublishedRun],
    graphs: Graphs,
    efficiency_of: Callable[[str, bool], Efficiency],
) -> list[Prepared]:
    """Runs on clusters, with the steps of their devices.

    Args:
        runs: on clusters.
        graphs: of their models.
        efficiency_of: of a device by name, and whether ops are fused.
    """
    return [
        prepare_run(
            run,
            graphs[run.model, run.half],
            lambda name, fused=run.fused: efficiency_of(name, fused),  # type: ignore[misc]  # bound now
        )
        for run in runs
    ]


def fit_links(prepared: Sequence[Prepared]) -> dict[str, LinkEfficiency]:
    """The efficiency of each kind of link that these runs use."""
    return {kind: fit_link(some) for kind, some in by_link(prepared).items()}
