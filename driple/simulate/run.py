"""Simulate a graph on a setting: training steps, DriplePerf's traces of them, targets.

    OpGraph, Setting -> Topology, op times, step plans -> simulate_cluster -> traces -> Targets

Entry point: `simulate`. `driple validate` calls its parts `simulate_steps` and
`iteration_time_s` on published runs, so a user gets the number that was validated. The same code
labels these traces as labels measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driple.catalog import Device, Link, shipped_hardware
from driple.checks import check_whole
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, copies_s_per_byte, topology_of
from driple.codec import Json, to_json
from driple.errors import CatalogError, GraphError
from driple.garbage import no_search_for_garbage
from driple.graph.opgraph import OpGraph
from driple.graph.placement import Strategy
from driple.remarks import Remark
from driple.schemes.links import ReachedLink
from driple.schemes.records import WorkerRecord
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import SchemeStep, ServerRates
from driple.schemes.timeline import StepUpdate
from driple.simulate.calibration import CalibratedDevice, Calibration
from driple.simulate.counters import lengthened, traces_of_worker
from driple.simulate.offload import offload_assumptions, with_offload
from driple.simulate.prepared_job import PreparedJob, assumptions_on
from driple.simulate.split_plans import split_assumptions, with_split_plans
from driple.simulate.step_profile import profile_of
from driple.step.exchange import ExchangeRule
from driple.step.plan import StepPlan
from driple.step.profile import StepProfile
from driple.trace import Trace, label_trace, targets_of
from driple.trace.targets import UNITS, Targets
from driple.units import counted

__all__ = [
    "NUM_STEPS",
    "Simulation",
    "calibration_assumptions",
    "iteration_time_s",
    "simulate",
    "simulate_steps",
    "simulated_step_s",
    "step_of",
    "targets_of_record",
]

NUM_STEPS = 100
"""Simulated steps of each worker, in every answer: they are made all at once."""
_LEAST_STEPS = 2
# Sampling period of the traces: as many samples in an iteration, within these bounds.
_SAMPLES_PER_STEP, _SHORTEST_S, _LONGEST_S = 20, 0.001, 0.05
_LEAST_WINDOWS = 60  # of a trace: windows of the counter


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Result of a simulation.

    Counters are read when they are first asked for, which takes longer than the steps: an answer
    about GPUs is of one step, and labels of data sets are of counters.

    Attributes:
        setting: the simulated setting.
        iteration_time_s: mean time of a step after the first, seconds.
        records: record of every worker; the first worker with the setting's own device comes first.
        topology: machines, workers and servers.
        assumptions: differences between the setting and the graph's own layout.
        step: one step of the first such worker, as long as `iteration_time_s`; None on processors,
            whose targets are labels of traces.
    """

    setting: Setting
    iteration_time_s: float
    records: tuple[WorkerRecord, ...]
    topology: Topology
    assumptions: tuple[Remark, ...] = ()
    step: StepProfile | None = None

    @cached_property
    def _seen(self) -> tuple[_Seen, ...]:
        """What the counters show of each kind of worker with the setting's own device."""
        window_s = self.setting.worker.known_window_s or 0.0
        return tuple(
            _seen(self.records[worker], window_s) for worker in self.topology.labelled_workers()
        )

    @cached_property
    def targets(self) -> Targets:
        """Mean over the workers with the setting's own device, as for measured runs; those of one
        step where no source states the window of the device's counters.

        Raises:
            TraceError: the steps are too short or too long for counters.
            SimulationError: a device would be in use for more than 100 % of the time.
        """
        if self.step is not None and self.setting.worker.known_window_s is None:
            return self.step.targets()
        weights = list(self.topology.labelled_workers().values())
        return Targets(np.average([one.targets.values for one in self._seen], 0, weights))

    @property
    def patterns(self) -> Mapping[str, str]:
        """Pattern of each resource of the first such worker: BIB, B or I."""
        return self._seen[0].patterns

    @property
    def traces(self) -> Mapping[str, Trace]:
        """Traces of the first such worker's four resources, from the end of the first step."""
        return self._seen[0].traces

    @property
    def step_targets(self) -> Targets:
        """The twelve targets of one step on a GPU setting; labels of traces on processors."""
        return self.targets if self.step is None else self.step.targets()

    def to_json_dict(self) -> dict[str, Json]:
        """The JSON that data sets and studies store: a prediction without a checkpoint."""
        return {
            "setting": self.setting.name,
            "targets": self.targets.to_dict(),
            "units": dict(UNITS),
            "iteration_time_s": self.iteration_time_s,
            "provenance": "simulated",
            "assumptions": [to_json(assumed) for assumed in self.assumptions],
            "workers": [
                {"device": device, "iteration_time_s": record.iteration_time_s}
                for device, record in zip(self.topology.devices, self.records, strict=True)
            ],
        }


