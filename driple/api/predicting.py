"""The question `predict`: how a job will use a setting.

    JOB, settings, method -> load_job -> inspector, simulator or closed forms -> PredictResult

With `auto`, the inspector answers where a checkpoint of the setting exists, else the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from driple.answers.choosing import (
    AnswerPlan,
    doubt_of,
    plan_instead,
    plan_of,
    plan_of_forward,
    plan_with_checkpoint,
    usual_answer,
)
from driple.answers.options import MethodOptions
from driple.api.arguments import (
    PathLike,
    catalog_of,
    jobs_of,
    machine_of,
    measured_over,
    own_setting,
    path_of,
    paths_of,
    scheme_remarks,
    settings_of,
)
from driple.api.device_remarks import device_remarks
from driple.api.memory import JobMemory, memory_beside
from driple.api.memory_remedies import with_remedies
from driple.api.predict_json import answer_dict, answer_row
from driple.api.results import Cell, Result
from driple.checks import check_choice
from driple.cluster.setting import Setting
from driple.codec import Json, to_dict
from driple.errors import ConfigError, DripleError, PredictionError
from driple.jobs.load import Job, JobOptions, JobReads, JobSource
from driple.jobs.own_model import kept_processes
from driple.remarks import Remark
from driple.simulate.measured_link import with_link_bandwidth
from driple.simulate.own_machine import machine_remarks

if TYPE_CHECKING:
    from driple.answers.ask import AllAnswers
    from driple.answers.error_statement import StatedError
    from driple.answers.method_answer import MethodAnswer
    from driple.answers.ready_job import ReadyJob
    from driple.answers.slow_hosts import SlowHost
    from driple.answers.step_parts import StepParts
    from driple.api.json_types.predict import PredictJson
    from driple.api.measured_beside import MeasuredRecord
    from driple.catalog.machine_file import MachineFile
    from driple.estimate import Estimate
    from driple.graph.placement import Strategy
    from driple.inspector.checkpoint import Checkpoint
    from driple.inspector.host import HostTuning
    from driple.inspector.predict import Prediction
    from driple.measure.record.use import RunUse
    from driple.simulate.place import Place
    from driple.simulate.run import Simulation
    from driple.step.profile import StepProfile
    from driple.trace.targets import Targets

__all__ = ["METHODS", "Answer", "AnswerMethod", "PredictResult", "predict"]

AnswerMethod = Literal["auto", "inspector", "simulator", "analytic", "all"]
METHODS: tuple[str, ...] = get_args(AnswerMethod)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Answer:
    """How one job uses one setting.

    Attributes:
        job: the training job.
        setting: the cluster.
        method: what answered: `inspector`, `simulator`, `analytic` or `all`.
        reason: why this method was chosen; None if the user chose it.
        best: the answer that counts: with several methods, that of the most trusted one; None
            where a field of the training config that changes the time was not read.
        answers: of all methods that were asked.
        compared: all methods side by side, with `all`.
        assumptions: what was assumed where the job and the setting do not fit.
        parts: where the time of a step goes; None on processors and with servers.
        flops_pct: model FLOPs utilisation, percent; None where it is not known.
        bottleneck: what holds a setting with servers back, a key of
            `driple.analytic.advice.BOTTLENECKS`; empty elsewhere.
        memory: what a device needs; None on processors.
        host: what the user measured of this machine; None if nothing.
        measured: the record of the same job beside this answer; None without one.
    """

    job: Job
    setting: Setting
    method: str
    reason: Remark | None = None
    best: MethodAnswer | None = None
    answers: tuple[MethodAnswer, ...] = ()
    compared: AllAnswers | None = None
    assumptions: tuple[Remark, ...] = ()
    parts: StepParts | None = None
    flops_pct: float | None = None
    bottleneck: str = ""
    memory: JobMemory | None = None
    host: HostTuning | None = None
    measured: MeasuredRecord | None = None

    def __repr__(self) -> str:
        step_s = f"{self.best.step_time.value:.3g} s" if self.best else "step time undecided"
        return f"<Answer {self.job.source} on {self.setting.name}, {self.method}: {step_s}>"

    @property
    def iteration_time_s(self) -> Estimate:
        """Time of one training iteration, with its interval.

        Raises:
            ConfigError: a field of the training config changes it and was not read.
        """
        if self.best is None:
            self.job.require_decided("time", "the step time")
            raise ConfigError("the step time is not known; ask a method")
        return self.best.step_time

    @property
    def prediction(self) -> Prediction | None:
        """The inspector's answer with its twelve targets, if it was asked."""
        return next((one.prediction for one in self.answers if one.prediction), None)

    @property
    def simulation(self) -> Simulation | None:
        """The simulator's answer, if it was asked."""
        return next((one.simulation for one in self.answers if one.simulation), None)

    @property
    def forms(self) -> tuple[MethodAnswer, ...]:
        """The closed forms' answers, if they were asked."""
        return tuple(one for one in self.answers if one.form is not None)

    @property
    def stated(self) -> StatedError | None:
        """Error of the simulator on such jobs; None if it does not matter for the answer."""
        return next((one.stated for one in self.answers if one.stated), None)

    @property
    def slow_host(self) -> SlowHost | None:
        """The simulator's step on a slower host; None where it makes no difference."""
        return next((one.slow_host for one in self.answers if one.slow_host), None)

    @property
    def targets(self) -> Targets | None:
        """The twelve targets; the simulator's where several methods were asked."""
        if self.simulation is not None:
            return self.simulation.step_targets
        return None if self.prediction is None else self.prediction.targets

    def to_dict(self) -> dict[str, Json]:
        """This answer in the JSON of `driple predict`."""
        return to_dict(answer_dict(self))

    def step(self) -> StepProfile | None:
        """One step in time on a GPU setting, as long as the answer's iteration time.

        The simulator gives the phases and the bursts; an inspector's answer has none of its own.

        Returns:
            The step; None on processors.

        Raises:
            GraphError: a graph that cannot be simulated.
        """
        simulation = self.simulation
        step = None if simulation is None else simulation.step
        if step is None and not self.setting.worker.is_cpu:
            from driple.simulate.place import place_of
            from driple.simulate.prepared_job import PreparedJob
            from driple.simulate.run import simulate_steps, step_of

            place, prepared = place_of(self.setting), PreparedJob.of_job(self.job)
            records = simulate_steps(prepared, place.topology, place.calibration)
            step = step_of(place.topology, records)
        return None if step is None else step.corrected(self.iteration_time_s.value)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PredictResult(Result):
    """The answers, setting by setting, for each job.

    Attributes:
        answers: in the order of jobs, then of settings.
    """

    answers: tuple[Answer, ...]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple predict --json` prints."""
        answers: PredictJson = {
            "question": "predict",
            "answers": [answer_dict(answer) for answer in self.answers],
        }
        return to_dict(answers)

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
    link_bandwidth: str | None = None,
    measured: PathLike | Sequence[PathLike] = (),
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
) -> PredictResult:
    """Predict how training jobs will use clusters, before anyone runs them.

    Args:
        jobs: JOB as on the command line, a graph or a `Job`; or several of these.
        settings: names of cluster settings; if None, each job's own (`Job.usual_setting`).
        method: `auto`, `inspector`, `simulator`, `analytic` (closed forms) or `all`.
        options: batch size, shapes of inputs and the like.
        preset: which inspector of the setting: `default` or `paper`.
        checkpoint: an inspector in place of settings and preset.
        num_steps: steps to simulate; 100 if None.
        seed: random seed of the simulated jitter between steps.
        placement: how variables are spread over servers: `round_robin` or `greedy`.
        datasets: folder of data sets with measured values, for `all`; ./datasets if None.
        host_us_per_op: microseconds of the host to hand one op to a GPU, with `simulator`; that of
            published runs if None.
        host: the host.json of `driple measure --calibrate`: what a few workloads tell of this
            machine, for inspectors with measured labels.
        link_bandwidth: measured bus bandwidth of a large all-reduce over the devices, such as
            `5.08GB/s`, or the path of a table of all_reduce_perf (nccl-tests).
        measured: folders of `driple record`, of the hosts of one run of the job.
        catalogs: own devices and links (TOML) for settings that are names; they take precedence.
        machine: file of `driple measure --machine`, whose values take precedence over `catalogs`;
            its GPUs are the setting if None is given.

    Raises:
        TraceError: no record, or one without steps.
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
        placement=cast("Strategy", placement),  # checked there
        datasets=path_of("--set datasets", datasets),
        host_us_per_op=host_us_per_op,
        host=_host_of(host, preset, has_checkpoint=checkpoint is not None),
    )
    own = machine_of(machine)
    catalog = catalog_of(catalogs, own)
    if own is not None:
        _check_machine(own, host_us_per_op, link_bandwidth, has_checkpoint=checkpoint is not None)
        settings = settings or own_setting(own)
    if checkpoint is not None:
        plans = [plan_with_checkpoint(checkpoint, method, settings)]
    elif settings is None:
        plans = []
    else:
        named = settings_of(settings, catalog, options, own)
        if link_bandwidth is not None:
            named = [with_link_bandwidth(one, link_bandwidth) for one in named]
        plans = [plan_of(one, method, preset) for one in named]
    if link_bandwidth is not None:
        _check_measured_link(plans)
    use = _recorded_use(measured)
    answers = []
    usual = cache(lambda name: [plan_of(settings_of(name, catalog, None, own)[0], method, preset)])
    both = () if own is None else measured_over(own, paths_of("--catalog", catalogs))
    for source in jobs_of(jobs):
        reads = JobReads(source, forward=True)
        read = [reads.job(options, plan.setting) for plan in plans]
        chosen = plans
        if not plans:
            read = [reads.job(options, None)]
            chosen = usual(read[0].usual_setting)
        from driple.answers.ready_job import ReadyJob

        ready = {job: ReadyJob.of(job) for job in dict.fromkeys(read)}
        for plan, job in zip(chosen, read, strict=True):
            answer = _answer(plan, ready[job], asked)
            memory = memory_beside(job, plan.setting)
            memory = with_remedies(memory, job, plan.setting, reads, options)
            remarks = device_remarks(job, plan.setting, answer.method)
            remarks += scheme_remarks(options, plan.setting)
            if own is not None:
                remarks += (*machine_remarks(own, plan.setting), *both)
            assumed = (*answer.assumptions, *remarks)
            answer = replace(answer, job=job, assumptions=assumed, memory=memory)
            if use is not None:
                from driple.api.measured_beside import measured_beside

                answer = replace(answer, measured=measured_beside(answer, use))
            answers.append(answer)
    return PredictResult(answers=tuple(answers))


def _recorded_use(measured: PathLike | Sequence[PathLike]) -> RunUse | None:
    """The use of the recorded run; None without a record."""
    folders = paths_of("--measured", measured)
    if not folders:
        return None
    from driple.api.measured_beside import use_of_folders

    return use_of_folders(folders)


def _check_machine(
    machine: MachineFile,
    host_us_per_op: float | None,
    link_bandwidth: str | None,
    *,
    has_checkpoint: bool,
) -> None:
    """Refuse what states the same as a machine file, or does not know of it."""
    twice = {"--set host_us_per_op": host_us_per_op if machine.host else None,
             "--link-bandwidth": link_bandwidth if machine.collectives else None}  # fmt: skip
    for flag, value in twice.items():
        if value is not None:
            raise ConfigError(f"{flag} and --machine {machine.file} both state that; give one")
    if has_checkpoint:
        raise ConfigError(
            f"--machine {machine.file} is for the simulator, and --checkpoint is an inspector; "
            "leave out one of them"
        )


def _check_measured_link(plans: Sequence[AnswerPlan]) -> None:
    """Refuse a measured network where no setting has it, or a method that does not know of it."""
    if not plans or any(plan.method != "simulator" for plan in plans):
        raise ConfigError(
            "--link-bandwidth is for the simulator, on a setting of several GPUs; give --setting "
            "2x8xA100/NVLink+100G and the like, and leave out --checkpoint and other methods"
        )


def _host_of(file: PathLike | None, preset: str, *, has_checkpoint: bool) -> HostTuning | None:
    """What `driple measure --calibrate` wrote of this machine; None without a file.

    Raises:
        ConfigError: it cannot be read, or another inspector answers.
    """
    path = path_of("--set host", file)
    if path is None:
        return None
    if preset != "default" or has_checkpoint:
        raise ConfigError(
            "--set host was measured for the shipped inspector of preset default; leave out "
            "--checkpoint and --set preset"
        )
    from driple.inspector.host import read_host

    return read_host(path)


def _answer(plan: AnswerPlan, ready: ReadyJob, asked: MethodOptions) -> Answer:
    """By the method of the plan, or by the simulator where an inspector would guess."""
    if not ready.job.trains:
        plan = plan_of_forward(plan)
    asked.check_method(plan.method)
    if ready.job.open_fields("time"):
        return Answer(job=ready.job, setting=plan.setting, method=plan.method, reason=plan.reason)
    if plan.method == "inspector":
        from driple.answers.by_inspector import ask_inspector

        try:
            method_answer = ask_inspector(ready, plan.setting, asked, plan.checkpoint)
        except PredictionError as error:
            if not plan.may_fall_back:
                raise
            plan = plan_instead(plan, Remark.of_text(str(error)))
        else:
            doubt = doubt_of(method_answer) if plan.may_fall_back else None
            if doubt is None:
                return _of(plan, ready, method_answer, host=asked.host)
            plan = plan_instead(plan, doubt)
    from driple.answers.ask import ask, ask_all
    from driple.answers.by_closed_forms import FORMS

    place = cast("Place", plan.place)
    if plan.method == "simulator":
        return _of(plan, ready, ask(ready, place, "simulator", asked))
    if plan.method == "analytic":
        return _of(plan, ready, *(ask(ready, place, form, asked) for form in FORMS))
    compared = ask_all(ready, place, asked)
    compared = replace(compared, usual=usual_answer(compared.answers, plan.usual))
    answer = _of(plan, ready, *compared.answers)
    return replace(answer, best=compared.trusted, compared=compared)


def _of(
    plan: AnswerPlan, ready: ReadyJob, *answers: MethodAnswer, host: HostTuning | None = None
) -> Answer:
    """What is known of one job on one setting; the first of these answers counts."""
    from driple.answers.flops import flops_utilisation_pct
    from driple.answers.step_parts import parts_of

    parts, flops_pct = None, None
    simulated = next((one for one in answers if one.simulation), None)
    if plan.place is not None and simulated is not None:
        profile = None if simulated.simulation is None else simulated.simulation.step
        parts = parts_of(ready, plan.place, simulated.step_s, profile=profile)
        flops_pct = flops_utilisation_pct(ready.prepared, plan.place, answers[0].step_s)
    said = dict.fromkeys(assumed for one in answers for assumed in one.assumptions)
    return Answer(
        job=ready.job,
        setting=plan.setting,
        method=plan.method,
        reason=plan.reason,
        best=answers[0],
        answers=answers,
        assumptions=tuple(said),
        parts=parts,
        flops_pct=flops_pct,
        bottleneck=_bottleneck(plan.setting, ready, answers),
        host=host,
    )


def _bottleneck(setting: Setting, ready: ReadyJob, answers: Sequence[MethodAnswer]) -> str:
    """By Zhang's closed form, whoever answered; empty without servers, and if nothing is sent."""
    if setting.num_servers == 0:
        return ""
    from driple.analytic.closed_forms import zhang_pipeline
    from driple.simulate.place import place_of

    known = next((one.form for one in answers if one.method == "zhang"), None)
    if known is None:
        try:
            place = place_of(setting)
            known = zhang_pipeline(ready.prepared, place.topology, place.calibration)
        except DripleError:  # nothing is sent, sizes are unknown, or a device is not described
            return ""
    return known.bottleneck
