"""The answers of the papers' closed forms: Zhang's pipeline and both forms of Zeng's model.

ReadyJob, Place -> ClosedForm, its error on measured iterations -> MethodAnswer
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from driple.analytic.closed_forms import (
    ClosedForm,
    MethodError,
    shipped_closed_forms,
    zeng_published,
    zeng_repaired,
    zhang_pipeline,
)
from driple.answers.by_simulator import error_of
from driple.answers.error_statement import StatedError
from driple.answers.method_answer import MethodAnswer, ends_of_p90
from driple.answers.ready_job import ReadyJob
from driple.errors import PredictionError
from driple.estimate import LEVEL, Method, estimate
from driple.simulate.place import Place
from driple.simulate.prepared_job import closed_form_assumptions

__all__ = ["FORMS", "ask_closed_form", "closed_form_error"]


def _zhang(ready: ReadyJob, place: Place) -> ClosedForm:
    return zhang_pipeline(ready.prepared, place.topology, place.calibration)


def _repaired(ready: ReadyJob, place: Place) -> ClosedForm:
    exchange = shipped_closed_forms().exchange
    return zeng_repaired(
        ready.prepared, place.topology, place.calibration, exchange, work=ready.work
    )


def _published(ready: ReadyJob, place: Place) -> ClosedForm:
    return zeng_published(ready.prepared, place.topology, work=ready.work)


_FORMS: dict[str, Callable[[ReadyJob, Place], ClosedForm]] = {
    "zhang": _zhang,
    "zeng-repaired": _repaired,
    "zeng": _published,
}
FORMS: tuple[str, ...] = tuple(_FORMS)


def ask_closed_form(ready: ReadyJob, place: Place, method: str) -> MethodAnswer:
    """The iteration time by one of `FORMS`.

    Raises:
        PredictionError: the setting has no parameter servers.
        GraphError: the job sends no gradients.
    """
    if not place.topology.server_machine:
        raise PredictionError("a ring or a device alone; the closed forms are of parameter servers")
    form = _FORMS[method](ready, place)
    error = closed_form_error(place, method, error_of(ready, place))
    p90 = None if error is None else error.p90_pct / 100
    return MethodAnswer(
        setting=place.setting,
        step_time=estimate(
            form.iteration_time_s,
            cast("Method", method),
            ends=ends_of_p90(form.iteration_time_s, p90),
            level=LEVEL,
        ),
        p90=p90,
        assumptions=closed_form_assumptions(ready.job.graph, place.setting),
        form=form,
        form_error=error,
        work=ready.work,
    )


def closed_form_error(place: Place, method: str, stated: StatedError) -> MethodError | None:
    """Error of a closed form on such clusters; None if unknown, as of devices never measured.

    Args:
        place: the setting.
        method: name of the form.
        stated: error of the simulator on such jobs and clusters, which was checked on the same
            runs: where it is unknown, so is that of a form.
    """
    if not stated.is_checked:
        return None
    devices = place.topology.kinds
    if any(place.calibration.device(each).measured_on != each.name for each in devices):
        return None
    return shipped_closed_forms().error_of(place.topology, method)