@no_search_for_garbage()
def simulate(
    job: PreparedJob | OpGraph,
    setting: Setting,
    calibration: Calibration,
    *,
    num_steps: int = NUM_STEPS,
    seed: int = 0,
    placement: Strategy = "round_robin",
    topology: Topology | None = None,
) -> Simulation:
    """Simulate training steps of a graph on a setting.

    Args:
        job: the training job, or its graph. Prepare the job once if it is simulated often.
        setting: cluster and scheme.
        calibration: efficiency of devices and links.
        num_steps: see `simulate_steps`.
        seed: random seed of step-time jitter.
        placement: how variables are spread over servers.
        topology: topology of the setting; built from it by default.

    Raises:
        ConfigError: fewer than two steps.
        GraphError: the graph lacks the input shapes of its ops.
        SettingError: an unknown device, or an undescribed set of workers.
        CatalogError: the catalogue lacks a field of the device.
    """
    check_whole("num_steps", num_steps, _LEAST_STEPS)
    job = PreparedJob(job) if isinstance(job, OpGraph) else job
    topology = topology_of(setting) if topology is None else topology
    records = simulate_steps(
        job, topology, calibration, num_steps=num_steps, seed=seed, placement=placement
    )
    simulation = Simulation(
        setting=setting,
        iteration_time_s=iteration_time_s(topology, records),
        records=tuple(records),
        topology=topology,
        assumptions=(
            *assumptions_on(job.graph, setting, synchronous=job.program.synchronous),
            *split_assumptions(job, topology),
            *offload_assumptions(job),
            *calibration_assumptions(topology, calibration),
        ),
        step=None if setting.worker.is_cpu else step_of(topology, records),
    )
    if simulation.step is None:
        _ = simulation.targets  # refuses what counters cannot show
    return simulation


def simulated_step_s(
    job: PreparedJob,
    setting: Setting,
    calibration: Calibration,
    *,
    num_steps: int = NUM_STEPS,
    topology: Topology | None = None,
) -> float:
    """Iteration time of `simulate`, seconds, without its counters, which take most of its time.

    Args:
        job: the training job.
        setting: cluster and scheme.
        calibration: efficiency of devices and links.
        num_steps: see `simulate_steps`.
        topology: machines of the setting; built from it by default.

    Raises:
        ConfigError: fewer than two steps.
        GraphError: the graph lacks the input shapes of its ops, or its steps take no time.
        SettingError: an unknown device, or an undescribed set of workers.
        CatalogError: the catalogue lacks a field of the device.
    """
    check_whole("num_steps", num_steps, _LEAST_STEPS)
    topology = topology_of(setting) if topology is None else topology
    records = simulate_steps(
        job, topology, calibration, num_steps=num_steps, seed=0, placement="round_robin"
    )
    step_s = iteration_time_s(topology, records)
    if step_s <= 0:
        raise GraphError(
            "the simulated steps take no time; give the graph of a training step with the shapes "
            "of its tensors"
        )
    return step_s


def calibration_assumptions(topology: Topology, calibration: Calibration) -> tuple[Remark, ...]:
    """Substitutes for devices and links of a cluster that were not measured."""
    crossed = (
        topology.within if topology.devices_per_machine > 1 else None,
        topology.between,
    )
    return calibration.assumptions(topology.kinds, [link for link in crossed if link is not None])


