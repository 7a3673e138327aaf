"""Calibration: efficiency of devices and links, fitted to measurements.

calibration-*.json -> Calibration -> CalibratedDevice: published peaks + fitted efficiency

A device without measurements gets the fitted efficiency of its generation, or of the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np

from driple.catalog import DEVICES, Device, Link, device_named, link_named
from driple.catalog.model import ETHERNET, RDMA, TCP
from driple.checks import check_number
from driple.cluster.cluster import INFINITY_FABRIC
from driple.cluster.links import NVLINK
from driple.cluster.setting import Setting
from driple.codec import Json, json_field, to_dict
from driple.errors import ConfigError
from driple.remarks import Remark, remark
from driple.schemes.links import TCP_EFFICIENCY, TCP_SHARES, LinkEfficiency
from driple.schemes.nccl_links import nccl_efficiency
from driple.schemes.records import check_rate
from driple.schemes.registry import scheme_named
from driple.simulate.device_models import CalibratedDevice, CoreModel, GpuModel, Reached
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_rates import tuning_remarks
from driple.trace.provenance import TimeError
from driple.versioned import from_versioned_json

__all__ = [
    "ETHERNET",
    "CalibratedDevice",
    "Calibration",
    "ClusterErrors",
    "CoreModel",
    "GpuModel",
    "LinkEfficiency",
    "Reached",
    "is_cpu",
    "link_kind",
    "nearest_link",
    "shipped_calibration",
]

FORMAT = 2
_INFINIBAND = "InfiniBand"
# From this many measured links of a family on, their median predicts another link better than the
# nearest link does.
_ENOUGH_RELATIVES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterErrors:
    """Leave-one-model-out errors of simulated iteration times on one kind of cluster.

    Attributes:
        rows: number of published or measured runs.
        median_pct: median of their errors, percent.
        p90_pct: 90th percentile, percent.
        devices: devices of the runs.
        new_device: the same with the device left out of the fit as well; None without such fits.
        settings: errors on settings that were measured with Driple, by name.
    """

    rows: int
    median_pct: float
    p90_pct: float
    devices: tuple[str, ...] = field(default=(), metadata=json_field(optional=True))
    new_device: TimeError | None = field(default=None, metadata=json_field(optional=True))
    settings: Mapping[str, TimeError] = field(
        default_factory=dict, metadata=json_field(optional=True)
    )

    def error(self) -> TimeError:
        """The error over all runs."""
        return TimeError(
            rows=self.rows,
            median_pct=self.median_pct,
            p90_pct=self.p90_pct,
            devices=self.devices,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """All fitted constants of the simulator.

    Attributes:
        model: how long devices take.
        links: efficiency of each kind of link; `Ethernet` covers all rates.
        bridge_bytes_per_s: rate between two containers of one machine, each way.
        apply_s_per_byte: time of a server to apply one byte of gradient, seconds.
        jitter: standard deviation of the logarithm of a step's computing time.
        memory_activity: ratio of the observed memory-active time to bytes over bandwidth.
        errors: errors of simulated against published iteration times, by kind of cluster (`single`,
            `ring`, `servers`).
        about: sources and date.
        role_copy_bytes_per_s: rate at which a worker or a parameter server copies, in its host's
            memory, what crosses links between machines, each way, in series with the link; infinite
            if the shares of the links were fitted to what arrives, copies included.
    """

    model: CoreModel | GpuModel
    links: Mapping[str, LinkEfficiency]
    bridge_bytes_per_s: float
    apply_s_per_byte: float
    jitter: float
    memory_activity: float
    errors: Mapping[str, ClusterErrors]
    about: Mapping[str, Json]
    role_copy_bytes_per_s: float = field(default=float("inf"), metadata=json_field(optional=True))

    def __post_init__(self) -> None:
        for name in ("apply_s_per_byte", "jitter"):
            check_number(name, getattr(self, name), least=0)
        for name in ("bridge_bytes_per_s", "memory_activity"):
            check_number(name, getattr(self, name), above=0)
        check_rate("role_copy_bytes_per_s", self.role_copy_bytes_per_s)

    def device(self, device: Device | str) -> CalibratedDevice:
        """A device with its own efficiency, its generation's, or the typical one.

        Args:
            device: the device, or its name in the installed catalogue.

        Raises:
            SettingError: no such device.
        """
        spec = device_named(device) if isinstance(device, str) else device
        efficiency, origin = self.model.of(spec, self.memory_activity)
        return CalibratedDevice(spec, efficiency, origin)

    def link(self, link: Link | str) -> LinkEfficiency:
        """Efficiency of a link; of its nearest relatives if it was not measured.

        A share that the user states counts, whatever was measured elsewhere.

        Args:
            link: the link, or its name in the installed catalogue.

        Raises:
            SettingError: no such link.
            ConfigError: no measured link can substitute for it.
        """
        spec = link_named(link) if isinstance(link, str) else link
        if spec.efficiency is not None:
            usual = self.link(replace(spec, efficiency=None))
            latency_s = usual.latency_s if spec.latency_s is None else spec.latency_s
            return LinkEfficiency(share=spec.efficiency, latency_s=latency_s, sharing=0.0)
        measured = nccl_efficiency(spec)
        if measured is not None:
            return measured
        kind = link_kind(spec)
        if kind in self.links:
            return self.links[kind]
        if kind == TCP:
            return TCP_EFFICIENCY
        family = _family(spec)
        related = [reached for other, reached in self.links.items() if _family(other) == family]
        if len(related) < _ENOUGH_RELATIVES:
            nearest = nearest_link(spec, self.links)
            if nearest not in self.links:
                raise ConfigError(
                    f"no measured link can stand in for {spec.name}: neither a relative nor "
                    f"{ETHERNET} is among those of the calibration "
                    f"({', '.join(self.links) or 'none'})"
                )
            return self.links[nearest]
        numbers = np.median([astuple(reached) for reached in related], axis=0)
        return LinkEfficiency(*numbers.tolist())

    def with_host(self, op_s: float, runtime: Runtime) -> Calibration:
        """The same with hosts of a known speed.

        Args:
            op_s: seconds of a host to hand one op of the step, or kernel of a compiled one, to a
                GPU. All else that it does takes as many times as long as usual as an op does.
            runtime: software that runs the step.

        Raises:
            ConfigError: a calibration of processors, whose ops no host starts; a time that is not
                above 0.
        """
        if not isinstance(self.model, GpuModel):
            raise ConfigError(
                "the host's time for each op is for GPUs: no host starts the ops of a processor; "
                "leave it out, or give a setting of GPUs"
            )
        check_number("host_us_per_op", 1e6 * op_s, above=0)
        host = self.model.host.slower(op_s / self.model.host.each_s(runtime))
        return replace(self, model=replace(self.model, host=host))

    def assumptions(self, devices: Iterable[Device], links: Iterable[Link]) -> tuple[Remark, ...]:
        """Substitutes for devices and links without measurements."""
        remarks: list[Remark] = []
        for device in dict.fromkeys(devices):
            source = self.device(device).measured_on
            if source != device.name:
                remarks.append(_unmeasured(device, source))
            remarks += tuning_remarks(device)
        for link in dict.fromkeys(links):
            if link.efficiency is not None or link.kind == TCP:
                remarks.append(_stated(link) if link.efficiency is not None else _by_tcp(link))
                continue
            if nccl_efficiency(link) is not None:
                continue
            nearest = nearest_link(link, self.links)
            if nearest != link_kind(link):
                remarks.append(remark("link_not_measured", link=link.name, like=nearest))
        return tuple(remarks)

    def error_of(self, setting: Setting, link: Link | str) -> TimeError | None:
        """Error of simulated iteration times on such a cluster; None if it is not known.

        It is over all published runs, whatever network they train, and is recorded with a data set
        of many networks. `stated_error` finds the error that belongs to one answer.

        For a device without published runs on such clusters, or a ring over an unmeasured link, it
        is the error on devices that were left out of the fit, and `devices` lists those. With
        parameter servers that error comes from one small GPU, so the device's single-GPU error is
        used where it is larger (`one_device`): a cluster's step contains a step of one device. A
        setting that was measured itself gets its own error.

        Args:
            setting: the cluster.
            link: link between its machines, or between workers on one machine.
        """
        kind = scheme_named(setting.scheme.name).runs_like(setting.num_workers).times
        measured = self.errors[kind].settings if kind in self.errors else {}
        if setting.name in measured:
            return replace(measured[setting.name], setting=setting.name)
        new_link = kind == "ring" and link_kind(link) not in self.links
        error = self._error_on(kind, setting.device, new_link=new_link)
        if kind == "servers" and error is not None and error.new_device:
            single = self._error_on("single", setting.device)
            if single is not None and single.p90_pct > error.p90_pct:
                return replace(single, one_device=True)
        return error

    def _error_on(self, kind: str, device: str, *, new_link: bool = False) -> TimeError | None:
        """Error on one kind of cluster; `new_device` if only those of other devices are known."""
        errors = self.errors.get(kind)
        if errors is None:
            return None
        if errors.new_device is not None and (new_link or device not in errors.devices):
            return replace(errors.new_device, new_device=True)
        return errors.error()

    def to_dict(self) -> dict[str, Json]:
        """The content of a calibration file."""
        return {"format": FORMAT, **to_dict(self, where="calibration")}

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Parse the text of a calibration file.

        Raises:
            ConfigError: the text is not a calibration.
        """
        calibration = from_versioned_json(
            cls, text, version=FORMAT, what="calibration", advice="fit it again"
        )
        odd = [name for name in calibration.model.devices.measured if name not in DEVICES]
        if odd:
            raise ConfigError(f"calibration has devices outside the catalogue: {', '.join(odd)}")
        if ETHERNET not in calibration.links:
            raise ConfigError("calibration has no Ethernet among its links; fit it again")
        return calibration


