"""More servers, more bandwidth, more steps: what no asynchronous job may be slower by."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.dataset.graph_store import GraphStore
from driple.graph.placement import Strategy, server_bytes
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import iteration_time_s, simulate, simulate_steps

GRAPHS = GraphStore.open(Path(__file__).parents[2] / "datasets" / "graphs" / "calibration")


def job_of(model: str, *, synchronous: bool = False) -> PreparedJob:
    """One of the catalogue."""
    graph = GRAPHS.graph(f"{model}/imagenet/b32/sgd/async/nchw")
    return PreparedJob(graph, program=Program(synchronous=synchronous))


def seconds_on(job: PreparedJob, setting: str, placement: Strategy = "greedy") -> float:
    topology = topology_of(Setting.parse(setting))
    return iteration_time_s(
        topology, simulate_steps(job, topology, shipped_calibration(), placement=placement)
    )


@pytest.mark.parametrize("placement", ["greedy", "round_robin"])
@pytest.mark.parametrize(
    ("model", "workers", "network"),
    [("alexnet", 2, "PCIe"), pytest.param("vgg16", 2, "PCIe", marks=pytest.mark.slow),
     pytest.param("resnet50", 2, "10G", marks=pytest.mark.slow), ("alexnet", 4, "1G"),
     ("vgg16", 3, "10G"), pytest.param("vgg16", 4, "PCIe", marks=pytest.mark.slow)],
)  # fmt: skip
def test_more_servers_are_not_slower(
    model: str, workers: int, network: str, placement: Strategy
) -> None:
    """By 1 % at most; in turn, more servers may hold more of the bytes on one of them."""
    job = job_of(model)
    counts = range(1, 9)
    times = [seconds_on(job, f"V100-P{n}w{workers}/ho-{network}", placement) for n in counts]
    nbytes = job.graph.traffic.received_bytes
    loads = [server_bytes(nbytes, n, placement).max() for n in counts]
    for few in range(8):
        for many in range(few + 1, 8):
            if loads[many] <= loads[few]:
                assert times[many] <= 1.01 * times[few], (few + 1, many + 1)


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("model", ["alexnet", "resnet50"])
def test_more_bandwidth_is_not_slower(model: str, synchronous: bool) -> None:
    job = job_of(model, synchronous=synchronous)
    times = [seconds_on(job, f"V100-P2w2/ho-{rate}G") for rate in (1, 5, 25, 100)]
    for slower, faster in pairwise(times):
        assert faster <= 1.01 * slower


@pytest.mark.parametrize(
    ("model", "setting"),
    [("vgg16", "V100-P1w2/ho-PCIe"), ("vgg16", "V100-P3w2/ho-PCIe"),
     ("resnet50", "V100-P1w4/ho-1G"), ("alexnet", "2080Ti-P2w2/he-40G")],
)  # fmt: skip
def test_a_job_does_not_depend_on_how_many_steps_are_simulated(model: str, setting: str) -> None:
    """And the fixed number of steps is long enough: the second half is as the first."""
    job, place = job_of(model), Setting.parse(setting)
    times = []
    for steps in (6, 20, 100, 400):
        simulation = simulate(job, place, shipped_calibration(place), num_steps=steps)
        times.append(simulation.iteration_time_s)
    assert max(times) <= 1.02 * min(times)
    steps_s = np.diff(simulation.records[0].step_ends_s)
    half = len(steps_s) // 2
    assert steps_s[:half].mean() == pytest.approx(steps_s[half:].mean(), rel=0.06)


def test_asynchronous_workers_use_the_whole_link_of_their_server() -> None:
    """Four VGG-16 on one server: what its link takes for their parameters, and no more."""
    job, calibration = job_of("vgg16"), shipped_calibration()
    topology = topology_of(Setting.parse("V100-P1w4/ho-1G"))
    link = calibration.link(topology.link)
    rate = topology.link_bytes_per_s * link.effective_share(4)
    least_s = 4 * job.graph.received_bytes / rate
    assert least_s <= seconds_on(job, "V100-P1w4/ho-1G") <= 1.02 * least_s
