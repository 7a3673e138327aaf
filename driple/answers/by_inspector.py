"""The inspector's answer: twelve targets and a step time, checked against a closed form.

ReadyJob, Place, checkpoint -> Prediction, error of the labels -> MethodAnswer

The interval of the step time is for real runs: one that learned from simulated labels is at least
as far off as these. Where the error of the labels is not known, no share of runs is claimed.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, expm1, hypot, log, log1p
from typing import TYPE_CHECKING, cast

from driple.answers.by_simulator import error_of
from driple.answers.checked import predict
from driple.answers.method_answer import MethodAnswer, ends_of_p90
from driple.answers.options import USUAL, MethodOptions
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.errors import CatalogError, CheckpointError, PredictionError, SettingError
from driple.estimate import estimate
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.predict import Prediction
from driple.remarks import Remark, remark
from driple.simulate.calibration import shipped_calibration
from driple.simulate.place import Place, place_of
from driple.simulate.prepared_job import assumptions_on

if TYPE_CHECKING:
    from driple.answers.error_statement import StatedError
    from driple.estimate import Source

__all__ = ["ask_inspector", "earlier_labels"]

_P90_OF_MEAN = 2.06  # of normal errors, the 90th percentile of their size over its mean


def ask_inspector(
    ready: ReadyJob,
    setting: Setting,
    options: MethodOptions = USUAL,
    checkpoint: Checkpoint | None = None,
) -> MethodAnswer:
    """Ask the inspector of a setting.

    Args:
        ready: the job.
        setting: cluster and scheme.
        options: preset, and what the user measured of his host.
        checkpoint: the inspector; that of setting and preset by default.

    Raises:
        PredictionError: no inspector of the setting, or it gives impossible numbers for this job.
        GraphError: the graph has no nodes.
    """
    if checkpoint is None:
        try:
            checkpoint = load_checkpoint(checkpoint_path(setting, options.preset))
        except CheckpointError as error:
            raise PredictionError(
                f"no inspector of preset {options.preset} for {setting.name}"
            ) from error
    place = _known_place(setting)
    prediction = predict(
        ready.job.graph,
        checkpoint,
        job=ready.prepared,
        topology=None if place is None else place.topology,
        host=options.host,
    )
    if ready.job.has_unknown:  # the share that an interval holds is for graphs without such sizes
        prediction = replace(prediction, level=None)
    stated: StatedError | None = None
    if prediction.provenance == "simulated":
        stated = error_of(ready, place_of(setting) if place is None else place)
    p90, ends, level = _interval(prediction, stated)
    return MethodAnswer(
        setting=setting,
        step_time=estimate(
            prediction.iteration_time_s,
            "inspector",
            cast("Source", prediction.provenance),
            ends=ends,
            level=level,
        ),
        p90=p90,
        stated=stated,
        assumptions=(
            *assumptions_on(ready.job.graph, setting),
            *earlier_labels(prediction, setting),
        ),
        prediction=prediction,
    )


def _known_place(setting: Setting) -> Place | None:
    """The machines of a setting; None where something about them is not known."""
    try:
        return place_of(setting)
    except (SettingError, CatalogError):
        return None


def _interval(
    prediction: Prediction, stated: StatedError | None
) -> tuple[float | None, tuple[float, float] | None, float | None]:
    """90th percentile of the error, ends of the interval of the step time, and its level."""
    time_s = prediction.iteration_time_s
    of_labels = 0.0 if stated is None else stated.p90
    if prediction.ends is not None:
        low, high = prediction.ends[-1].tolist()
        if prediction.level is None or of_labels is None:
            return None, (low, high), None
        half = hypot(log(high / time_s), log1p(of_labels))
        if not of_labels:
            return expm1(half), (low, high), prediction.level
        return expm1(half), (time_s / exp(half), time_s * exp(half)), prediction.level
    mean = prediction.metrics.get("test_iteration_time_mape_pct")
    if of_labels is None or prediction.warnings or prediction.outdated or not mean:
        return None, None, None
    p90 = hypot(_P90_OF_MEAN * mean / 100, of_labels)
    return p90, ends_of_p90(time_s, p90), prediction.level


def earlier_labels(prediction: Prediction, setting: Setting) -> list[Remark]:
    """Where an inspector learned from a simulation before today's fit of the simulator.

    An inspector that does not record the fit behind its labels learned from one of its own day or
    before.
    """
    if prediction.provenance != "simulated":
        return []
    fitted, learned = shipped_calibration(setting).about.get("fitted"), prediction.trained_on
    labels, is_latest = learned.labels_fitted, False
    if labels is None:
        labels, is_latest = learned.date, True
    if not isinstance(fitted, str) or labels is None or labels >= fitted:
        return []
    return [remark("earlier_labels", labels_date=labels, is_latest=is_latest, fitted_date=fitted)]
