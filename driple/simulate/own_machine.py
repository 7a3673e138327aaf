"""A setting with the hosts, devices and links of a measured machine.

    Setting, MachineFile (`driple measure --machine`) -> Setting with the measured values

Every value becomes the form that the rest of the simulator reads already: factors of a tuned device
(`tuned_half` ... `tuned_host`), efficiency and latency of a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from driple.catalog import Device
from driple.catalog.fields import DEVICE_FACTS, HOST_RUNS, TUNED, TUNING_FACTS, check_field
from driple.catalog.machine_file import Collective, MachineFile, MachineHost
from driple.catalog.model import Fact
from driple.cluster.nccl_table import NcclTable
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.remarks import Remark, remark
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_rates import HostPace
from driple.simulate.measured_link import with_measured_link
from driple.simulate.processor import ProcessorPace, with_pace

__all__ = ["host_factors", "machine_remarks", "measured_device", "with_machine"]

_US = 1e6
_BURST = 1.02  # times the rate of a large message, above which a smaller one was carried in a burst


def with_machine(setting: Setting, machine: MachineFile) -> Setting:
    """The setting with what was measured.

    Its devices of the kind that the file is of get measured rates and the measured host; a file
    without GPUs gives the host alone. Links count where the file has as many machines, or one.

    Args:
        setting: of GPUs, or of processors that exchange without servers.
        machine: the file.

    Raises:
        ConfigError: the file is of other GPUs, or of GPUs and the setting of processors.
        SettingError: the machines of the setting are not known.
    """
    if setting.on_cpu:
        return _with_links(_with_processor(setting, machine), machine)
    own = {row.name: row for row in machine.rows}
    kinds = setting.cluster.kinds
    if own and not any(device.name in own for device in kinds):
        raise ConfigError(
            f"{machine.file} was measured on {', '.join(own)}, and {setting.name} has "
            f"{', '.join(dict.fromkeys(device.name for device in kinds))}; measure there, or leave "
            "the file out"
        )
    changed = {
        device: measured_device(device, machine)
        for device in kinds
        if not own or device.name in own
    }
    return _with_links(_with_devices(setting, changed), machine)


def _with_processor(setting: Setting, machine: MachineFile) -> Setting:
    """A setting of processors, each worker of which computes as those of the file."""
    measured = machine.processor
    if setting.num_servers:
        raise ConfigError(
            f"{machine.file} is of training without parameter servers, and {setting.name} has "
            "some: bring it to your machine with driple measure --calibrate and driple predict "
            "--set host=FILE"
        )
    if measured is None:
        raise ConfigError(
            f"{machine.file} has no [processor], and {setting.name} computes on processors; "
            "measure a machine without GPUs: driple measure --machine"
        )
    pace = ProcessorPace(
        flops_per_s=measured.flops_per_s,
        bytes_per_s=measured.bytes_per_s,
        op_s=measured.us_per_op / _US,
    )
    changed = {
        device: replace(device, facts=with_pace(device.facts, pace), origin=machine.file)
        for device in setting.cluster.kinds
    }
    return _with_devices(setting, changed)


def measured_device(device: Device, machine: MachineFile) -> Device:
    """A device with the rates of its row in a machine file, and with the file's host.

    A row that was tuned to runs of the user's own has the pace of the host from them.
    """
    facts: dict[str, Fact] = dict(device.facts)
    for row in machine.rows:
        if row.name == device.name:
            stated = {key: row.values[key] for key in row.values if key in _FACTS}
            facts |= {key: value for key, value in stated.items() if not isinstance(value, tuple)}  # type: ignore[misc]
    model = shipped_calibration().model
    of_runs = any("tuned_host" in row.values and row.name == device.name for row in machine.rows)
    if machine.host is not None and not of_runs and isinstance(model, GpuModel):
        facts |= host_factors(machine.host, model.host, machine.file)
    return replace(device, facts=facts, origin=machine.file)


_FACTS = frozenset((*DEVICE_FACTS, *TUNING_FACTS))


def host_factors(host: MachineHost, usual: HostPace, file: str) -> dict[str, Fact]:
    """A measured host as the fields of a tuned device.

    Without a GPU the launch was assumed: the host is then not taken as known, so that the
    interval of the answer still holds the step on a slower one.

    Args:
        host: measured seconds.
        usual: pace of published runs.
        file: for errors.

    Raises:
        ConfigError: a pace that no host has.
    """
    factor = host.us_per_op / (_US * usual.op_s)
    check_field(TUNING_FACTS["tuned_host"], "the host's pace, over the usual one,", factor, file)
    return {"tuned_host": factor, HOST_RUNS: host.programs if host.launch_us is None else 0}


def _with_devices(setting: Setting, changed: Mapping[Device, Device]) -> Setting:
    """The setting with other devices in place of some."""
    cluster = setting.cluster
    machines = tuple(
        replace(one, devices=tuple(changed.get(device, device) for device in one.devices))
        for one in cluster.machines
    )
    return replace(
        setting,
        worker=changed.get(setting.worker, setting.worker),
        described=replace(cluster, machines=machines),
    )


def _with_links(setting: Setting, machine: MachineFile) -> Setting:
    """The setting with the network, and the link within machines, as all-reduces showed them."""
    if setting.num_servers or setting.num_workers < 2:
        return setting
    for each in machine.collectives:
        if each.collective != "all_reduce":
            continue
        cluster = setting.cluster
        link = cluster.network if each.machines > 1 else cluster.link
        several = max(len(one.devices) for one in cluster.machines) > 1
        if link is not None and (each.machines > 1 or several):
            setting = with_measured_link(setting, link, _table(each), machine.file)
    return setting


def _table(each: Collective) -> NcclTable:
    """Its times, without messages that a limited network carried in a burst."""
    is_kept = np.array(each.bytes_per_s) <= _BURST * each.sustained_bytes_per_s
    return NcclTable(
        sizes=np.array(each.sizes)[is_kept],
        seconds=np.array(each.seconds)[is_kept],
        ranks=each.ranks,
        machines=each.machines,
    )


def machine_remarks(machine: MachineFile, setting: Setting) -> tuple[Remark, ...]:
    """What a machine file leaves open of a setting, and what it was measured on.

    Args:
        machine: the file.
        setting: with its values.
    """
    remarks = []
    host, facts = machine.host, machine.machine
    if setting.on_cpu and machine.processor is not None:
        remarks.append(
            remark(
                "measured_processor",
                file=machine.file,
                gflops=machine.processor.flops_per_s / 1e9,
                gb_per_s=machine.processor.bytes_per_s / 1e9,
                us_per_op=machine.processor.us_per_op,
                threads=machine.processor.threads,
            )
        )
    elif host is not None:
        remarks.append(
            remark(
                "measured_host",
                file=machine.file,
                us_per_op=host.us_per_op,
                low_us=host.low_us,
                high_us=host.high_us,
                launch_us=host.launch_us,
            )
        )
    if facts is not None and facts.disturbed:
        remarks.append(
            remark("measured_while_busy", file=machine.file, busy_cores=facts.busy_cores)
        )
    is_tuned = any(f"tuned_{name}" in row.values for row in machine.rows for name in TUNED)
    if not is_tuned and not setting.on_cpu:
        remarks.append(remark("device_rates_assumed", device=setting.device, file=machine.file))
    joined = setting.num_workers > 1 and not setting.num_servers
    if joined:
        several = len(setting.cluster.machines) > 1
        tables = [one for one in machine.collectives if one.collective == "all_reduce"]
        fitting = [one for one in tables if (one.machines > 1) == several]
        if not fitting:
            remarks.append(remark("link_of_machine_not_measured", file=machine.file))
        elif fitting[0].backend == "gloo" and not setting.on_cpu:
            remarks.append(remark("measured_by_gloo", file=machine.file))
    return tuple(remarks)
