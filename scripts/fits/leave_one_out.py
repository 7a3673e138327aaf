"""Fits to published runs, with any model or any device left out; each is made once, when asked for.

runs on one device       -> Fits: kernels and devices, without any one model or device; rooflines
runs on clusters + these -> efficiency of each kind of link
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from driple.catalog import DEVICES, Device, device_named, link_named
from driple.errors import ConfigError
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.simulate.calibration import GpuModel, LinkEfficiency
from driple.simulate.gpu_times import GpuEfficiency
from scripts.fits.batched import BatchedGraph
from scripts.fits.fit import StepRows, step_rows
from scripts.fits.links import (
    PUBLISHED,
    PUBLISHED_KINDS,
    PreparedRun,
    by_family,
    family_of_link,
    fit_link_efficiency,
    kinds_of,
    prepare_run,
    role_copy_bytes_per_s,
)
from scripts.fits.roofline import Roofline, fit_roofline
from scripts.fits.server_rate import ServerRate

__all__ = ["Fit", "Fits", "FittedLinks", "Graphs", "fit_links", "nearest_relative", "prepare_runs"]

Graphs = Mapping[tuple[str, bool], BatchedGraph]  # by model, and whether in half precision
# Model and device that the fit does not see, empty for none -> what GPUs reach.
FitWithout = Callable[[str, str], GpuModel]


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found.

    Attributes:
        model: of GPUs.
    """

    model: GpuModel

    def efficiency(self, device: str) -> GpuEfficiency:
        """What a device of the catalogue reaches."""
        return self.model.of(DEVICES[device], 1.0)[0]


class Fits:
    """Fits of devices and rooflines to runs on one device.

    Attributes:
        runs: those on one device.
        graphs: of their models.

    Args:
        runs: published ones, those on one device count.
        graphs: of their models.
        fit_without: the fit that does not see a model's family, or a device.

    Raises:
        ConfigError: there is no run on one device.
    """

    def __init__(
        self,
        runs: Sequence[TensorFlowRun],
        graphs: Graphs,
        fit_without: FitWithout,
    ) -> None:
        self.runs = [run for run in runs if run.kind == "single"]
        if not self.runs:
            raise ConfigError("no published run on a single device, which fits begin with")
        self.graphs, self._fit_without = graphs, fit_without
        self._rooflines: dict[tuple[str, bool, str], Roofline] = {}

    def has_others(self, *, model: str = "", device: str = "") -> bool:
        """Whether anything is left to fit without the runs of a model or on a device."""
        return any(run.job != model and run.device != device for run in self.runs)

    def without(self, *, model: str = "", device: str = "") -> Fit:
        """The fit to all steps but those of a model's family, or on a device."""
        return Fit(self._fit_without(model, device))

    def roofline(
        self, device: str, *, half: bool, without_model: str = "", without_device: str = ""
    ) -> Roofline:
        """A roofline of a device in one precision, or of its nearest relative.

        Args:
            device: name of the device.
            half: whether in half precision; the device's other runs serve if it has none such.
            without_model: that is left out.
            without_device: that is left out.
        """
        runs = [
            run for run in self.runs if run.job != without_model and run.device != without_device
        ]
        nearest = nearest_relative(device_named(device), {run.device for run in runs})
        mine = [run for run in runs if run.device == nearest]
        same = half if any(run.half == half for run in mine) else not half
        key = (nearest, same, without_model)
        if key not in self._rooflines:
            chosen = [run for run in mine if run.half == same]
            self._rooflines[key] = fit_roofline(
                device_named(nearest), step_rows(chosen, self.graphs)
            )
        return self._rooflines[key]

    def rows(self, runs: Sequence[TensorFlowRun]) -> StepRows:
        """Steps of some runs on one device each."""
        return step_rows(runs, self.graphs)


def nearest_relative(device: Device, names: Iterable[str]) -> str:
    """The nearest relative of a device among these names; the device itself if it is listed.

    Raises:
        SettingError: a name that is not in the catalogue.
        ConfigError: no names, or a generation that has no place in the order of generations.
    """
    devices = [device_named(name) for name in names]
    if not devices:
        raise ConfigError(
            f"no measured device can stand in for {device.name}; give published runs on one device "
            "or more"
        )
    return min(devices, key=lambda one: (one.name != device.name, *_distance(device, one))).name


def _distance(device: Device, other: Device) -> tuple[bool, float, float]:
    """Distance of two devices: maker, then generation, then balance of compute and memory."""
    apart = abs(device.architecture.order - other.architecture.order)
    balance = (device.fp32_flops / device.bytes_per_s) / (other.fp32_flops / other.bytes_per_s)
    return device.maker != other.maker, apart, max(balance, 1 / balance)


def prepare_runs(
    runs: Sequence[TensorFlowRun],
    graphs: Graphs,
    fit: Fit,
    alone: Sequence[TensorFlowRun] = (),
) -> list[PreparedRun]:
    """Runs on clusters, with the steps of their devices.

    Args:
        runs: on clusters.
        graphs: of their models.
        fit: what their devices reach.
        alone: on one device; where one is the same job from the same source on the same device, it
            scales the computing.
    """
    alone_s = {_job_of(run): run.step_s for run in alone if run.kind == "single"}
    return [
        prepare_run(
            run,
            graphs[run.job, run.half],
            fit.efficiency,
            alone_s.get(_job_of(run)),
        )
        for run in runs
    ]


def _job_of(run: TensorFlowRun) -> tuple[object, ...]:
    """What a run on one device and one on several have in common."""
    devices = tuple(dict.fromkeys(run.devices))
    return (run.source, run.job, run.batch_size, run.half, run.compiled, devices)


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedLinks:
    """Result of `fit_links`.

    Attributes:
        links: efficiency of each kind of link.
        apply_s_per_byte: time of a server to apply one byte of gradient, seconds; 0 if no run has
            servers.
        role_copy_bytes_per_s: rate at which a worker or a server copies what crosses the network;
            infinite if no run has servers.
    """

    links: Mapping[str, LinkEfficiency]
    apply_s_per_byte: float = 0.0
    role_copy_bytes_per_s: float = float("inf")


def fit_links(prepared: Sequence[PreparedRun], passed: ServerRate | None = None) -> FittedLinks:
    """The efficiency of each kind of link that these runs use, and of servers.

    Kinds of one family have the same efficiency.

    Args:
        prepared: runs on clusters.
        passed: the fastest published transfer through a server.
    """
    families: dict[str, LinkEfficiency] = dict(PUBLISHED)
    over = None if passed is None else family_of_link(link_named(passed.link))
    apply_s, copy = 0.0, float("inf")
    for family, runs in by_family(prepared).items():
        if family in PUBLISHED:
            continue
        known = passed if family == over else None
        families[family], seconds = fit_link_efficiency(runs, families, known)
        if any(item.run.num_servers for item in runs):
            apply_s = max(apply_s, seconds)
            copy = min(copy, role_copy_bytes_per_s(known, families[family]))
    measured = {
        kind: families[family]
        for family, runs in by_family(prepared).items()
        for kind in kinds_of(runs)
    }
    return FittedLinks(
        links={**PUBLISHED_KINDS, **measured},
        apply_s_per_byte=apply_s,
        role_copy_bytes_per_s=copy,
    )
