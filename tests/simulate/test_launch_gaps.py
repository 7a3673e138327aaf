"""A launch is a gap between kernels where the host is the slower one, and use where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import device_named
from driple.simulate.calibration import shipped_calibration
from driple.simulate.gpu_times import EMPTY_KERNEL_S, GpuEfficiency
from driple.simulate.prepared_job import PreparedJob
from driple.step.plan import OpTimes
from tests.simulate.jobs import net


def times(batch_size: int, *, op_s: float | None = None) -> OpTimes:
    """Times on an H100, with a host that takes so many seconds for each op."""
    device = shipped_calibration().device(device_named("H100"))
    efficiency = device.efficiency
    assert isinstance(efficiency, GpuEfficiency)
    if op_s is not None:
        host = replace(efficiency.host, tensorflow_op_s=op_s)
        device = replace(device, efficiency=replace(efficiency, host=host))
    return PreparedJob(net(batch_size)).times(device)


def busy_share(op_times: OpTimes) -> float:
    return float(op_times.busy_s.sum() / op_times.duration_s.sum())


def test_a_slow_host_leaves_the_device_idle() -> None:
    """At 1 ms for each op, kernels run for what they compute and 1.5 us each, no more."""
    slow, fast = times(1, op_s=1e-3), times(1, op_s=1e-9)
    assert busy_share(slow) < 0.1
    assert slow.busy_s.sum() < fast.busy_s.sum()
    launched = slow.busy_s > 0
    assert slow.busy_s[launched].min() >= EMPTY_KERNEL_S


def test_launches_hide_behind_long_kernels() -> None:
    """A large batch keeps the device busy: the launches' seconds are those of kernels."""
    assert busy_share(times(4096, op_s=1e-6)) == pytest.approx(1.0, abs=0.01)


def test_a_slower_host_never_makes_the_device_busier() -> None:
    shares = [busy_share(times(16, op_s=op_s)) for op_s in (1e-6, 1e-5, 1e-4, 1e-3)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 2 * shares[-1]


def test_memory_is_used_no_longer_than_kernels_run() -> None:
    op_times = times(1, op_s=1e-3)
    assert (op_times.memory_s <= op_times.busy_s).all()
    assert (op_times.busy_s <= op_times.duration_s * (1 + 1e-12)).all()
    assert np.isfinite(op_times.duration_s).all()