def shipped_calibration(setting: Setting | None = None) -> Calibration:
    """The calibration that ships with Driple: one for GPUs, one for CPU settings.

    Args:
        setting: setting whose devices decide; GPUs by default.
    """
    kind = "gpu" if setting is None or not setting.on_cpu else "cpu"
    return _installed(f"calibration-{kind}.json")


def is_cpu(device: str) -> bool:
    """Whether a device is a share of a CPU core."""
    return device_named(device).is_cpu


@cache
def _installed(name: str) -> Calibration:
    return Calibration.from_json((files("driple.simulate") / name).read_text())


def link_kind(link: Link | str) -> str:
    """Name of the links that share an efficiency: all Ethernet rates are one kind."""
    spec = link_named(link) if isinstance(link, str) else link
    return spec.kind if spec.kind in {ETHERNET, TCP} else spec.name


def nearest_link(link: Link | str, kinds: Iterable[str]) -> str:
    """The nearest kind of link among these: the same family, and the nearest rate.

    A link without a measured relative gets the efficiency of Ethernet, even if `kinds` lacks it.

    Args:
        link: the link, or its name in the installed catalogue.
        kinds: names of links of the installed catalogue, or `Ethernet`.

    Raises:
        SettingError: a link that is not in the catalogue.
    """
    spec = link_named(link) if isinstance(link, str) else link
    kind, measured = link_kind(spec), set(kinds)
    if kind in measured:
        return kind
    related = [other for other in measured if other != ETHERNET and _family(other) == _family(spec)]
    return min(
        related,
        key=lambda other: abs(np.log(link_named(other).bytes_per_s / spec.bytes_per_s)),
        default=ETHERNET,
    )


