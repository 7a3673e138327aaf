"""The question `predict`: how a job will use a setting.

    JOB, settings, method -> load_job -> inspector, simulator or closed forms -> PredictResult

With `auto`, the inspector answers where a checkpoint of the setting exists, else the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from driple.api.arguments import PathLike, catalog_of, jobs_of, path_of, settings_of
from driple.api.device_remarks import device_remarks
from driple.api.memory import JobMemory, memory_beside
from driple.api.memory_remedies import with_remedies
from driple.api.predict_json import answer_dict, answer_row, estimate_of, source_of
from driple.api.predict_options import MethodOptions, host_of
from driple.api.predict_plan import (
    AnswerPlan,
    plan_instead,
    plan_of,
    plan_of_forward,
    plan_with_checkpoint,
)
from driple.api.results import Cell, Result
from driple.checks import check_choice
from driple.cluster.setting import Setting
from driple.codec import Json
from driple.errors import ConfigError, PredictionError
from driple.estimate import Estimate, Interval
from driple.jobs.load import Job, JobOptions, JobSource, load_job, load_jobs
from driple.jobs.own_model import kept_processes

if TYPE_CHECKING:
    from driple.analytic.closed_forms import ClosedForm, MethodError, Work
    from driple.answers.methods import MethodAnswers, Place
    from driple.answers.slow_hosts import SlowHost
    from driple.answers.stated_error import StatedError
    from driple.estimate import Source
    from driple.graph.placement import Strategy
    from driple.inspector.checkpoint import Checkpoint
    from driple.inspector.host import HostTuning
    from driple.inspector.predict import Prediction
    from driple.simulate.prepared_job import PreparedJob
    from driple.simulate.run import Simulation

__all__ = ["METHODS", "Answer", "AnswerMethod", "PredictResult", "predict"]

AnswerMethod = Literal["auto", "inspector", "simulator", "analytic", "all"]
METHODS: tuple[str, ...] = get_args(AnswerMethod)
_STEPS, _STEPS_OF_ALL = 100, 50
_MOST_OFF_PCT = 20.0  # mean error of step times, from which on what an inspector imitates is better


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Answer:
    """How one job uses one setting.

    Attributes:
        job: the training job.
        setting: the cluster.
        method: what answered: `inspector`, `simulator`, `analytic` or `all`.
        reason: why this method was chosen; empty if the user chose it.
        iteration_time_s: of one training iteration; with several methods, by the most trusted one.
        assumptions: what was assumed where the job and the setting do not fit, one sentence each.
        stated: error of the simulator on such jobs; None if it does not matter for the answer.
        prediction: the inspector's answer with its twelve targets, if it was asked.
        simulation: the simulator's answer, if it was asked.
        forms: the closed forms' answers, if they were asked.
        errors: known error of each closed form on such clusters.
        work: what the closed forms count in the job.
        compared: all methods side by side, with `all`.
        memory: what a device needs; None on processors.
        slow_host: the simulator's step on a slower host; None where it makes no difference.
        host: what the user measured of this machine; None if nothing.
    """

    job: Job
    setting: Setting
    method: str
    reason: str = ""
    iteration_time_s: Estimate
    assumptions: tuple[str, ...]
    stated: StatedError | None = None
    prediction: Prediction | None = None
    simulation: Simulation | None = None
    forms: tuple[ClosedForm, ...] = ()
    errors: tuple[MethodError | None, ...] = ()
    work: Work | None = None
    compared: MethodAnswers | None = None
    memory: JobMemory | None = None
    slow_host: SlowHost | None = None
    host: HostTuning | None = None

    def __repr__(self) -> str:
        step_s = f"{self.iteration_time_s.value:.3g} s"
        return f"<Answer {self.job.source} on {self.setting.name}, {self.method}: {step_s}>"

    def to_dict(self) -> dict[str, Json]:
        """This answer in the JSON of `driple predict`."""
        return answer_dict(self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PredictResult(Result):
    """The answers, setting by setting, for each job.

    Attributes:
        answers: in the order of jobs, then of settings.
    """

    answers: tuple[Answer, ...]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple predict --json` prints."""
        return {"question": "predict", "answers": [one.to_dict() for one in self.answers]}

    def rows(self) -> list[dict[str, Cell]]:
        """One row per answer: iteration time, its interval, and the twelve targets."""
        return [answer_row(one) for one in self.answers]


