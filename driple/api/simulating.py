"""One simulated answer: step time with its interval, and the error that goes with it.

Job, Setting -> Simulated: Simulation, StatedError, Estimate
Answer       -> StepProfile: one step in time, as long as the answer says
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.api.predict_json import estimate_of

if TYPE_CHECKING:
    from driple.answers.methods import Place
    from driple.answers.slow_hosts import SlowHost
    from driple.answers.stated_error import StatedError
    from driple.api.predicting import Answer
    from driple.cluster.setting import Setting
    from driple.estimate import Estimate
    from driple.jobs.load import Job
    from driple.simulate.prepared_job import PreparedJob
    from driple.simulate.run import Simulation
    from driple.step.profile import StepProfile

__all__ = ["Simulated", "simulated", "step_of_answer"]

_STEPS_TO_SHOW = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """The simulator's answer for one job on one setting."""

    made: Simulation
    stated: StatedError
    iteration_time_s: Estimate
    slow_host: SlowHost | None = None


def simulated(
    job: Job,
    prepared: PreparedJob,
    setting: Setting,
    place: Place,
    *,
    num_steps: int,
    seed: int = 0,
    placement: str = "round_robin",
    host_is_known: bool = False,
) -> Simulated:
    """Simulate a job, with the simulator's error on such jobs.

    The interval holds the step on a slower host too, where that differs and the host is not known.

    Args:
        job: training, or a forward pass.
        prepared: the same, ready to be simulated.
        setting: cluster and scheme.
        place: its machines and their calibration.
        num_steps: steps to simulate.
        seed: random seed of the jitter between steps.
        placement: how variables are spread over servers.
        host_is_known: whether the calibration's host is the user's.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    from driple.answers.compare import MethodTime
    from driple.answers.slow_hosts import interval_with, slow_host
    from driple.answers.stated_error import StatedError, stated_error
    from driple.simulate.run import simulate

    made = simulate(
        prepared,
        setting,
        place.calibration,
        num_steps=num_steps,
        seed=seed,
        placement=placement,  # type: ignore[arg-type]  # checked by the caller
        topology=place.topology,
    )
    stated = (
        StatedError(runs=job.unknown_words)
        if job.has_unknown
        else stated_error(setting, job.graph, cost=job.cost, topology=place.topology)
    )
    slow = None
    if not host_is_known:
        slow = slow_host(prepared, place, step_s=made.iteration_time_s)
    slow_s = None if slow is None else slow.step_s
    time = MethodTime(
        method="simulator",
        iteration_time_s=made.iteration_time_s,
        p90=stated.p90,
        calibrated_s=interval_with(stated.interval_of(made.iteration_time_s), slow_s),
    )
    return Simulated(made=made, stated=stated, iteration_time_s=estimate_of(time), slow_host=slow)


def step_of_answer(answer: Answer) -> StepProfile | None:
    """One step in time on a GPU setting, as long as the answer's iteration time.

    The simulator gives the phases and the bursts; an inspector's answer has no phases of its own.

    Returns:
        The step; None on processors.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    made, step_s = answer.simulation, answer.iteration_time_s.value
    if made is not None and made.step is not None:
        return made.step.corrected(step_s)
    if answer.setting.worker.is_cpu:
        return None
    from driple.answers.methods import place_of
    from driple.simulate.prepared_job import PreparedJob
    from driple.simulate.run import simulate_steps, step_of

    place = place_of(answer.setting)
    records = simulate_steps(
        PreparedJob.of_job(answer.job),
        place.topology,
        place.calibration,
        num_steps=_STEPS_TO_SHOW,
    )
    return step_of(place.topology, records).corrected(step_s)