def _family(link: Link | str) -> tuple[str, bool]:
    """Family (`NVLink`, `PCIe`, ...), and whether copies go through the host.

    Nothing is measured over AMD's Infinity Fabric, which joins devices as NVLink does; RDMA over
    any network is taken to reach what it does over InfiniBand.
    """
    if link == ETHERNET:
        return ETHERNET, False
    spec = link_named(link) if isinstance(link, str) else link
    kind = {INFINITY_FABRIC: NVLINK, RDMA: _INFINIBAND}.get(spec.kind, spec.kind)
    return (ETHERNET, False) if kind == ETHERNET else (kind, spec.through_host)


def _stated(link: Link) -> Remark:
    """A link with a share that the user states."""
    return remark(
        "link_stated",
        link=link.name,
        bytes_per_s=link.bytes_per_s * (link.efficiency or 0.0),
        share=link.efficiency,
        latency_s=link.latency_s,
    )


def _by_tcp(link: Link) -> Remark:
    """A network that is crossed by TCP; what it reaches is not known."""
    return remark(
        "link_by_tcp",
        link=link.name,
        share=TCP_EFFICIENCY.share,
        low=min(TCP_SHARES),
        high=max(TCP_SHARES),
        count=len(TCP_SHARES),
    )


def _unmeasured(device: Device, source: str) -> Remark:
    """A device without measured runs takes the efficiency of another, or of the usual one."""
    known = DEVICES.get(source)
    differs = known is not None and known.bytes_per_s != device.bytes_per_s
    return remark(
        "device_not_measured",
        device=device.name,
        source=source,
        is_same_chip=known is not None,
        source_bytes_per_s=known.bytes_per_s if known is not None and differs else None,
        bytes_per_s=device.bytes_per_s if differs else None,
    )
