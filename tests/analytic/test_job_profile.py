"""The closed form is the event simulation where nothing is by chance, and near it where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.analytic.job_profile import (
    imbalance,
    points_of,
    profile_of,
    profile_of_plan,
    slowest_device,
)
from driple.analytic.sweep import Points, iteration_seconds
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import GraphError, SettingError
from driple.graph import read_graph
from driple.schemes.ps import ClusterSpec, simulate_cluster
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from driple.step.plan import Message, Segment, StepPlan

MB = 1e6
RATE = 100 * MB
GRAPH = Path(__file__).parents[2] / "datasets" / "examples" / "resnet50.pbtxt"
PLAN = StepPlan(
    pulls=(Message(0, 10 * MB), Message(0, 30 * MB)),
    segments=(
        Segment(needs=1, duration_s=0.3, busy_s=0.3, memory_s=0),
        Segment(needs=2, duration_s=0.2, busy_s=0.2, memory_s=0, sends=(Message(0, 30 * MB),)),
        Segment(needs=2, duration_s=0.4, busy_s=0.4, memory_s=0, sends=(Message(0, 10 * MB),)),
    ),
)


@pytest.fixture(scope="module")
def job() -> PreparedJob:
    return PreparedJob(read_graph(GRAPH))


def cluster_of(workers: int, jitter: float = 0.0, rate: float = RATE) -> ClusterSpec:
    return ClusterSpec(
        worker_machine=tuple(range(workers)),
        server_machine=(workers,),
        link_bytes_per_s=rate,
        bridge_bytes_per_s=rate,
        message_s=1e-3,
        apply_s_per_byte=1e-9,
        synchronous=True,
        jitter=jitter,
    )


def simulated(workers: int, jitter: float = 0.0, rate: float = RATE, steps: int = 4) -> float:
    spec = cluster_of(workers, jitter, rate)
    return simulate_cluster(spec, [PLAN] * workers, steps)[0].iteration_time_s


def point(workers: int, rate: float = RATE) -> Points:
    return Points(
        workers=workers,
        servers=1,
        worker_bytes_per_s=rate,
        server_bytes_per_s=rate,
        server_s_per_byte=1e-9,
        message_s=1e-3,
    )


@pytest.mark.parametrize("workers", [1, 3, 8])
@pytest.mark.parametrize("copy_s", [0.0, 1e-9, 1e-8])
def test_copies_in_memory_are_those_of_the_simulation(workers: int, copy_s: float) -> None:
    spec = replace(cluster_of(workers), role_copy_bytes_per_s=1 / copy_s if copy_s else np.inf)
    simulated_s = simulate_cluster(spec, [PLAN] * workers, 4)[0].iteration_time_s
    copied = replace(point(workers), worker_copy_s_per_byte=copy_s, server_copy_s_per_byte=copy_s)
    total_s = float(iteration_seconds(profile_of_plan(PLAN), copied).total_s)
    assert total_s == pytest.approx(simulated_s, rel=1e-6)


@pytest.mark.parametrize("rate", [0.1 * RATE, RATE, 100 * RATE])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_without_variance_it_is_the_simulation(workers: int, rate: float) -> None:
    total_s = float(iteration_seconds(profile_of_plan(PLAN), point(workers, rate)).total_s)
    assert total_s == pytest.approx(simulated(workers, rate=rate), rel=1e-9)


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("rate", [RATE, 100 * RATE])
def test_with_variance_it_is_within_2_percent(workers: int, rate: float) -> None:
    at = replace(point(workers, rate), deviation=0.05)
    total_s = float(iteration_seconds(profile_of_plan(PLAN), at).total_s)
    assert total_s == pytest.approx(simulated(workers, 0.05, rate, 400), rel=0.02)


def test_a_setting_of_one_server_gives_the_simulators_time(
    job: PreparedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: graph, device, machines and links of the setting; copies are not in it."""
    monkeypatch.setattr(
        "driple.simulate.run.copies_s_per_byte", lambda topology: (0.0,) * len(topology.workers)
    )
    calibration = replace(shipped_calibration(), jitter=0.0)
    setting = Setting.parse("V100-P1w2/ho-PCIe")
    wanted = simulate(job, setting, calibration, num_steps=3).iteration_time_s
    at = points_of(job, topology_of(setting), calibration)
    breakdown = iteration_seconds(
        profile_of(job, slowest_device(job, topology_of(setting), calibration)), at
    )
    assert float(breakdown.total_s) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "rel"),
    # On machines with both roles several servers answer at once, which the profile leaves out.
    [("V100-P2w2/ho-PCIe", 0.12), ("2080Ti-P4w4/he-40G", 0.15), ("V100-P5w10/he-1G", 0.12)],
)
def test_settings_of_several_servers_come_near(job: PreparedJob, name: str, rel: float) -> None:
    calibration, setting = shipped_calibration(), Setting.parse(name)
    wanted = simulate(job, setting, calibration, num_steps=6).iteration_time_s
    device = slowest_device(job, topology_of(setting), calibration)
    breakdown = iteration_seconds(
        profile_of(job, device), points_of(job, topology_of(setting), calibration)
    )
    assert float(breakdown.total_s) == pytest.approx(wanted, rel=rel)


def test_variables_in_turn_load_servers_unevenly(job: PreparedJob) -> None:
    assert imbalance(job, 1) == 1
    assert 1 < imbalance(job, 4) < 4


def test_rings_and_graphs_that_send_nothing_are_refused(job: PreparedJob) -> None:
    with pytest.raises(SettingError, match="ring"):
        points_of(job, topology_of(Setting.parse("2080Ti-R4")), shipped_calibration())
    lonely = replace(PLAN, segments=tuple(replace(s, sends=()) for s in PLAN.segments))
    with pytest.raises(GraphError, match="no gradients"):
        profile_of_plan(lonely)
    assert np.isfinite(profile_of_plan(PLAN).compute_s)
