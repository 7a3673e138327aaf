"""Workers that train by turns: throughput of a turn, ports that are fair, and a real small job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.async_sgd.jobtrace import Resource
from driple.async_sgd.origin import TraceOrigin
from driple.errors import MeasureError
from driple.jobs import Workload
from driple.measure.testbed.async_cluster import FAIR_PORT, Turn, TurnCluster, TurnJob
from driple.measure.testbed.link_benchmark import measure_platform
from driple.measure.testbed.network import Port
from driple.measure.testbed.profile import read_steps
from tests.measure.testbed.test_cluster import needs_cluster

SECOND = 10**9


def turn_of(**seconds: list[float]) -> Turn:
    return Turn(
        times_ns={name: [int(at * SECOND) for at in times] for name, times in seconds.items()},
        used_cores={},
        bytes_per_s={},
        idle_cores=1.0,
        full_share=0.0,
        other_cores=0.0,
        steal_cores=0.0,
    )


def test_steps_count_by_their_share_from_the_last_begin_to_the_first_end() -> None:
    """From 1 s to 4 s: three steps of a second, and 3 s of a step of 4 s."""
    turn = turn_of(w0=[0, 1, 2, 3, 4], w1=[1, 5])
    assert turn.steps_per_s(0.0) == pytest.approx((3 + 0.75) / 3)
    assert turn.steps_per_s(2.0) == pytest.approx((1 + 0.25) / 1)
    with pytest.raises(MeasureError, match="more seconds"):
        turn.steps_per_s(3.0)


def test_a_fair_port_has_a_queue_for_each_peer_and_shares_that_fit() -> None:
    commands = FAIR_PORT.commands("eth0", 1e8, "dst", ["10.0.0.2", "10.0.0.3"])
    assert sum("bfifo" in command for command in commands) == 2
    assert sum("match ip dst 10.0.0." in command for command in commands) == 2
    parts = [command for command in commands if "parent 1:1 " in command]
    rates = [float(command.split(" rate ")[1].split("bit")[0]) for command in parts]
    assert sum(rates) <= 1e8 + len(rates)
    assert all("ceil 100000000bit" in command for command in parts)


def test_a_plain_port_has_one_queue() -> None:
    (only,) = Port().commands("eth0", 2e8, "src", ["10.0.0.2"])
    assert only.startswith("qdisc add dev eth0 root tbf rate 200000000bit burst 256kb")


@needs_cluster
def test_workers_train_by_turns_and_the_platform_is_measured(tmp_path: Path) -> None:
    """One worker traced, then two at once; a third that the cluster has not is refused."""
    job = TurnJob(
        workload=Workload.parse("lenet-x0.25/mnist/b8/sgd/async"),
        num_servers=1,
        num_workers=2,
        bits_per_s=2e8,
        server_share=0.5,
        worker_share=0.4,
    )
    with TurnCluster(1, 2) as cluster:
        with pytest.raises(MeasureError, match="more than"):
            cluster.open(replace(job, num_workers=3))
        with pytest.raises(MeasureError, match="synchronous"):
            cluster.open(replace(job, workload=Workload.parse("lenet-x0.25/mnist/b8/sgd/sync")))
        try:
            cluster.open(job)
            cluster.trace(tmp_path, 12)  # some records lack transfers, and are left out
            both = cluster.turn([0.0, 0.1], 1.5)
        finally:
            cluster.close_job()
        platform = measure_platform(cluster, 2e8, 0.5)
    assert set(both.times_ns) == {"w0", "w1"}
    assert all(len(times) > 2 for times in both.times_ns.values())
    assert both.steps_per_s(0.2) > 0
    assert both.used_cores["w1"] > 0
    trace = read_steps(tmp_path, batch_size=8, bytes_per_s=2.5e7, step_s=0.1, about=TraceOrigin())
    assert {Resource.DOWNLINK, Resource.UPLINK} <= set(trace.resources.tolist())
    assert trace.about.untraced_step_s == 0.1
    assert 0.5 * 2.5e7 < platform.bytes_per_s < 1.1 * 2.5e7
    assert (platform.overhead_s > 0).all()
    assert platform.record().overhead.s_per_byte >= 0
