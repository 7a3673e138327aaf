"""Laws of the twelve targets: hand-made steps whose targets follow from closed forms.

One worker pulls, computes and pushes, one after another, so each resource has one burst in a step:

    device_util, device_mem_util   100 % x share, seconds of computing, rest of the step
    net_tx, net_rx                 rate of the link, bytes / rate,      rest of the step
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from driple.catalog import device_named, link_named
from driple.cluster.setting import Setting
from driple.graph.placement import Strategy
from driple.schemes.ps import ClusterSpec, WorkerRecord, simulate_cluster
from driple.schemes.ring import RingSpec
from driple.simulate.calibration import CalibratedDevice, LinkEfficiency
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulate, targets_of_record
from driple.step.plan import Message, Segment, StepPlan
from driple.trace.targets import TARGET_NAMES
from tests.schemes.rings import simulate_ring
from tests.simulate.jobs import CALIBRATION, net

MB = 1e6
RATE = 100 * MB
NUM_STEPS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Seconds are multiples of NVML's window (1/6 s), so that no window holds two levels."""

    pull: float = 100 * MB
    push: float = 300 * MB
    compute_s: float = 2.0
    busy: float = 1.0
    memory: float = 0.5

    def plan(self) -> StepPlan:
        """The step in one segment."""
        segment = Segment(
            needs=1,
            duration_s=self.compute_s,
            busy_s=self.busy * self.compute_s,
            memory_s=self.memory * self.compute_s,
            sends=(Message(0, self.push),),
        )
        return StepPlan(pulls=(Message(0, self.pull),), segments=(segment,))

    def targets(self, *, rate: float = RATE, more_s: float = 0.0) -> np.ndarray:
        """The twelve targets in closed form, shape [4, 3]; `more_s`: when nothing is in use."""
        pull_s, push_s = self.pull / rate, self.push / rate
        step_s = pull_s + self.compute_s + push_s + more_s
        return np.array(
            [
                (100 * self.busy, self.compute_s, step_s - self.compute_s),
                (100 * self.memory, self.compute_s, step_s - self.compute_s),
                (rate / MB, push_s, step_s - push_s),
                (rate / MB, pull_s, step_s - pull_s),
            ]
        )


STEPS = [
    Step(),
    Step(pull=300 * MB, push=100 * MB, compute_s=1.0, busy=0.8, memory=0.2),
    Step(pull=50 * MB, push=150 * MB, compute_s=3.0, busy=0.35, memory=0.07),
]