@no_search_for_garbage()
def simulate_steps(
    job: PreparedJob,
    topology: Topology,
    calibration: Calibration,
    *,
    num_steps: int = NUM_STEPS,
    seed: int = 0,
    placement: Strategy = "round_robin",
) -> list[WorkerRecord]:
    """Simulate every worker step by step; all simulated times come from here.

    Asynchronous workers start one after another, spread over a step. After a warm-up they run 200
    steps together, and 20 to 100 each, whatever `num_steps` is, so their mean does not depend on
    it.

    Args:
        job: the training job.
        topology: machines, workers and servers.
        calibration: efficiency of devices and links.
        num_steps: steps of each worker in synchronous training. The first is left out of the
            results.
        seed: random seed of step-time jitter.
        placement: how variables are spread over servers.

    Returns:
        One record per worker.

    Raises:
        GraphError: a forward pass on several devices, which exchange nothing.
    """
    scheme = scheme_named(topology.scheme)
    if not job.graph.is_training and (len(topology.workers) > 1 or scheme.uses_servers):
        servers = " and parameter servers" if scheme.uses_servers else ""
        raise GraphError(
            "a forward pass runs on one device, and the setting has "
            f"{counted(len(topology.workers), 'worker')}{servers}; give a setting of one device, "
            "such as 1xA100"
        )
    known = {one: calibration.device(one) for one in topology.kinds}
    is_split = topology.degrees.is_split
    update_s = {
        one: 0.0 if scheme.uses_servers else job.update_seconds(device)
        for one, device in known.items()
    }
    step = SchemeStep(
        topology=topology,
        plans=()
        if is_split
        else _plans(job, topology, known, scheme.rule(job.exchange), placement),
        within=_reached(topology.within, calibration),
        between=_reached(topology.between, calibration),
        host=None if topology.between is None else _host_link(topology, calibration),
        update=StepUpdate(
            update_s=topology.of_each(update_s),
            jitter=calibration.jitter,
            overlapped=job.program.overlapped,
        ),
        share=job.program.ring_share,
        program=job.exchange,
        servers=ServerRates(
            bridge_bytes_per_s=calibration.bridge_bytes_per_s,
            role_copy_bytes_per_s=calibration.role_copy_bytes_per_s,
            apply_s_per_byte=calibration.apply_s_per_byte,
            copy_s_per_byte=copies_s_per_byte(topology) if scheme.uses_servers else (),
        ),
        synchronous=job.is_synchronous,
        are_alike=len(known) == 1,
    )
    if is_split:
        step = with_split_plans(step, job, known[topology.workers[0]])
    if job.program.offload:
        host = _host_link(topology, calibration)
        step = with_offload(step, job, known[topology.workers[0]], host)
    return scheme.simulate(step, num_steps, seed)


def _plans(
    job: PreparedJob,
    topology: Topology,
    known: Mapping[Device, CalibratedDevice],
    rule: ExchangeRule | None,
    placement: Strategy,
) -> tuple[StepPlan, ...]:
    """Each worker's step; with servers where there is no rule for an exchange."""
    plan_of = {
        one: job.plan(device, len(topology.server_machine), placement)
        if rule is None
        else job.exchange_plan(device, rule)
        for one, device in known.items()
    }
    return topology.of_each(plan_of)


def _host_link(topology: Topology, calibration: Calibration) -> ReachedLink | None:
    """Link of the slowest worker's device to its host; None for processors, and if it is unknown.

    A device without these facts simulates as well: then the network alone counts.
    """
    links = []
    for device in topology.kinds:
        if not device.is_cpu:
            try:
                links.append(shipped_hardware().host_link(device))
            except CatalogError:
                continue
    slowest = min(links, key=lambda link: link.bytes_per_s, default=None)
    return _reached(slowest, calibration)


def _reached(link: Link | None, calibration: Calibration) -> ReachedLink | None:
    return None if link is None else ReachedLink(link, calibration.link(link))


def iteration_time_s(topology: Topology, records: Sequence[WorkerRecord]) -> float:
    """Mean time of a step of the workers with the setting's own device, in seconds."""
    kinds = topology.labelled_workers()
    times = [records[worker].iteration_time_s for worker in kinds]
    return float(np.average(times, weights=list(kinds.values())))


def step_of(topology: Topology, records: Sequence[WorkerRecord]) -> StepProfile:
    """One step of the first worker with the setting's own device, as long as `iteration_time_s`.

    Args:
        topology: machines, workers and servers.
        records: of every worker, as `simulate_steps` returns them.

    Raises:
        SimulationError: the steps take no time.
    """
    first = next(iter(topology.labelled_workers()))
    by_kernels = not scheme_named(topology.scheme).uses_servers
    step = profile_of(records[first], kernels_exchange=by_kernels)
    return step.corrected(iteration_time_s(topology, records))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Counter traces of one worker, and the targets labelled from them."""

    targets: Targets
    patterns: Mapping[str, str]
    iteration_time_s: float
    traces: Mapping[str, Trace]


def targets_of_record(record: WorkerRecord, window_s: float) -> Targets:
    """The twelve targets of one worker's record, labelled from its virtual counters.

    Args:
        record: record of the worker.
        window_s: averaging window of its device's counters, seconds.

    Raises:
        TraceError: the steps are too short or too long for counters.
        SimulationError: a device would be in use for more than 100 % of the time.
    """
    return _seen(record, window_s).targets


def _seen(record: WorkerRecord, window_s: float) -> _Seen:
    long = lengthened(record, _LEAST_WINDOWS * window_s)
    start_s, end_s = long.step_ends_s[0], long.step_ends_s[-1]
    period_s = float(np.clip(long.iteration_time_s / _SAMPLES_PER_STEP, _SHORTEST_S, _LONGEST_S))
    traces = traces_of_worker(
        long, period_s=period_s, start_s=start_s, end_s=end_s, window_s=window_s
    )
    labels = {name: label_trace(trace, long.iteration_time_s) for name, trace in traces.items()}
    patterns = {name: label.pattern for name, label in labels.items()}
    return _Seen(targets_of(labels), patterns, long.iteration_time_s, traces)
