"""GPUs of a record: readings in the recorder's clock, and what is not counted is named."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from driple.measure.record.gpus import GpuGauges


class FakeNvml:
    """A driver with GPUs that are 80 % busy, with samples each 100 ms.

    Args:
        modes: of each GPU: `whole`, `mig`, `lost` or `denied`.
        pids: processes on every GPU.
    """

    NVML_GPU_UTILIZATION_SAMPLES, NVML_MEMORY_UTILIZATION_SAMPLES = 1, 2

    class NVMLError(Exception):
        """As in NVML."""

    def __init__(self, modes: list[str], pids: tuple[int, ...] = ()) -> None:
        self.modes, self.pids = modes, pids

    def __getattr__(self, name: str) -> Any:
        if name in ("nvmlInit", "nvmlShutdown"):
            return lambda: None
        raise AttributeError(name)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802  # NVML's own names
        """As in NVML."""
        return len(self.modes)

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        """As in NVML."""
        return f"GPU {handle}".encode()

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        """As in NVML."""
        if index >= len(self.modes):
            raise self.NVMLError("Invalid Argument")
        return index

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        """As in NVML; the modes are current and pending."""
        return [int(self.modes[handle] == "mig")] * 2

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> SimpleNamespace:  # noqa: N802
        """As in NVML."""
        return SimpleNamespace(used=5 * 2**30)

    def nvmlDeviceGetComputeRunningProcesses(self, _handle: int) -> list[SimpleNamespace]:  # noqa: N802
        """As in NVML."""
        return [SimpleNamespace(pid=pid) for pid in self.pids]

    def nvmlDeviceGetSamples(self, handle: int, kind: int, since: int) -> tuple[int, list[Any]]:  # noqa: N802
        """As in NVML: five samples up to now that are newer than `since`."""
        if self.modes[handle] in ("lost", "denied"):
            raise self.NVMLError(
                "Insufficient Permissions" if self.modes[handle] == "denied" else "GPU is lost"
            )
        now_us = time.time_ns() // 1000
        times = [now_us - 100_000 * i for i in range(5, 0, -1)]
        return 1, [
            SimpleNamespace(timeStamp=at, sampleValue=SimpleNamespace(uiVal=80 // kind))
            for at in times
            if at > since
        ]


def test_samples_of_the_driver_come_once_on_the_monotonic_clock() -> None:
    """Times of the wall clock become those of the recorder; nothing is read twice."""
    gauges = GpuGauges(FakeNvml(["whole", "whole"], pids=(5, 6)))
    readings = [*gauges.read({5}), *gauges.read({5})]
    now_ns = time.monotonic_ns()
    mine = [(at, value) for name, at, value in readings if name == "gpu1.device_util"]
    assert {value for _, value in mine} == {80}
    assert all(now_ns - 2_000_000_000 < at <= now_ns for at, _ in mine)
    assert len({at for at, _ in mine}) == len(mine)
    assert {v for name, _, v in readings if name == "gpu0.device_mem_util"} == {40}
    last = {name: value for name, _, value in readings}
    assert (last["gpu0.own"], last["gpu0.others"]) == (1, 1)
    assert last["gpu0.memory_bytes"] == 5 * 2**30
    assert set(last) == set(gauges.gauges)
    assert set(gauges.missing) == {"gpu0.gpm", "gpu1.gpm"}


@pytest.mark.parametrize(
    ("mode", "words"),
    [("mig", "MIG mode"), ("denied", "Insufficient Permissions"), ("lost", "GPU is lost")],
)
def test_a_gpu_that_cannot_be_counted_is_named_and_the_others_are_read(
    mode: str, words: str
) -> None:
    """The record goes on with the rest."""
    gauges = GpuGauges(FakeNvml([mode, "whole"]))
    assert words in gauges.missing["gpu0"]
    assert {name.partition(".")[0] for name, _, _ in gauges.read(())} == {"gpu1"}


def test_a_gpu_that_is_lost_later_is_named_and_the_record_goes_on() -> None:
    """A driver that fails in the middle ends the readings of its GPU alone."""
    nvml = FakeNvml(["whole", "whole"])
    gauges = GpuGauges(nvml)
    nvml.modes[0] = "lost"
    gauges.read(())
    assert "no longer read" in gauges.missing["gpu0"]
    assert {name.partition(".")[0] for name, _, _ in gauges.read(())} == {"gpu1"}


def test_no_gpu_is_said() -> None:
    """A machine without one."""
    gauges = GpuGauges(FakeNvml([]))
    assert gauges.missing == {"gpu": "no NVIDIA GPU, or its driver is not loaded"}
    assert gauges.read(()) == []