@kept_processes()
def predict(
    jobs: JobSource | Sequence[JobSource],
    settings: str | Setting | Sequence[str | Setting] | None = None,
    *,
    method: AnswerMethod = "auto",
    options: JobOptions | None = None,
    preset: str = "default",
    checkpoint: PathLike | Checkpoint | None = None,
    num_steps: int | None = None,
    seed: int = 0,
    placement: str = "round_robin",
    datasets: PathLike | None = None,
    host_us_per_op: float | None = None,
    host: PathLike | None = None,
    catalogs: PathLike | Sequence[PathLike] = (),
) -> PredictResult:
    """Predict how training jobs will use clusters, before anyone runs them.

    Args:
        jobs: JOB as on the command line, a graph or a `Job`; or several of these.
        settings: names of cluster settings; if None, each job's own (`Job.usual_setting`).
        method: `auto`, `inspector`, `simulator`, `analytic` (closed forms) or `all`.
        options: batch size, shapes of inputs and the like.
        preset: which inspector of the setting: `default` or `paper`.
        checkpoint: an inspector in place of settings and preset.
        num_steps: steps to simulate; 100, and 50 with `all`, if None.
        seed: random seed of the simulated jitter between steps.
        placement: how variables are spread over servers: `round_robin` or `greedy`.
        datasets: folder of data sets with measured values, for `all`; ./datasets if None.
        host_us_per_op: microseconds of the host to hand one op to a GPU, with `simulator`; that of
            published runs if None.
        host: the host.json of `driple measure --calibrate`: what a few workloads tell of this
            machine, for inspectors with measured labels.
        catalogs: own devices and links (TOML) for settings that are names; they take precedence.

    Raises:
        ConfigError: options that contradict each other, an unknown method, a number out of range,
            what is no job, or a host of another setting.
        SettingError: an unknown setting.
        GraphError: a job that cannot be read, or contains no training step; a forward pass on
            several devices.
        CatalogError: the catalogue lacks a fact about a device, such as its memory.
        CheckpointError: with `inspector`, no checkpoint of the setting.
        PredictionError: with `inspector`, impossible numbers for this job.
    """
    check_choice("--method", method, METHODS)
    asked = MethodOptions(
        preset=preset,
        num_steps=num_steps,
        seed=seed,
        placement=placement,
        datasets=path_of("--set datasets", datasets),
        host_us_per_op=host_us_per_op,
        host=host_of(host, preset, has_checkpoint=checkpoint is not None),
    )
    catalog = catalog_of(catalogs)
    if checkpoint is not None:
        plans = [plan_with_checkpoint(checkpoint, method, settings)]
    elif settings is None:
        plans = []
    else:
        plans = [plan_of(one, method, preset) for one in settings_of(settings, catalog)]
    answers = []
    usual = cache(lambda name: [plan_of(Setting.parse(name, catalog=catalog), method, preset)])
    for source in jobs_of(jobs):
        read = load_jobs(source, options, [plan.setting for plan in plans], forward=True)
        chosen = plans
        if not plans:
            read = [load_job(source, options, forward=True)]
            chosen = usual(read[0].usual_setting)
        from driple.simulate.prepared_job import PreparedJob

        prepared = {job: PreparedJob.of_job(job) for job in dict.fromkeys(read)}
        for plan, job in zip(chosen, read, strict=True):
            answer = _answer(plan, job, prepared[job], asked)
            memory = memory_beside(job, plan.setting)
            memory = with_remedies(memory, job, plan.setting, source, options)
            remarks = device_remarks(job, plan.setting, answer.method)
            assumed = (*answer.assumptions, *remarks)
            answers.append(replace(answer, assumptions=assumed, memory=memory))
    return PredictResult(answers=tuple(answers))


