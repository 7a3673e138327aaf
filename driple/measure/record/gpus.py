"""GPUs of a record: what NVML counts, as readings on the monotonic clock.

    NvmlSource of each GPU -> every second: (gauge, monotonic ns, value)

NVML's utilisation is the share of the driver's own window in which a kernel ran, or in which device
memory was read or written; its samples keep the driver's times. GPM, where a GPU has it, gives the
mean activity of SMs, tensor cores and DRAM over the second.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from driple.errors import MeasureError, MissingExtraError, install_hint
from driple.measure.counters.nvml import GPM_METRICS, NvmlSource, gpu_names

__all__ = ["GpuGauges", "Reading"]

Reading = tuple[str, int, int]

_UTIL = ("device_util", "device_mem_util")


class GpuGauges:
    """All GPUs of the machine.

    Args:
        nvml: the module `pynvml`, or one of the same form.

    Attributes:
        names: of the GPUs; empty without any.
        gauges: what `read` returns, such as `gpu0.device_util`.
        missing: what cannot be read, and why.
    """

    def __init__(self, nvml: Any = None) -> None:
        self.missing: dict[str, str] = {}
        self.gauges: list[str] = []
        self._sources: dict[int, NvmlSource] = {}
        self._with_gpm: set[int] = set()
        self._seen_us: dict[tuple[int, str], int] = {}
        self.names = gpu_names(nvml)
        for index in range(len(self.names)):
            self._open(index, nvml)
        if not self.names:
            self.missing["gpu"] = _why_none(nvml)

    def _open(self, index: int, nvml: Any) -> None:
        name = f"gpu{index}"
        try:
            source = NvmlSource(index, nvml)
            if source.is_partitioned():
                source.close()
                self.missing[name] = (
                    "it is in MIG mode, in which NVML counts no utilisation; record on a whole GPU"
                )
                return
            source.read()
            source.memory_bytes()
        except MeasureError as error:
            self.missing[name] = str(error)
            return
        self._sources[index] = source
        self.gauges += [f"{name}.{kind}" for kind in (*_UTIL, "memory_bytes", "own", "others")]
        if source.start_performance():
            self._with_gpm.add(index)
            self.gauges += [f"{name}.{kind}" for kind in GPM_METRICS]
        else:
            self.missing[f"{name}.gpm"] = "the GPU or its driver has no GPM counters (Hopper on)"

    def read(self, pids: Collection[int]) -> list[Reading]:
        """Readings since the last call; call every second.

        Args:
            pids: processes of the job.
        """
        wall_ahead_ns = time.time_ns() - time.monotonic_ns()
        now_ns, readings = time.monotonic_ns(), []
        for index, source in list(self._sources.items()):
            name = f"gpu{index}"
            try:
                readings += self._util(index, source, wall_ahead_ns)
                running = source.process_ids()
                values = {
                    "memory_bytes": source.memory_bytes(),
                    "own": len(running & set(pids)),
                    "others": len(running - set(pids)),
                }
                if index in self._with_gpm:
                    values |= {k: round(v) for k, v in source.performance_pct().items()}
                readings += [(f"{name}.{kind}", now_ns, value) for kind, value in values.items()]
            except MeasureError as error:
                self.missing[name] = f"no longer read after a while: {error}"
                del self._sources[index]
        return readings

    def _util(self, index: int, source: NvmlSource, wall_ahead_ns: int) -> list[Reading]:
        source.read()
        readings = []
        for kind in _UTIL:
            samples = source.samples[kind]
            seen = self._seen_us.get((index, kind), 0)
            readings += [
                (f"gpu{index}.{kind}", 1000 * time_us - wall_ahead_ns, round(value))
                for time_us, value in zip(samples.time_us, samples.value, strict=True)
                if time_us > seen
            ]
            if samples.time_us:
                self._seen_us[index, kind] = samples.time_us[-1]
                samples.keep_last()
        return readings

    def close(self) -> None:
        """Give NVML back."""
        for source in self._sources.values():
            source.close()


def _why_none(nvml: Any) -> str:
    try:
        source = NvmlSource(0, nvml)
    except MissingExtraError:
        return f"no GPU is counted: nvidia-ml-py is not installed ({install_hint('gpu')})"
    except MeasureError:
        return "no NVIDIA GPU, or its driver is not loaded"
    source.close()
    return "no NVIDIA GPU"
