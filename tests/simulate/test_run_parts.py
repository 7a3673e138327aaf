"""Parts of a simulation: links that count, means over workers, refusals, defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import OptimizerUpdate
from driple.schemes.records import WorkerRecord
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import (
    calibration_assumptions,
    iteration_time_s,
    simulate,
    simulate_steps,
    simulated_step_s,
    step_of,
    targets_of_record,
)
from tests.simulate.jobs import CALIBRATION, net

JOB = PreparedJob(net(8))
GPUS = shipped_calibration()


def links_assumed(setting: str) -> list[object]:
    """Links without measurements that an answer names."""
    remarks = calibration_assumptions(topology_of(Setting.parse(setting)), CALIBRATION)
    return [one.values["link"] for one in remarks if one.code == "link_not_measured"]


@pytest.mark.parametrize(
    ("setting", "links"),
    [
        ("1xV100/PCIe4", []),  # a device alone crosses none
        ("2xV100/PCIe4", ["PCIe4"]),
        ("2x1xV100/PCIe4+100G", []),  # a device a machine crosses the network alone
        ("2x2xV100/PCIe4+100G", ["PCIe4"]),
        ("2x2xV100/PCIe3+100G", []),
    ],
)
def test_only_links_that_are_crossed_are_assumed(setting: str, links: list[str]) -> None:
    assert links_assumed(setting) == links


def forward() -> PreparedJob:
    """A graph without gradients."""
    graph: OpGraph = net(8)
    traffic = replace(
        graph.traffic, sent_bytes=graph.traffic.sent_bytes[:0], senders=graph.traffic.senders[:0]
    )
    plain = replace(graph, remote=(), traffic=traffic, update=OptimizerUpdate())
    return PreparedJob(replace(plain, is_training=False))


def test_a_forward_pass_runs_on_one_device_without_servers() -> None:
    job = forward()
    alone = simulate_steps(job, topology_of(Setting.parse("1xV100")), GPUS, num_steps=2)
    assert len(alone) == 1
    with pytest.raises(GraphError, match=r"has 2 workers;"):
        simulate_steps(job, topology_of(Setting.parse("2xV100/PCIe")), GPUS, num_steps=2)
    with pytest.raises(GraphError, match=r"has 1 worker and parameter servers;"):
        simulate_steps(job, topology_of(Setting.parse("V100-P1w1/ho-PCIe")), GPUS, num_steps=2)


def test_the_time_of_a_step_needs_two_of_them() -> None:
    setting = Setting.parse("1xV100")
    with pytest.raises(ConfigError, match="num_steps"):
        simulated_step_s(JOB, setting, GPUS, num_steps=1)
    two_s = simulated_step_s(JOB, setting, GPUS, num_steps=2)
    assert two_s == simulate(JOB, setting, GPUS, num_steps=2).iteration_time_s
    assert 0 < two_s < 1


def test_seeds_are_0_by_default() -> None:
    setting = Setting.parse("2xV100/PCIe")
    topology = topology_of(setting)
    steps = [
        simulate_steps(JOB, topology, GPUS, num_steps=4),
        simulate_steps(JOB, topology, GPUS, num_steps=4, seed=0),
        simulate_steps(JOB, topology, GPUS, num_steps=4, seed=1),
    ]
    ends = [records[0].step_ends_s for records in steps]
    assert ends[0] == ends[1] != ends[2]
    usual = simulate(JOB, setting, GPUS, num_steps=4)
    stated = simulate(JOB, setting, GPUS, num_steps=4, seed=0)
    assert usual.iteration_time_s == stated.iteration_time_s
    assert usual.iteration_time_s == simulated_step_s(JOB, setting, GPUS, num_steps=4)
    assert simulated_step_s(JOB, setting, GPUS, num_steps=4, topology=topology) == (
        simulated_step_s(JOB, setting, GPUS, num_steps=4)
    )


def test_servers_update_in_place_of_devices() -> None:
    """An update of a second lengthens a step of one device, and none with servers."""
    heavy = PreparedJob(replace(JOB.graph, update=replace(JOB.graph.update, moved_bytes=10**12)))
    for name, least_s in (("1xV100", 0.1), ("V100-P1w1/ho-PCIe", 0.0)):
        setting = Setting.parse(name)
        more_s = simulated_step_s(heavy, setting, GPUS) - simulated_step_s(JOB, setting, GPUS)
        assert more_s > least_s if least_s else more_s == 0.0


def test_a_step_is_the_mean_of_workers_with_the_settings_own_device() -> None:
    """Of the four workers of two kinds those of the first count."""
    topology = topology_of(Setting.parse("2080Ti-P2w2/he-40G"))
    kinds = topology.labelled_workers()
    times = {worker: 1.0 + worker for worker in range(len(topology.workers))}
    records = [WorkerRecord(step_ends_s=[0.0, seconds, 2 * seconds]) for seconds in times.values()]
    count = sum(kinds.values())
    expected = sum(times[worker] * weight for worker, weight in kinds.items()) / count
    assert iteration_time_s(topology, records) == pytest.approx(expected)
    own = {worker for worker, one in enumerate(topology.workers) if one == topology.workers[0]}
    assert set(kinds) <= own


@pytest.mark.parametrize(
    ("setting", "kernels"), [("2xV100/PCIe", True), ("V100-P1w2/ho-PCIe", False)]
)
def test_kernels_exchange_where_there_are_no_servers(setting: str, kernels: bool) -> None:
    topology = topology_of(Setting.parse(setting))
    records = simulate_steps(JOB, topology, GPUS, num_steps=3)
    step = step_of(topology, records)
    assert step.kernels_exchange == kernels
    assert step.step_s == pytest.approx(iteration_time_s(topology, records))


def test_counters_are_read_at_once_on_processors_and_when_asked_for_on_gpus() -> None:
    """A processor's answer is of counters, and what they cannot show is refused."""
    on_cpu, on_gpu = Setting.parse("CPU-P1w2"), Setting.parse("1xV100")
    read = simulate(JOB, on_cpu, shipped_calibration(on_cpu), num_steps=3)
    assert "_seen" in vars(read)
    assert "_seen" not in vars(simulate(JOB, on_gpu, GPUS, num_steps=3))


def test_traces_end_with_the_last_step() -> None:
    """Of steps so long that few of them fill the windows of a counter."""
    simulation = simulate(PreparedJob(net(10**6)), Setting.parse("1xV100"), GPUS, num_steps=3)
    record, trace = simulation.records[0], simulation.traces["device_util"]
    shown_s = len(trace.amount) * trace.period_s
    assert shown_s >= 2 * record.iteration_time_s - trace.period_s


def test_traces_begin_after_the_first_step_and_have_a_sample_every_twentieth_of_one() -> None:
    """Between a millisecond and a twentieth of a second; 60 windows of the counter and more."""
    setting = Setting.parse("1xV100")
    window_s = setting.worker.known_window_s
    assert window_s
    for batch in (8, 4096, 10**6):
        simulation = simulate(PreparedJob(net(batch)), setting, GPUS, num_steps=3)
        trace = simulation.traces["device_util"]
        step_s = simulation.iteration_time_s
        assert trace.period_s == pytest.approx(min(max(step_s / 20, 0.001), 0.05), rel=1e-3)
        assert len(trace.amount) * trace.period_s >= 60 * window_s * 0.99
        again = targets_of_record(simulation.records[0], window_s)
        assert again.flat.tolist() == pytest.approx(simulation.targets.flat.tolist())
