"""Driple predicts how a training job will use a cluster, before anyone runs it.

    answer = driple.predict("graph.pbtxt", "V100").answers[0]
    answer.iteration_time_s.value, answer.iteration_time_s.interval

    driple.predict(["a.pbtxt", "b.pbtxt"], ["V100", "V100-R8/ho-NVLink"]).to_frame()

`predict`, `plan`, `sweep`, `inspect` and `validate` ask what the commands of the same names ask.
Names are imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.api.inspecting import inspect
    from driple.api.planning import plan
    from driple.api.predicting import predict
    from driple.api.sweeping import sweep
    from driple.api.validating import validate
    from driple.cluster.setting import Setting
    from driple.errors import DripleError
    from driple.estimate import Estimate
    from driple.graph import OpGraph, read_graph
    from driple.graph.options import ReadOptions
    from driple.inspector.checkpoint import Checkpoint, load_checkpoint
    from driple.inspector.predict import Prediction
    from driple.jobs.load import Job, JobOptions, load_job
    from driple.jobs.pytorch.modules import job_of_module
    from driple.marks import mark_step
    from driple.trace.targets import Targets

__all__ = [
    "Checkpoint",
    "DripleError",
    "Estimate",
    "Job",
    "JobOptions",
    "OpGraph",
    "Prediction",
    "ReadOptions",
    "Setting",
    "Targets",
    "inspect",
    "job_of_module",
    "load_checkpoint",
    "load_job",
    "mark_step",
    "plan",
    "predict",
    "read_graph",
    "sweep",
    "validate",
]

_HOMES = {
    "Checkpoint": "driple.inspector.checkpoint",
    "DripleError": "driple.errors",
    "Estimate": "driple.estimate",
    "Job": "driple.jobs.load",
    "JobOptions": "driple.jobs.load",
    "OpGraph": "driple.graph",
    "Prediction": "driple.inspector.predict",
    "ReadOptions": "driple.graph.options",
    "Setting": "driple.cluster.setting",
    "Targets": "driple.trace.targets",
    "inspect": "driple.api.inspecting",
    "job_of_module": "driple.jobs.pytorch.modules",
    "load_checkpoint": "driple.inspector.checkpoint",
    "load_job": "driple.jobs.load",
    "mark_step": "driple.marks",
    "plan": "driple.api.planning",
    "predict": "driple.api.predicting",
    "read_graph": "driple.graph",
    "sweep": "driple.api.sweeping",
    "validate": "driple.api.validating",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'driple' has no attribute '{name}'")
    value: object = getattr(import_module(_HOMES[name]), name)
    if name == "mark_step":  # called in every step: found without this function from now on
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
