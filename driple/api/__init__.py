"""One function and one result type per question; nothing below this package prints.

    predict(job, settings) -> PredictResult       how will this job use this setting?
    predict_jobs(jobs, out) -> AnsweredJobs       the same for a file of jobs and clusters
    answer_table(jobs)     -> pyarrow.Table       the same for a table, for Ray Data
    plan(job)              -> PlanResult          which instance, at what price?
    sweep(job or trace)    -> SweepResult         what would another cluster bring?
    inspect(job, setting)  -> InspectResult       what does Driple see of the job?
    fit_links(profiles)    -> LinksResult         what do links cost a PyTorch script?
    predict_stalls(job)    -> StallResult         how long does a job wait for them?
    validate(folder)       -> ValidateResult      how far is the simulator from published runs?

Every result has `to_dict()` (the JSON of the command line, described by `driple/api/schema.json`),
`to_frame()` (pandas) and an HTML table for notebooks. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.analytic.whatif import GridOptions
    from driple.api.answering_tables import answer_table
    from driple.api.inspecting import InspectResult, inspect
    from driple.api.linking import LinksResult, StallResult, fit_links, predict_stalls
    from driple.api.planning import PlanResult, plan
    from driple.api.predicting import Answer, PredictResult, predict
    from driple.api.predicting_jobs import AnsweredJobs, predict_jobs
    from driple.api.sweeping import SweepResult, sweep
    from driple.api.sweeping_traces import TraceOptions
    from driple.api.validating import ValidateResult, validate

__all__ = [
    "Answer",
    "AnsweredJobs",
    "GridOptions",
    "InspectResult",
    "LinksResult",
    "PlanResult",
    "PredictResult",
    "StallResult",
    "SweepResult",
    "TraceOptions",
    "ValidateResult",
    "answer_table",
    "fit_links",
    "inspect",
    "plan",
    "predict",
    "predict_jobs",
    "predict_stalls",
    "sweep",
    "validate",
]

_MODULES = {
    "driple.analytic.whatif": ("GridOptions",),
    "driple.api.answering_tables": ("answer_table",),
    "driple.api.predicting": ("Answer", "PredictResult", "predict"),
    "driple.api.predicting_jobs": ("AnsweredJobs", "predict_jobs"),
    "driple.api.planning": ("PlanResult", "plan"),
    "driple.api.sweeping": ("SweepResult", "sweep"),
    "driple.api.sweeping_traces": ("TraceOptions",),
    "driple.api.inspecting": ("InspectResult", "inspect"),
    "driple.api.linking": ("LinksResult", "StallResult", "fit_links", "predict_stalls"),
    "driple.api.validating": ("ValidateResult", "validate"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'driple.api' has no attribute '{name}'")
    return getattr(import_module(_MODULE_OF[name]), name)
