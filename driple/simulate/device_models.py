"""What devices reach of their peaks: the two forms of a calibration's model.

CoreModel (processors) | GpuModel (GPUs) --of(device)--> efficiency, and where it comes from
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from driple.catalog import Device
from driple.codec import json_field
from driple.simulate.gpu_kernels import GpuKernels
from driple.simulate.gpu_rates import (
    USUAL_BALANCE,
    GpuReached,
    HostPace,
    is_tuned,
    tuned_host,
    tuned_shares,
)
from driple.simulate.gpu_times import GpuEfficiency
from driple.simulate.kernels import DeviceEfficiency, Efficiency, Kernels
from driple.simulate.present_kernels import PresentKernels
from driple.simulate.product_shares import product_shares_of

__all__ = ["CalibratedDevice", "CoreModel", "GpuModel", "Reached", "tensor_factor"]


@dataclass(frozen=True, slots=True)
class CalibratedDevice:
    """A device with its peaks and the efficiency that jobs reach on it.

    Attributes:
        spec: its published peaks.
        efficiency: fraction of the peaks that jobs reach.
        measured_on: source of the efficiency: the device's own name, that of the same chip with
            other memory, or that of its generation; empty if it is the typical efficiency.
    """

    spec: Device
    efficiency: Efficiency | GpuEfficiency
    measured_on: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """Efficiency of all devices, measured or not.

    Tensor cores with more FLOP/s per byte/s of memory bandwidth reach a smaller fraction of their
    peak; `tensor_fall` is the exponent.

    Attributes:
        measured: efficiency of each measured device, by its name in the catalogue.
        generations: efficiency by generation, for a device with `USUAL_BALANCE`.
        usual: efficiency for generations without a measured device, with `USUAL_BALANCE`.
        tensor_fall: share of the tensor cores' peak ~ (FLOP/s / byte/s) ** -tensor_fall.
    """

    measured: Mapping[str, DeviceEfficiency]
    generations: Mapping[str, DeviceEfficiency]
    usual: DeviceEfficiency
    tensor_fall: float

    def of(self, device: Device) -> tuple[DeviceEfficiency, str]:
        """Efficiency of a device, and its source: the device, its generation, or empty."""
        if device.name in self.measured:
            return self.measured[device.name], device.name
        known = device.generation in self.generations
        efficiency = self.generations.get(device.generation, self.usual)
        tensor = efficiency.tensor * tensor_factor(device, self.tensor_fall)
        return replace(efficiency, tensor=tensor), device.generation if known else ""


def tensor_factor(device: Device, fall: float) -> float:
    """Correction of the tensor-core efficiency for the device's compute-to-bandwidth ratio."""
    return float((device.half_flops / device.bytes_per_s / USUAL_BALANCE) ** -fall)


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreModel:
    """Ops one after another, each with a start that nothing hides: on a processor's cores.

    Attributes:
        form: name of this form in the file.
        kernels: factors common to all devices.
        devices: efficiency of devices.
    """

    form: Literal["core"] = "core"
    kernels: Kernels
    devices: Reached

    def of(self, device: Device, memory_activity: float) -> tuple[Efficiency, str]:
        """Efficiency of a device, and its source: the device, its generation, or empty."""
        reached, origin = self.devices.of(device)
        return Efficiency(
            kernels=self.kernels, device=reached, memory_activity=memory_activity
        ), origin


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuModel:
    """Kernels in order on a GPU, enqueued ahead by a host.

    Attributes:
        form: name of this form in the file.
        kernels: what kernels reach on every GPU.
        devices: what single GPUs reach.
        host: pace of the host.
        present: kernels of PyTorch's present libraries, where they were measured.
    """

    form: Literal["gpu"] = "gpu"
    kernels: GpuKernels
    devices: GpuReached
    host: HostPace
    present: PresentKernels | None = field(default=None, metadata=json_field(optional=True))

    def of(self, device: Device, memory_activity: float) -> tuple[GpuEfficiency, str]:
        """Efficiency of a device, and its source: a device, its generation, or empty."""
        shares, origin = self.devices.of(device)
        known = origin in self.devices.measured
        products = None if known else product_shares_of(device)
        return GpuEfficiency(
            kernels=self.kernels,
            shares=tuned_shares(device, shares),
            host=tuned_host(device, self.host),
            memory_activity=memory_activity,
            memory_gain=self.devices.memory_gain(device),
            present=self.present,
            products=None if products is None else products.over(shares.half, shares.memory),
        ), device.name if is_tuned(device) else origin
