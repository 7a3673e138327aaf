"""Iteration time of one job on one setting by every method, each with its known error.

PreparedJob, Place --ask_all--> MethodAnswers (times, why others are silent, which to trust)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from math import exp, expm1, hypot, inf, log, log1p
from pathlib import Path

from driple.analytic.closed_forms import (
    ClosedForm,
    MethodError,
    shipped_closed_forms,
    work_of,
    zeng_published,
    zeng_repaired,
    zhang_pipeline,
)
from driple.answers.checked import predict as checked_predict
from driple.answers.compare import Disagreement, MethodTime, disagreements, p90_of
from driple.answers.slow_hosts import SlowHost, interval_with, slow_host
from driple.answers.stated_error import StatedError, stated_error
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.dataset.example import graph_hash
from driple.dataset.lookup import Found, find_graph, find_measured_step
from driple.errors import CheckpointError, MissingExtraError, PredictionError
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.predict import Prediction
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import Simulation, simulate
from driple.units import format_range

__all__ = [
    "METHOD_WORDS",
    "MethodAnswers",
    "Place",
    "ask_all",
    "closed_form_error",
    "closed_forms_of",
    "place_of",
]

METHOD_WORDS = {
    "measured": "measured",
    "inspector": "inspector",
    "simulator": "simulator",
    "zhang": "Zhang",
    "zeng-repaired": "Zeng, repaired",
    "zeng": "Zeng, as published",
}
_DATASETS = Path("datasets")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A setting with its machines and what they reach."""

    setting: Setting
    topology: Topology
    calibration: Calibration


def place_of(setting: Setting) -> Place:
    """The machines of a setting; refuses what is unknown before a large graph is read.

    Raises:
        SettingError: an unknown device or link.
        CatalogError: the catalogue lacks a fact about a device.
    """
    place = Place(
        setting=setting, topology=topology_of(setting), calibration=shipped_calibration(setting)
    )
    for device in dict.fromkeys(place.topology.workers):
        place.calibration.device(device)
    return place


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodAnswers:
    """What the methods answer for one setting, and why others are silent.

    Attributes:
        setting: the cluster.
        times: iteration time by each method that has an answer.
        silent: reason of each method without an answer.
        doubts: what the inspector has not seen; empty if nothing.
        measured: the measured workload with this graph; None if there is none.
        stated: error of the simulator on such jobs.
        prediction: the inspector's answer.
        simulation: the simulator's answer.
        forms: the closed forms' answers.
        slow_host: the simulator's step on a slower host; None where it makes no difference.
    """

    setting: Setting
    times: tuple[MethodTime, ...]
    silent: Mapping[str, str]
    doubts: str
    measured: Found | None
    stated: StatedError
    prediction: Prediction | None
    simulation: Simulation
    forms: tuple[ClosedForm, ...]
    slow_host: SlowHost | None = None

    @property
    def disagreements(self) -> list[Disagreement]:
        """Pairs of methods that differ by more than their known errors."""
        return disagreements(self.times)

    @property
    def trusted(self) -> MethodTime:
        """The measured time, else the method with the narrowest known interval.

        Where no error is known, the simulator: it answers for every setting.
        """
        by_method = {one.method: one for one in self.times}
        if "measured" in by_method:
            return by_method["measured"]
        return min(
            (one for one in self.times),
            key=lambda one: (_width(one), one.method != "simulator"),
        )

    @property
    def trust_sentence(self) -> str:
        """Which method to trust on this setting, and why."""
        best = self.trusted
        name, where = METHOD_WORDS[best.method], self.setting.name
        if best.method == "measured":
            return f"{where}: trust the measured time; a data set has this very graph"
        if best.interval_s is None:
            return (
                f"{where}: no method was checked on real runs like this job; take the {name}'s "
                f"{best.iteration_time_s:.3g} s as a guess"
            )
        low, high = best.interval_s
        return (
            f"{where}: trust the {name}, whose interval is the narrowest: nine times out of ten "
            f"{format_range(low, high, unit=' s')}"
        )


def _width(one: MethodTime) -> float:
    """Upper over lower end of the interval; infinite if the error is unknown."""
    ends = one.interval_s
    return inf if ends is None or ends[0] <= 0 else ends[1] / ends[0]


def closed_forms_of(job: PreparedJob, place: Place) -> tuple[ClosedForm, ...]:
    """Zhang's pipeline and both forms of Zeng's model.

    Raises:
        SettingError: the setting has no parameter servers.
        GraphError: the job sends no gradients.
    """
    topology, calibration, work = place.topology, place.calibration, work_of(job)
    exchange = shipped_closed_forms().exchange
    return (
        zhang_pipeline(job, topology, calibration),
        zeng_repaired(job, topology, calibration, exchange, work=work),
        zeng_published(job, topology, work=work),
    )


def closed_form_error(place: Place, method: str, stated: StatedError) -> MethodError | None:
    """Error of a closed form on such clusters; None if unknown, as of devices never measured.

    Args:
        place: the setting.
        method: name of the form.
        stated: error of the simulator on such jobs and clusters, which was checked on the same
            runs: where it is unknown, so is that of a form.
    """
    if stated.p90 is None:
        return None
    devices = dict.fromkeys(place.topology.workers)
    if any(place.calibration.device(one).measured_on != one.name for one in devices):
        return None
    return shipped_closed_forms().error_of(place.topology, method)


