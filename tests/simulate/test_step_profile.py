"""One step of simulated runs: its laws on every kind of setting, and bytes of its exchange."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import SimulationError
from driple.graph.step_facts import Phase
from driple.schemes.records import Computing, WorkerRecord
from driple.schemes.scheme import bytes_of, messages_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import Simulation, simulate, simulate_steps, step_of
from driple.simulate.step_profile import profile_of
from driple.step.exchange import BUCKETS
from driple.step.phases import PhasePart
from tests.schemes.test_split import gpt2
from tests.simulate.jobs import net

SETTINGS = (
    "1xH100",
    "8xH100",
    "4x8xH100/NVLink+400G@fsdp",
    "8xA100@zero1",
    "4xH100/NVLink@tp2-pp2",
    "V100-P1w2",
    "2080Ti-P2w2/he-40G",
    "V100-R8/ho-NVLink",
)
STEPS = 12


@cache
def simulated(setting: str) -> Simulation:
    job = gpt2(4) if "@" in setting else PreparedJob(net(16))
    return simulate(job, Setting.parse(setting), shipped_calibration(), num_steps=STEPS)


@pytest.mark.parametrize("setting", SETTINGS)
def test_all_resources_have_the_period_of_the_iteration(setting: str) -> None:
    """Bursts per step x (burst + idle) is the iteration time of the answer, for each resource."""
    simulation = simulated(setting)
    assert simulation.step is not None
    values = simulation.step_targets.values
    counts = [max(usage.num_bursts, 1) for usage in simulation.step.usage().values()]
    assert counts * (values[:, 1] + values[:, 2]) == pytest.approx(simulation.iteration_time_s)
    assert sum(simulation.step.phases_s().values()) == pytest.approx(simulation.iteration_time_s)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_share_of_a_device_exceeds_100_percent(setting: str) -> None:
    step = simulated(setting).step
    assert step is not None
    usage = step.usage()
    for name in ("device_util", "device_mem_util"):
        assert usage[name].num_bursts
        assert all(0 < one.amount <= 100 for one in usage[name].bursts)
    busy, memory = step.counted_pct()
    assert usage["device_util"].mean <= busy <= 100
    assert 0 < memory <= usage["device_util"].mean


@pytest.mark.parametrize("setting", ["8xH100", "V100-R8/ho-NVLink", "V100-P1w2"])
def test_bytes_of_a_step_are_those_of_its_exchange(setting: str) -> None:
    """All-reduce: 2 (n - 1) / n of the gradients; servers: all of them, and all parameters."""
    simulation, job = simulated(setting), PreparedJob(net(16))
    assert simulation.step is not None
    device = shipped_calibration().device(simulation.topology.workers[0])
    count = simulation.setting.num_workers
    if simulation.topology.server_machine:
        plan = job.plan(device, len(simulation.topology.server_machine), "round_robin")
        wanted = bytes_of(messages_of(plan)).sum()
    else:
        plan = job.exchange_plan(device, BUCKETS)
        wanted = 2 * (count - 1) / count * bytes_of(messages_of(plan)).sum()
    usage = simulation.step.usage()["net_tx"]
    sent = usage.burst_amount * 1e6 * usage.burst_s * usage.num_bursts
    assert sent == pytest.approx(wanted, rel=1e-6)


def test_a_step_on_processors_keeps_labels_of_traces() -> None:
    job = PreparedJob(net(16))
    simulation = simulate(
        job,
        Setting.parse("CPU-P1w2"),
        shipped_calibration(Setting.parse("CPU-P1w2")),
        num_steps=STEPS,
    )
    assert simulation.step is None
    assert simulation.step_targets is simulation.targets


def test_phases_of_a_step_follow_each_other() -> None:
    """A transformer: all of the forward pass, then the backward pass, then the update."""
    job = gpt2()
    topology = topology_of(Setting.parse("1xH100"))
    records = simulate_steps(job, topology, shipped_calibration(), num_steps=STEPS)
    step = step_of(topology, records)
    phases = [span.phase for span in step.device]
    assert [name for i, name in enumerate(phases) if i == 0 or phases[i - 1] != name] == [
        "forward",
        "backward",
        "update",
    ]
    device = shipped_calibration().device(topology.workers[0])
    times = job.times(device)
    is_forward = job.graph.phases == Phase.FORWARD
    forward_s = sum(span.length_s for span in step.device if span.phase == "forward")
    assert forward_s == pytest.approx(times.duration_s[is_forward].sum(), rel=0.05)


def test_a_copy_through_a_host_is_no_kernel() -> None:
    """Counters show kernels of an all-reduce as use; of parameter servers there are none."""
    ring, servers = simulated("V100-R8/ho-NVLink").step, simulated("V100-P1w2").step
    assert ring is not None
    assert servers is not None
    assert ring.phases_s()["exchange"] > 0
    assert ring.counted_pct()[0] > ring.usage()["device_util"].mean
    assert servers.counted_pct()[0] == pytest.approx(servers.usage()["device_util"].mean)
    alike = replace(ring, kernels_exchange=False)
    assert alike.counted_pct()[0] == pytest.approx(alike.usage()["device_util"].mean)


def test_the_step_nearest_to_the_mean_stands_for_all() -> None:
    """Steps of 1, 2 and 3 s: the second, whose segment is half at work."""
    part = PhasePart("forward", 1.0, 0.5, 0.25)
    ends = np.cumsum([1.0, 1.0, 2.0, 3.0]).tolist()
    record = WorkerRecord(
        computing=[Computing(end - 0.5, end, 0.5, 0.25, (part,)) for end in ends],
        step_ends_s=ends,
        tx=[(0.0, 0.0), (2.5, 1e6), (3.0, 0.0)],
        rx=[(0.0, 0.0)],
    )
    step = profile_of(record, kernels_exchange=False)
    assert step.step_s == pytest.approx(2.0)
    (span,) = step.device
    assert (span.phase, span.start_s, span.end_s) == ("forward", 1.5, 2.0)
    (sent,) = step.tx
    assert (sent.start_s, sent.end_s, sent.bytes_per_s) == (0.5, 1.0, 1e6)


def test_waits_between_the_phases_of_a_segment_are_no_spans() -> None:
    """Nor is what takes no time."""
    parts = (
        PhasePart("forward", 1.0, 0.5, 0.25),
        PhasePart("exchange", 1.0, 0.0, 0.0, exchange_s=1.0),
        PhasePart("backward", 1e-15, 5e-16, 0.0),
        PhasePart("update", 2.0, 2.0, 0.5),
    )
    record = WorkerRecord(computing=[Computing(1.0, 5.0, 0.5, 0.25, parts)], step_ends_s=[1.0, 5.0])
    step = profile_of(record, kernels_exchange=False)
    assert [span.phase for span in step.device] == ["forward", "update"]
    ends = [(span.start_s, span.end_s) for span in step.device]
    assert ends == [pytest.approx((0.0, 1.0)), pytest.approx((2.0, 4.0))]


def test_steps_without_time_are_refused() -> None:
    with pytest.raises(SimulationError, match="no step to show"):
        profile_of(WorkerRecord(step_ends_s=[1.0]), kernels_exchange=False)


def test_kernels_that_run_longer_than_their_part_are_refused() -> None:
    """With the shares as they were found."""
    part = PhasePart("forward", 1.0, 1.5, 0.25)
    record = WorkerRecord(
        computing=[Computing(1.0, 2.0, 1.0, 0.25, (part,))], step_ends_s=[1.0, 2.0]
    )
    with pytest.raises(SimulationError, match="simulated forward of 150 % kernels and 25 % memory"):
        profile_of(record, kernels_exchange=False)