def _answer(plan: AnswerPlan, job: Job, prepared: PreparedJob, asked: MethodOptions) -> Answer:
    if not job.trains:
        plan = plan_of_forward(plan)
    asked.check_method(plan.method)
    if plan.method == "inspector":
        try:
            answer = _by_inspector(plan, job, prepared, asked)
        except PredictionError as error:
            if not plan.may_fall_back:
                raise
            plan = plan_instead(plan, str(error))
        else:
            doubt = _doubt_of(answer) if plan.may_fall_back else ""
            if not doubt:
                return answer
            plan = plan_instead(plan, doubt)
    if plan.method == "simulator":
        return _by_simulator(plan, job, prepared, asked)
    if plan.method == "analytic":
        return _by_closed_forms(plan, job, prepared)
    return _by_all(plan, job, prepared, asked)


def _doubt_of(answer: Answer) -> str:
    """Why the simulator should answer in place of an inspector that imitates it; mostly empty.

    On a graph like those that it learned from the inspector gives the counters of such jobs. On
    another the simulator, which made its labels, is right where the inspector guesses.
    """
    made = cast("Prediction", answer.prediction)
    if made.provenance != "simulated":
        return ""
    # Distance is the last of the strange things, and says most.
    doubts = (made.contradiction, *reversed(made.strange), made.outdated)
    first = next((one for one in doubts if one), "")
    if first:
        return f"the inspector of {made.setting} would guess ({first})"
    off_pct = made.metrics.get("test_iteration_time_mape_pct", 0.0)
    if off_pct > _MOST_OFF_PCT:
        return (
            f"the inspector of {made.setting} is {off_pct:.0f} % off (mean) in the step times of "
            "its own test workloads"
        )
    return ""


def _by_inspector(
    plan: AnswerPlan, job: Job, prepared: PreparedJob, asked: MethodOptions
) -> Answer:
    from driple.answers.checked import predict as checked_predict
    from driple.answers.stated_error import StatedError, stated_error
    from driple.cluster.topology import known_topology
    from driple.simulate.prepared_job import assumptions_on

    checkpoint, setting = cast("Checkpoint", plan.checkpoint), plan.setting
    topology = known_topology(setting)
    made = checked_predict(job.graph, checkpoint, job=prepared, topology=topology, host=asked.host)
    if job.has_unknown:  # the share that an interval holds is for graphs without unknown sizes
        made = replace(made, level=None)
    stated = None
    if made.provenance == "simulated":
        stated = (
            StatedError(runs=job.unknown_words)
            if job.has_unknown
            else stated_error(setting, job.graph, cost=job.cost, topology=topology)
        )
    return Answer(
        job=job,
        setting=setting,
        method="inspector",
        reason=plan.reason,
        iteration_time_s=Estimate(
            value=made.iteration_time_s,
            interval=Interval.of(None if made.ends is None else made.ends[-1], made.level),
            method="inspector",
            source=cast("Source", made.provenance),
        ),
        assumptions=(*assumptions_on(job.graph, setting), *_earlier_labels(made, setting)),
        stated=stated,
        prediction=made,
        host=asked.host,
    )


def _earlier_labels(made: Prediction, setting: Setting) -> list[str]:
    """Where an inspector learned from a simulation before today's fit of the simulator.

    An inspector that does not record the fit behind its labels learned from one of its own day or
    before.
    """
    from driple.simulate.calibration import shipped_calibration

    if made.provenance != "simulated":
        return []
    fitted, learned = shipped_calibration(setting).about.get("fitted"), made.trained_on
    labels, at_latest = learned.labels_fitted, ""
    if labels is None:
        labels, at_latest = learned.date, "at latest "
    if not isinstance(fitted, str) or labels is None or labels >= fitted:
        return []
    return [
        f"the inspector learned from simulated labels of {at_latest}{labels}; the simulator was "
        f"fitted again on {fitted} (--method simulator answers by that fit)"
    ]