def ask_all(
    job: PreparedJob,
    place: Place,
    *,
    preset: str = "default",
    num_steps: int = 50,
    seed: int = 0,
    placement: str = "round_robin",
    datasets: Path | None = None,
) -> MethodAnswers:
    """Everything that one setting can be asked.

    Args:
        job: the training job.
        place: the setting.
        preset: which inspector.
        num_steps: training steps to simulate.
        seed: random seed of the jitter between steps.
        placement: how variables are spread over servers.
        datasets: folder of data sets with measured values; ./datasets if None.

    Raises:
        GraphError: the graph does not tell what its ops compute on.
    """
    setting, graph = place.setting, job.graph
    stated = stated_error(setting, graph, cost=job.cost, topology=place.topology)
    silent: dict[str, str] = {}
    times: list[MethodTime] = []
    measured, reason = _measured(setting, graph, datasets)
    if measured is None:
        silent["measured"] = reason
    else:
        times.append(
            MethodTime(method="measured", iteration_time_s=measured.iteration_time_s, p90=0.0)
        )
    prediction, predicted, reason = _predicted(place, job, preset, stated)
    doubts = reason if predicted is not None else ""
    if predicted is None:
        silent["inspector"] = reason
    else:
        times.append(predicted)
    made = simulate(
        job,
        setting,
        place.calibration,
        num_steps=num_steps,
        seed=seed,
        placement=placement,  # type: ignore[arg-type]  # checked by the caller
        topology=place.topology,
    )
    slow = slow_host(job, place, step_s=made.iteration_time_s)
    slow_s = None if slow is None else slow.step_s
    times.append(
        MethodTime(
            method="simulator",
            iteration_time_s=made.iteration_time_s,
            p90=stated.p90,
            calibrated_s=interval_with(stated.interval_of(made.iteration_time_s), slow_s),
        )
    )
    forms: tuple[ClosedForm, ...] = ()
    if place.topology.server_machine:
        forms = closed_forms_of(job, place)
        for form in forms:
            known = closed_form_error(place, form.method, stated)
            p90 = None if known is None else known.p90_pct / 100
            times.append(
                MethodTime(method=form.method, iteration_time_s=form.iteration_time_s, p90=p90)
            )
    else:
        reason = "a ring or a device alone; the closed forms are of parameter servers"
        silent |= dict.fromkeys(("zhang", "zeng-repaired", "zeng"), reason)
    answers = MethodAnswers(
        setting=setting,
        times=tuple(times),
        silent=silent,
        doubts=doubts,
        measured=measured,
        stated=stated,
        prediction=prediction,
        simulation=made,
        forms=forms,
        slow_host=slow,
    )
    return _without_errors(answers, graph) if graph.report.has_unknown else answers


def _without_errors(answers: MethodAnswers, graph: OpGraph) -> MethodAnswers:
    """The same without the errors of methods, which hold for graphs without unknown sizes."""
    times = tuple(
        one if one.method == "measured" else replace(one, p90=None, calibrated_s=None)
        for one in answers.times
    )
    return replace(answers, times=times, stated=StatedError(runs=graph.report.unknown_words))


def _predicted(
    place: Place, job: PreparedJob, preset: str, stated: StatedError
) -> tuple[Prediction | None, MethodTime | None, str]:
    """The inspector's answer and what it has not seen; or the reason why there is none.

    An inspector that learned from simulated labels is at least as far off as these, so its error
    is known only where theirs is.
    """
    setting = place.setting
    try:
        file = checkpoint_path(setting, preset)
    except CheckpointError:
        return None, None, f"no inspector of preset {preset} for {setting.name}"
    try:
        prediction = checked_predict(
            job.graph, load_checkpoint(file), job=job, topology=place.topology
        )
    except PredictionError as error:
        return None, None, str(error)
    doubts = (*prediction.warnings, *((prediction.outdated,) if prediction.outdated else ()))
    reason = f"{setting.name}, inspector: {'; '.join(doubts)}" if doubts else ""
    of_labels = stated.p90 if prediction.provenance == "simulated" else 0.0
    time_s = prediction.iteration_time_s
    p90, calibrated_s = None, None
    if of_labels is None:
        pass
    elif prediction.ends is not None and prediction.level is not None:
        half = hypot(log(prediction.ends[-1][1] / time_s), log1p(of_labels))
        p90, calibrated_s = expm1(half), (time_s / exp(half), time_s * exp(half))
    elif not doubts and (mean := prediction.metrics.get("test_iteration_time_mape_pct")):
        p90 = hypot(p90_of({"mean_pct": mean}) or 0.0, of_labels)
    answer = MethodTime(
        method="inspector", iteration_time_s=time_s, p90=p90, calibrated_s=calibrated_s
    )
    return prediction, answer, reason


def _measured(setting: Setting, graph: OpGraph, datasets: Path | None) -> tuple[Found | None, str]:
    """The measured workload with this graph on this setting; or the reason why there is none."""
    source = Path(str(files("driple"))).parent / "datasets"
    folders = [datasets] if datasets is not None else [_DATASETS, source]
    for folder in folders:
        place = folder / setting.file_name
        if not (place / "dataset.json").exists():
            continue
        try:
            rows = find_graph(place, graph_hash(graph)) or find_measured_step(place, graph)
        except MissingExtraError as error:
            return None, str(error)
        measured = [row for row in rows if row.label_source == "measured"]
        if measured:
            return measured[0], ""
    return None, f"no data set has this graph measured on {setting.name}"
