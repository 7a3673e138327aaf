"""NVIDIA GPUs: NVML utilisation in the common form of all counters.

    NvmlSource.read() -> new samples of (time, utilisation.gpu) and (time, utilisation.memory)

`utilization.gpu` is the share of the driver's own sampling period in which a kernel ran,
`utilization.memory` the share in which device memory was read or written. The driver refreshes
them every 20 to 200 ms, so reading the current value faster repeats it. This module reads the
driver's buffer of time-stamped samples instead, so that each sample counts once, with its own time,
zeros included.

This module is the only one that imports NVML.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import MeasureError, MissingExtraError, install_hint
from driple.trace import Trace
from driple.units import counted

__all__ = ["GPM_METRICS", "GaugeSamples", "NvmlSource", "gauge_trace", "gpu_names"]

_KINDS = ("device_util", "device_mem_util")
# Counters of GPM by their numbers in nvml.h (nvmlGpmMetricId_t).
GPM_METRICS = {"sm_active_pct": 2, "tensor_active_pct": 5, "dram_active_pct": 10}


@dataclass(slots=True)
class GaugeSamples:
    """Samples of a value that a driver updates at irregular times.

    Attributes:
        time_us: times of the samples on the driver's clock, in microseconds, increasing.
        value: percent.
    """

    time_us: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def add(self, time_us: int, value: float) -> None:
        """Add a sample; a sample that is not newer than the last is a repetition and is dropped."""
        if not self.time_us or time_us > self.time_us[-1]:
            self.time_us.append(time_us)
            self.value.append(value)

    def keep_last(self) -> None:
        """Forget all samples but the last, after which new ones are asked for."""
        del self.time_us[:-1], self.value[:-1]

    @property
    def update_period_s(self) -> float:
        """Median time between two samples: the driver's own update period."""
        if len(self.time_us) < 2:
            return 0.0
        return float(np.median(np.diff(self.time_us))) / 1e6


def gauge_trace(samples: GaugeSamples, *, resource: str, grid_s: float) -> Trace:
    """Samples of a gauge on an even grid: each value holds for the time up to its sample.

    Args:
        samples: from `NvmlSource`.
        resource: resource of the trace.
        grid_s: sampling period of the trace.

    Raises:
        MeasureError: fewer than two samples.
    """
    if len(samples.time_us) < 2:
        raise MeasureError(
            f"the driver gave {counted(len(samples.time_us), 'sample')} of {resource}, a trace "
            "needs 2 or more; measure longer, with driple measure --set seconds=20"
        )
    time_s = np.array(samples.time_us, dtype=np.float64) / 1e6
    num = max(1, int((time_s[-1] - time_s[0]) / grid_s))
    middle_s: npt.NDArray[np.float64] = time_s[0] + grid_s * (np.arange(num) + 0.5)
    holds = np.minimum(np.searchsorted(time_s, middle_s), len(time_s) - 1)
    return Trace(
        resource=resource,
        unit="%",
        amount=np.array(samples.value, dtype=np.float64)[holds],
        period_s=grid_s,
        counter_period_s=samples.update_period_s,
    )


class NvmlSource:
    """One GPU's utilisation, read from the driver's sample buffer.

    Args:
        index: of the GPU.
        nvml: the module `pynvml`, or one of the same form that replays recorded samples.
    """

    def __init__(self, index: int = 0, nvml: Any = None) -> None:
        self._nvml = nvml if nvml is not None else _import_nvml()
        self._call(self._nvml.nvmlInit)
        self._handle = self._call(self._nvml.nvmlDeviceGetHandleByIndex, index)
        self.samples = {kind: GaugeSamples() for kind in _KINDS}
        self._gpm: list[Any] = []

    def read(self) -> None:
        """Fetch the driver's samples since the last call; call at least once a second."""
        sampling = (
            (self._nvml.NVML_GPU_UTILIZATION_SAMPLES, self.samples["device_util"]),
            (self._nvml.NVML_MEMORY_UTILIZATION_SAMPLES, self.samples["device_mem_util"]),
        )
        for kind, kept in sampling:
            since = kept.time_us[-1] if kept.time_us else 0
            _type, fresh = self._call(self._nvml.nvmlDeviceGetSamples, self._handle, kind, since)
            for sample in fresh:
                kept.add(int(sample.timeStamp), float(sample.sampleValue.uiVal))

    def memory_bytes(self) -> int:
        """Device memory in use by all processes."""
        return int(self._call(self._nvml.nvmlDeviceGetMemoryInfo, self._handle).used)

    def process_ids(self) -> set[int]:
        """Processes that compute on the GPU, by the numbers that the driver's machine gives."""
        running = self._call(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle)
        return {int(process.pid) for process in running}

    def is_partitioned(self) -> bool:
        """Whether the GPU is in MIG mode, in which the driver counts no utilisation."""
        try:
            current, _pending = self._nvml.nvmlDeviceGetMigMode(self._handle)
        except self._nvml.NVMLError:  # a GPU without that mode
            return False
        return bool(current)

    def start_performance(self) -> bool:
        """Begin to count activity by unit (GPM); whether the GPU has such counters."""
        try:
            if not self._nvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
                return False
            self._gpm = [self._nvml.nvmlGpmSampleAlloc() for _ in range(2)]
            self._nvml.nvmlGpmSampleGet(self._handle, self._gpm[0])
        except (self._nvml.NVMLError, AttributeError):  # an old driver, or an old pynvml
            return False
        return True

    def performance_pct(self) -> dict[str, float]:
        """Mean activity by unit since the last call, percent: SMs, tensor cores, DRAM."""
        self._call(self._nvml.nvmlGpmSampleGet, self._handle, self._gpm[1])
        query = self._nvml.c_nvmlGpmMetricsGet_t()
        query.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        query.sample1, query.sample2 = self._gpm
        query.numMetrics = len(GPM_METRICS)
        for number, metric in enumerate(GPM_METRICS.values()):
            query.metrics[number].metricId = metric
        self._call(self._nvml.nvmlGpmMetricsGet, query)
        self._gpm.reverse()
        return {name: float(query.metrics[i].value) for i, name in enumerate(GPM_METRICS)}

    def close(self) -> None:
        """Shut NVML down."""
        self._call(self._nvml.nvmlShutdown)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._nvml.NVMLError as error:
            raise MeasureError(f"NVML failed: {error}; is the NVIDIA driver loaded?") from error


def gpu_names(nvml: Any = None) -> list[str]:
    """Names of the GPUs of this machine; empty without a driver.

    Args:
        nvml: as for `NvmlSource`.
    """
    try:
        nvml = nvml if nvml is not None else _import_nvml()
        nvml.nvmlInit()
    except MissingExtraError:
        return []
    except nvml.NVMLError:
        return []
    count = nvml.nvmlDeviceGetCount()
    names = [nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)]
    nvml.nvmlShutdown()
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


def _import_nvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise MissingExtraError(
            f"measuring a GPU needs nvidia-ml-py, which is not installed; {install_hint('gpu')}"
        ) from error
    return pynvml