def _by_simulator(
    plan: AnswerPlan, job: Job, prepared: PreparedJob, asked: MethodOptions
) -> Answer:
    from driple.answers.slow_hosts import host_is_told
    from driple.api.simulating import simulated

    place, host_us = cast("Place", plan.place), asked.host_us_per_op
    assumed: tuple[str, ...] = ()
    if host_us is not None:
        for device in place.topology.workers:
            if host_is_told(device):
                raise ConfigError(
                    f"--set host_us_per_op and tuned_host of {device.origin} both say how fast the "
                    "host is; give one of them"
                )
        known = place.calibration.with_host(host_us / 1e6, prepared.runtime)
        place = replace(place, calibration=known)
        assumed = (f"a host that takes {host_us:g} us for each op",)
    found = simulated(
        job,
        prepared,
        plan.setting,
        place,
        num_steps=asked.num_steps or _STEPS,
        seed=asked.seed,
        placement=asked.placement,
        host_is_known=host_us is not None,
    )
    return Answer(
        job=job,
        setting=plan.setting,
        method="simulator",
        reason=plan.reason,
        iteration_time_s=found.iteration_time_s,
        assumptions=(*found.made.assumptions, *assumed, *_uneven(plan, prepared, asked)),
        stated=found.stated,
        simulation=found.made,
        slow_host=found.slow_host,
    )


def _uneven(plan: AnswerPlan, prepared: PreparedJob, asked: MethodOptions) -> list[str]:
    """What variables taken in turn do to several servers, where another placement spreads them.

    In turn is TensorFlow's default; tf_cnn_benchmarks, which most published runs are of, is greedy.
    """
    from driple.analytic.spread import ServerSpread

    count = plan.setting.num_servers
    if count < 2:
        return []
    return ServerSpread.of(prepared, [count], cast("Strategy", asked.placement)).messages()


def _by_closed_forms(plan: AnswerPlan, job: Job, prepared: PreparedJob) -> Answer:
    from driple.analytic.closed_forms import work_of
    from driple.answers.compare import MethodTime
    from driple.answers.methods import closed_form_error, closed_forms_of
    from driple.answers.stated_error import StatedError, stated_error
    from driple.simulate.prepared_job import closed_form_assumptions

    place = cast("Place", plan.place)
    forms = closed_forms_of(prepared, place)
    stated = (
        StatedError(runs=job.unknown_words)
        if job.has_unknown
        else stated_error(plan.setting, job.graph, cost=job.cost, topology=place.topology)
    )
    errors = [closed_form_error(place, form.method, stated) for form in forms]
    first, error = forms[0], errors[0]
    time = MethodTime(
        method=first.method,
        iteration_time_s=first.iteration_time_s,
        p90=None if error is None else error.p90_pct / 100,
    )
    return Answer(
        job=job,
        setting=plan.setting,
        method="analytic",
        reason=plan.reason,
        iteration_time_s=estimate_of(time),
        assumptions=closed_form_assumptions(job.graph, plan.setting),
        forms=forms,
        errors=tuple(errors),
        work=work_of(prepared),
    )


def _by_all(plan: AnswerPlan, job: Job, prepared: PreparedJob, asked: MethodOptions) -> Answer:
    from driple.answers.methods import ask_all
    from driple.simulate.prepared_job import assumptions_on, closed_form_assumptions

    found = ask_all(
        prepared,
        cast("Place", plan.place),
        preset=asked.preset,
        num_steps=asked.num_steps or _STEPS_OF_ALL,
        seed=asked.seed,
        placement=asked.placement,
        datasets=asked.datasets,
    )
    trusted = found.trusted
    # Closed forms hold for parameter servers and for synchronous training.
    assumptions = closed_form_assumptions if plan.setting.num_servers else assumptions_on
    return Answer(
        job=job,
        setting=plan.setting,
        method="all",
        iteration_time_s=estimate_of(trusted, source_of(trusted.method, found)),
        assumptions=assumptions(job.graph, plan.setting),
        stated=found.stated,
        prediction=found.prediction,
        simulation=found.simulation,
        forms=found.forms,
        compared=found,
        slow_host=found.slow_host,
    )
