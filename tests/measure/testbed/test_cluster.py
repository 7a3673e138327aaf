"""A real cluster on this machine: namespaces, shares, TensorFlow processes, one small workload."""

import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.codec import to_dict
from driple.errors import MeasureError
from driple.jobs import Workload
from driple.measure.counters.machine import busy_time, host_facts, wait_until_quiet
from driple.measure.testbed.campaign import Campaign, DisturbanceLimits, read_run
from driple.measure.testbed.cluster import LocalCluster, RunPlan
from driple.measure.testbed.collect import collect_dataset, labels_of_run
from driple.trace import targets_of

SMALL = Workload.parse("lenet-x0.25/mnist/b8/sgd/sync")
QUICK = RunPlan(warmup=1, min_iterations=10, seconds=1.0, max_seconds=3.0)

needs_cluster = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or not Path("/sys/fs/cgroup/cpu").exists(),
    reason="needs root, iproute2 and CPU control groups",
)


def test_iterations_fit_the_time() -> None:
    """Short iterations get more of them, long ones fewer, within the limits."""
    plan = RunPlan(min_iterations=30, max_iterations=100, seconds=9, max_seconds=16)
    assert plan.iterations(0.05) == 100
    assert plan.iterations(0.2) == 45
    assert plan.iterations(0.5) == 30
    assert plan.iterations(0.8) == 20
    assert plan.iterations(5.0) == 10


def test_other_settings_are_refused() -> None:
    """This machine has no V100, and a ring has no parameter server."""
    for name in ("V100", "CPU-R2/ho-1G"):
        with pytest.raises(MeasureError, match="CPU settings"):
            LocalCluster(Setting.parse(name), QUICK)


def test_machine_facts() -> None:
    """Facts have no names or paths in them; busy time only grows."""
    facts = host_facts()
    assert facts.cores == os.cpu_count()
    assert not any("/" in str(value) for key, value in to_dict(facts).items() if key != "cpu")
    before = busy_time()
    waited: list[float] = []
    assert wait_until_quiet(1000.0, 10.0, waited.append) >= 0
    assert not waited
    wait_until_quiet(-1.0, 2.5, waited.append)  # no machine is as quiet: it gives up
    assert len(waited) == 1
    assert busy_time().busy_s >= before.busy_s


@needs_cluster
def test_a_measured_run_has_bursts_on_every_resource(tmp_path: Path) -> None:
    """End to end: a campaign of one workload becomes a data set of one example.

    The bytes a worker sends per iteration are at least its gradients: 4 bytes per parameter.
    """
    campaign = Campaign(
        tmp_path,
        Setting.parse("CPU-P1w2"),
        QUICK,
        DisturbanceLimits(tries=1, other_cores=9, quiet_wait_s=0),
    )
    assert campaign.measure([SMALL], repeats=1, progress=lambda *_: None) == []
    dataset = collect_dataset(tmp_path, name="test", about=campaign.about)
    (example,) = dataset.examples
    assert example.family == "lenet"
    assert example.graph.num_nodes > 50
    assert (example.targets.flat >= 0).all()
    assert example.targets.values[:, 0].min() > 0
    record, _about = read_run(campaign.path(SMALL, 0))
    num = len(record.step_times_ns["w0"]) - 1
    column = record.samples.names.index("w0.net_tx")
    sent = np.ptp(record.samples.values[:, column])
    assert sent > 4 * record.num_parameters * num
    assert sent < 4 * 4 * record.num_parameters * num
    labels = labels_of_run(
        record, shares=dict.fromkeys(record.step_times_ns, QUICK.share), write_bytes_per_s=1e10
    )
    assert set(labels) == {"w0", "w1"}
    assert targets_of(labels["w0"]).iteration_time_s > 0


@needs_cluster
def test_a_worker_that_dies_is_reported_and_replaced(tmp_path: Path) -> None:
    """Kill a worker: one line says so, the next run works, nothing is left."""
    with LocalCluster(Setting.parse("CPU-P1w2"), QUICK) as cluster:
        group = Path("/sys/fs/cgroup/cpu/driple_w1/cgroup.procs")

        def kill_the_worker() -> None:
            for process in group.read_text().split():
                os.kill(int(process), signal.SIGKILL)

        with pytest.raises(MeasureError, match="another measuring run"):
            LocalCluster(Setting.parse("CPU-P1w2"), QUICK).__enter__()
        killer = threading.Timer(0.5, kill_the_worker)
        killer.start()
        with pytest.raises(MeasureError, match="w1 died"):
            cluster.run(SMALL, tmp_path / "graph.pb")
        assert cluster.run(SMALL, tmp_path / "graph.pb").workload == SMALL.name
    assert not Path("/run/netns/dpl_w1").exists()
    assert not Path("/sys/fs/cgroup/cpu/driple_w1").exists()
