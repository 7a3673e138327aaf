"""A fit finds the device that made the times, and leaves alone what they do not tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.hardware import device_named
from driple.simulate.batched import BatchedGraph
from driple.simulate.calibrate import (
    KERNEL_START,
    fit_kernels,
    fit_steps,
    kernel_rows,
    step_rows,
)
from driple.simulate.kernels import kernel_times
from driple.simulate.published import PublishedRun
from tests.simulate.jobs import net

V100 = device_named("V100")
TRUE = replace(KERNEL_START, memory=0.55, dispatch_s=2e-5, filter_gradient=1.6)


def run(batch_size: int, seconds: float = 1.0) -> PublishedRun:
    return PublishedRun(
        source="made up",
        kind="single",
        model="net",
        batch_size=batch_size,
        half=False,
        fused=False,
        devices=("V100",),
        num_servers=0,
        gpus_per_machine=1,
        link="PCIe3",
        seconds=seconds,
    )


def test_steps_tell_the_device_that_made_them() -> None:
    graphs = {("net", False): BatchedGraph.of((16, net(16)), (32, net(32)))}
    rows = step_rows([run(n) for n in (1, 4, 16, 32, 64, 256)], graphs)
    rows = replace(rows, seconds=rows.simulated(V100, TRUE))
    before = np.abs(np.log(rows.simulated(V100, KERNEL_START) / rows.seconds))
    found = fit_steps(V100, rows, KERNEL_START)
    after = np.abs(np.log(rows.simulated(V100, found) / rows.seconds))
    assert after.max() < 0.15 * before.max()
    assert found.half_tiles == pytest.approx(KERNEL_START.half_tiles)  # nothing told of it


def test_kernels_tell_the_device_that_made_them() -> None:
    sizes = np.array([(1, m, n, k) for m in (64, 700, 4096) for n in (64, 512) for k in (64, 900)])
    rows = [
        dict(zip("bmnk", map(str, size), strict=True)) | {"op": op, "ms": "1"}
        for size in sizes
        for op in ("linear", "bmm")
    ]
    table, _ = kernel_rows(rows)
    true = replace(KERNEL_START, tiles=(0.6, 0.6, 0.5, 0.4, 0.3, 0.2), kernel_s=2e-5)
    seconds = kernel_times(table, V100, true)[:, 0]
    found = fit_kernels(V100, [(table, seconds)], KERNEL_START)
    off = np.abs(np.log(kernel_times(table, V100, found)[:, 0] / seconds))
    assert np.median(off) < 0.03
    assert found.kernel_s == pytest.approx(2e-5, rel=0.1)
