"""How a recorded job used its machines: labels of the four resources, step time and memory.

    records of one run (a host each) -> common window -> traces -> labels -> RunUse -> Targets

The labels are those of the test bed: `device_util` of a CPU is CPU time over the cores that the
job may use, `device_mem_util` the share of the time in which one core per process would be writing
what it allocates; those of GPUs are NVML's. Network is the host's. Numbers are means over GPUs and
hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from driple.cluster.setting import Setting
from driple.errors import DripleError, TraceError
from driple.measure.counters.nvml import GaugeSamples, gauge_trace
from driple.measure.record.hosts import common_window
from driple.measure.record.sources import ALLOCATED, CPU
from driple.measure.record.steps import StepTimes, steps_of
from driple.measure.record.store import HostRecord
from driple.remarks import Remark
from driple.trace import Label, Trace, label_trace, targets_of
from driple.trace.targets import RESOURCES, Targets

__all__ = ["LABEL_GRID_S", "RunUse", "run_use"]

LABEL_GRID_S = 0.05  # as of the test bed (docs/decisions/0004-label-grid.md)
_BUSY_PCT = 1.0  # a GPU with less is not the job's, where the driver does not say whose it is


@dataclass(frozen=True, kw_only=True, slots=True)
class RunUse:
    """How one run used its machines.

    Attributes:
        steps: of the run; times are the first host's.
        labels: by resource, means over devices and hosts; without those in `missing`.
        means: mean amount of each labelled resource, in its unit.
        missing: resources without a label, and why.
        device_bytes: most memory in use on a GPU; None without one.
        host_bytes: most resident memory of the job's processes on a host.
        gpus: names of the GPUs of the job; empty on CPUs.
        num_devices: GPUs, or processes that mark steps, of all hosts.
        remarks: what a reader should know.
    """

    steps: StepTimes
    labels: Mapping[str, Label]
    means: Mapping[str, float]
    missing: Mapping[str, str]
    device_bytes: int | None
    host_bytes: int
    gpus: tuple[str, ...]
    num_devices: int
    remarks: tuple[Remark, ...]

    def other_device(self, setting: Setting) -> str:
        """The device that was recorded, where it is none of the setting's; else nothing."""
        if not self.gpus:
            return "" if setting.worker.is_cpu else "CPUs"
        named = _letters(setting.worker.name) in _letters(self.gpus[0])
        return "" if named and not setting.worker.is_cpu else self.gpus[0]

    def targets(self) -> Targets:
        """The twelve numbers.

        Raises:
            TraceError: a resource has no label.
        """
        if self.missing:
            words = "; ".join(f"{name}: {why}" for name, why in self.missing.items())
            raise TraceError(f"the twelve numbers need all four resources; {words}")
        return targets_of(self.labels)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def run_use(records: Sequence[HostRecord], *, grid_s: float = LABEL_GRID_S) -> RunUse:
    """The use of one run.

    Args:
        records: one of each host.
        grid_s: sampling period of the traces that are labelled.

    Raises:
        TraceError: no steps, or hosts without a common window.
    """
    steps = [steps_of(record) for record in records]
    windows, remarks = common_window(records, steps)
    labels: dict[str, list[Label]] = {name: [] for name in RESOURCES}
    means: dict[str, list[float]] = {name: [] for name in RESOURCES}
    missing: dict[str, str] = {}
    step_s = fmean(one.step_s for one in steps)
    num_devices, names = 0, []
    for record, window in zip(records, windows, strict=True):
        gpus = _own_gpus(record)
        names += [record.about.gpus[int(gpu.removeprefix("gpu"))] for gpu in gpus]
        num_devices += len(gpus) or max(1, len(record.marks))
        for resource in RESOURCES:
            try:
                for trace in _traces(record, resource, gpus, window, grid_s):
                    labels[resource].append(label_trace(trace, step_s))
                    means[resource].append(float(trace.amount.mean()))
            except DripleError as error:
                missing.setdefault(resource, str(error))
        remarks += map(Remark.of_text, record.about.log)
    known = [name for name in RESOURCES if name not in missing]
    return RunUse(
        steps=replace(steps[0], step_s=step_s),
        labels={name: _mean_label(labels[name]) for name in known},
        means={name: fmean(means[name]) for name in known},
        missing=missing,
        device_bytes=max(filter(None, map(_device_bytes, records)), default=None),
        host_bytes=max(
            int(record.gauges["memory_bytes"].values.max(initial=0)) for record in records
        ),
        gpus=tuple(names),
        num_devices=num_devices,
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _traces(
    record: HostRecord, resource: str, gpus: Sequence[str], window: tuple[int, int], grid_s: float
) -> list[Trace]:
    """The traces of a resource: one of each GPU, or one of the host.

    Raises:
        TraceError: it was not recorded.
    """
    if resource.startswith("device") and gpus:
        return [_gpu_trace(record, f"{gpu}.{resource}", resource, window, grid_s) for gpu in gpus]
    column, unit, scale = _column(record, resource)
    if column not in record.samples.names:
        why = record.about.missing.get("network") if resource.startswith("net") else None
        raise TraceError(f"{record.folder} has no {column}; {why or _advice(resource)}")
    trace = record.samples.to_trace(
        column,
        resource=resource,
        unit=unit,
        scale=scale,
        grid_s=grid_s,
        start_ns=window[0],
        end_ns=window[1],
    )
    return [trace]


def _column(record: HostRecord, resource: str) -> tuple[str, str, float]:
    """Counter of a resource of a host without GPUs, unit, and factor from its rate."""
    if resource == "device_util":
        return CPU, "%", 100e-9 / record.about.cores
    if resource == "device_mem_util":
        bandwidth = record.about.host.memory_write_bytes_per_s or 0
        processes = max(1, len(record.marks))
        return ALLOCATED, "%", 100 / (bandwidth * processes) if bandwidth else 0.0
    return resource, "MB/s", 1e-6


def _advice(resource: str) -> str:
    if resource == "device_mem_util":
        return (
            "without a GPU, allocations are counted of a command that driple record starts, with a "
            "C compiler (apt-get install gcc)"
        )
    return "record again"


def _gpu_trace(
    record: HostRecord, gauge: str, resource: str, window: tuple[int, int], grid_s: float
) -> Trace:
    readings = record.gauges[gauge]
    inside = (readings.times_ns >= window[0]) & (readings.times_ns <= window[1])
    samples = GaugeSamples(
        time_us=(readings.times_ns[inside] // 1000).tolist(),
        value=readings.values[inside].astype(np.float64).tolist(),
    )
    return gauge_trace(samples, resource=resource, grid_s=grid_s)


def _own_gpus(record: HostRecord) -> list[str]:
    """The GPUs of the job: those with its processes, else those that were busy."""
    named = [name.removesuffix(".own") for name in record.gauges if name.endswith(".own")]
    own = [gpu for gpu in named if record.gauges[f"{gpu}.own"].values.any()]
    busy = [
        gpu
        for gpu in named
        if len(values := record.gauges[f"{gpu}.device_util"].values) and values.mean() >= _BUSY_PCT
    ]
    return own or busy


def _device_bytes(record: HostRecord) -> int | None:
    most = [
        int(record.gauges[f"{gpu}.memory_bytes"].values.max(initial=0)) for gpu in _own_gpus(record)
    ]
    return max(most, default=None)


def _mean_label(labels: Sequence[Label]) -> Label:
    """Means over devices and hosts; the pattern of the first."""
    return Label(
        burst_amount=fmean(label.burst_amount for label in labels),
        burst_duration_s=fmean(label.burst_duration_s for label in labels),
        idle_duration_s=fmean(label.idle_duration_s for label in labels),
        idle_amount=fmean(label.idle_amount for label in labels),
        num_bursts=round(fmean(label.num_bursts for label in labels)),
        pattern=labels[0].pattern,
    )