def cluster(**more: object) -> ClusterSpec:
    """One worker and one server, each on a machine of its own."""
    plain = ClusterSpec(
        worker_machine=(0,),
        server_machine=(1,),
        link_bytes_per_s=RATE,
        bridge_bytes_per_s=7 * RATE,
        synchronous=True,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def targets(record: WorkerRecord) -> np.ndarray:
    return targets_of_record(record, device_named("V100").counter_window_s).values


def check(actual: np.ndarray, wanted: np.ndarray, **tolerance: float) -> None:
    """Compare with the names of the targets in the message."""
    by_name = dict(zip(TARGET_NAMES, actual.ravel().tolist(), strict=True))
    assert by_name == pytest.approx(
        dict(zip(TARGET_NAMES, wanted.ravel().tolist(), strict=True)), **tolerance
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("synchronous", [True, False])
def test_targets_are_those_of_the_closed_form(step: Step, synchronous: bool) -> None:
    """All twelve, to rounding: percentages, MB/s and seconds."""
    spec = cluster(synchronous=synchronous)
    (record,) = simulate_cluster(spec, [step.plan()], NUM_STEPS)
    check(targets(record), step.targets(), rel=1e-6)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("factor", [2, 3])
def test_a_slower_clock_stretches_durations_and_lowers_rates_alone(step: Step, factor: int) -> None:
    """Time scale: everything takes `factor` times as long, shares of the device stay."""
    slow = replace(step, compute_s=factor * step.compute_s)
    (plain,) = simulate_cluster(cluster(), [step.plan()], NUM_STEPS)
    (slowed,) = simulate_cluster(cluster(link_bytes_per_s=RATE / factor), [slow.plan()], NUM_STEPS)
    scales = np.array([(1, factor, factor)] * 2 + [(1 / factor, factor, factor)] * 2)
    check(targets(slowed), scales * targets(plain), rel=1e-6)


def test_copies_messages_and_updates_lengthen_the_step_and_no_burst() -> None:
    """0.5 s until a message is used, 1 s of a server and 2 s of copies a step for these sizes."""
    step = Step()
    spec = cluster(
        message_s=0.5, apply_s_per_byte=1 / step.push, copy_s_per_byte=(0.5 / step.pull,)
    )
    (record,) = simulate_cluster(spec, [step.plan()], NUM_STEPS)
    check(targets(record), step.targets(more_s=2 * 0.5 + 1.0 + 0.5 + 1.5), rel=1e-6)


def test_unlike_segments_count_by_their_seconds() -> None:
    """2 s at 100 and 50 %, 1 s at 85 and 44 %: 95 and 48 % on average."""
    parts = [(2.0, 1.0, 0.5, 0.0), (1.0, 0.85, 0.44, 100 * MB)]
    plan = StepPlan(
        pulls=(Message(0, 100 * MB),),
        segments=tuple(
            Segment(
                needs=1,
                duration_s=seconds,
                busy_s=busy * seconds,
                memory_s=memory * seconds,
                sends=(Message(0, size),),
            )
            for seconds, busy, memory, size in parts
        ),
    )
    (record,) = simulate_cluster(cluster(), [plan], NUM_STEPS)
    values = targets(record)
    assert values[:2].tolist() == [pytest.approx([95, 3, 2]), pytest.approx([48, 3, 2])]


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_share_the_link_of_their_server(workers: int) -> None:
    """Each gets its share of the rate: n times as long, at 1 / n of the MB/s."""
    step = Step()
    spec = cluster(worker_machine=tuple(range(workers)), server_machine=(workers,))
    records = simulate_cluster(spec, [step.plan()] * workers, NUM_STEPS)
    for record in records:
        check(targets(record), step.targets(rate=RATE / workers), rel=1e-6)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_a_ring_passes_2_n_minus_1_over_n_of_each_byte(workers: int) -> None:
    """Bytes at the rate that is left when each of the message's tensors takes a moment."""
    step, tensor_s = Step(push=400 * MB, busy=0.9, memory=0.3), 0.5
    passed = 2 * (workers - 1) / workers * step.push
    passing_s = passed / RATE + tensor_s
    spec = RingSpec(bytes_per_s=RATE, tensor_s=tensor_s, update_s=(0.0,) * workers)
    rest_s = step.compute_s
    network = (passed / passing_s / MB, passing_s, rest_s)
    wanted = np.array(
        [(90, rest_s, passing_s), (30, rest_s, passing_s), network, network], dtype=np.float64
    )
    for record in simulate_ring(spec, [step.plan()] * workers, NUM_STEPS):
        check(targets(record), wanted, rel=1e-6)


def test_an_update_on_the_device_is_a_burst_of_kernels_and_memory() -> None:
    """Each step ends with 1 s of updates, which join the computing of the next."""
    step = Step(push=100 * MB, compute_s=1.0, busy=1.0, memory=1.0)
    spec = RingSpec(bytes_per_s=RATE, tensor_s=0.0, update_s=(1.0, 1.0))
    record, _ = simulate_ring(spec, [step.plan()] * 2, NUM_STEPS)
    network = (RATE / MB, 1.0, 2.0)
    check(targets(record), np.array([(100, 2, 1), (100, 2, 1), network, network]), rel=1e-6)


class Planned(PreparedJob):
    """A job whose step is given: no graph decides it."""

    def __init__(self, step: Step) -> None:
        super().__init__(net(8), program=Program(synchronous=True))
        self.step = step

    def plan(self, device: CalibratedDevice, num_servers: int, placement: Strategy) -> StepPlan:
        """The given step."""
        return self.step.plan()


@pytest.mark.parametrize("step", STEPS)
def test_a_simulation_of_a_setting_gives_the_closed_form(step: Step) -> None:
    """From the name of a setting to the targets; copies over PCIe count too."""
    bound = replace(
        CALIBRATION,
        links={"Ethernet": LinkEfficiency(0.8, 0.0, 0.0)},
        jitter=0.0,
        apply_s_per_byte=0.0,
        role_copy_bytes_per_s=float("inf"),
    )
    simulation = simulate(
        Planned(step), Setting.parse("V100-P1w1/ho-1G"), bound, num_steps=NUM_STEPS
    )
    copies_s = (step.pull + step.push) / link_named("PCIe3").bytes_per_s
    wanted = step.targets(rate=0.8 * link_named("1G").bytes_per_s, more_s=copies_s)
    assert simulation.iteration_time_s == pytest.approx(wanted[0, 1:].sum(), rel=1e-6)
    # A window of NVML at each end of a burst, and a sample of 50 ms of the network.
    check(simulation.targets.values, wanted, rel=0.06, abs=0.06)
    assert set(simulation.patterns.values()) == {"BIB"}
