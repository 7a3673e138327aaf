"""Thirteen numbers become a calibration of CPUs, and simulate."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from tests.simulate.jobs import net


def base_of(program: ModuleType) -> Calibration:
    """The shipped calibration of CPUs, which the script begins with."""
    return shipped_calibration(Setting.parse(program.FIRST))


def test_numbers_go_where_they_belong(program: ModuleType) -> None:
    """Each of the thirteen is found in the calibration again."""
    values = {name: (1 + i) * value for i, (name, value) in enumerate(program.START.items())}
    calibration = program.calibration_of(np.log(list(values.values())), base_of(program))
    core = calibration.model.devices.generations["CPU"]
    assert core.compute == pytest.approx(values["compute"])
    assert core.memory == pytest.approx(values["memory"])
    assert core.start_s == pytest.approx(values["start_s"])
    assert calibration.model.kernels.window_start == pytest.approx(values["window_start"])
    assert values["matmul"] == pytest.approx(max(calibration.model.kernels.product))
    assert calibration.apply_s_per_byte == pytest.approx(values["apply_s_per_byte"])
    link = calibration.links[program.ETHERNET]
    assert (link.share, link.latency_s) == pytest.approx(
        (values["link_share"], values["message_s"])
    )


def test_slower_cores_take_longer(program: ModuleType) -> None:
    """Half of the rate that products reach lengthens a step; times of before are forgotten."""
    job = PreparedJob(net(8, sync=True))
    start = np.log(list(program.START.values()))
    slower = start.copy()
    slower[list(program.START).index("compute")] -= np.log(2)
    base = base_of(program)
    (fast_s,), (slow_s,) = (program.simulated_s([job], logs, base) for logs in (start, slower))
    assert fast_s < slow_s <= 2 * fast_s


def test_memory_activity_makes_bursts_as_large_as_measured(program: ModuleType) -> None:
    """Twice the simulated burst asks for twice the activity."""
    graph, setting = net(8, sync=True), Setting.parse(program.FIRST)
    active = replace(shipped_calibration(setting), memory_activity=1.0)
    run = simulate(PreparedJob(graph), setting, active, num_steps=program.STEPS)
    burst = run.targets.flat[program.MEMORY_BURST]
    assert program.memory_activity(active, [graph], np.array([2 * burst])) == pytest.approx(2.0)


def test_errors_are_summarised_in_percent(program: ModuleType) -> None:
    """Median and 90th percentile of shares."""
    summary = program.summary_of([0.1, 0.2, 0.3])
    assert (summary.rows, summary.median_pct, summary.p90_pct) == (3, 20.0, 28.0)
