"""NVML's sample buffer, replayed without a GPU."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driple.errors import MeasureError
from driple.measure.counters.nvml import GaugeSamples, NvmlSource, gauge_trace
from driple.trace import label_trace


@dataclass
class ReplayedNvml:
    """The five calls that the source makes, answered from a list; like the driver, it repeats."""

    samples: list[tuple[int, int]]
    seen: int = 0
    NVML_GPU_UTILIZATION_SAMPLES: int = 1
    NVML_MEMORY_UTILIZATION_SAMPLES: int = 2
    NVMLError: type[Exception] = RuntimeError

    def nvmlInit(self) -> None:  # noqa: N802  # NVML's own name
        """As in NVML."""

    def nvmlShutdown(self) -> None:  # noqa: N802
        """As in NVML."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        """As in NVML."""
        if index:
            raise RuntimeError("no such GPU")
        return index

    def nvmlDeviceGetSamples(self, _handle: int, kind: int, since: int) -> tuple[int, list[Any]]:  # noqa: N802
        """All samples so far; the second kind has half the value."""
        del since
        self.seen += 1
        upto = self.samples[: 40 * self.seen]
        return 1, [
            SimpleNamespace(timeStamp=t, sampleValue=SimpleNamespace(uiVal=v // kind))
            for t, v in upto
        ]


def recorded(num: int = 200) -> list[tuple[int, int]]:
    """20 ms samples: six busy, four idle, zeros included."""
    return [(20_000 * (i + 1), 90 if i % 10 < 6 else 0) for i in range(num)]


def test_each_driver_sample_counts_once_zeros_included() -> None:
    """Reading often repeats samples; they are kept once, and idle ones are not lost."""
    source = NvmlSource(nvml=ReplayedNvml(recorded()))
    for _ in range(10):
        source.read()
    kept = source.samples["device_util"]
    assert len(kept.time_us) == 200
    assert kept.value.count(0.0) == 80
    assert kept.update_period_s == pytest.approx(0.02)
    assert max(source.samples["device_mem_util"].value) == 45.0
    source.close()


def test_replayed_square_wave_has_its_label() -> None:
    """0.12 s at 90 %, 0.08 s idle."""
    samples = GaugeSamples()
    for time_us, value in recorded():
        samples.add(time_us, value)
    label = label_trace(gauge_trace(samples, resource="device_util", grid_s=0.02), 0.2)
    assert label.burst_amount == pytest.approx(90)
    assert label.burst_duration_s == pytest.approx(0.12)
    assert label.idle_duration_s == pytest.approx(0.08)


def test_a_value_holds_for_the_time_up_to_its_sample() -> None:
    """Finer grids repeat the value of the sample that ends the period."""
    samples = GaugeSamples(time_us=[0, 100_000, 200_000], value=[7.0, 50.0, 10.0])
    trace = gauge_trace(samples, resource="device_util", grid_s=0.05)
    assert trace.amount.tolist() == [50.0, 50.0, 10.0, 10.0]
    assert trace.counter_period_s == pytest.approx(0.1)


def test_driver_errors_and_too_few_samples_are_told() -> None:
    """NVML's errors become ours."""
    with pytest.raises(MeasureError, match="no such GPU"):
        NvmlSource(1, nvml=ReplayedNvml([]))
    with pytest.raises(MeasureError, match="0 sample"):
        gauge_trace(GaugeSamples(), resource="device_util", grid_s=0.02)
    assert np.isclose(GaugeSamples().update_period_s, 0)
