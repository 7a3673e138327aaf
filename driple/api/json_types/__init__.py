"""Types of the JSON that each question prints: what its function fills in, and `--json` holds.

    TypedDict, whose values may be dataclasses  --codec.to_dict-->  JSON;  scripts.pages.schema
    makes driple/api/schema.json of them

Functions name these types in annotations alone: running a command imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from driple.api.json_types import commands, inspect, links, plan, predict, sweep, validate
from driple.async_sgd.origin import PlatformRecord
from driple.profiler.stall_profile import ProfileJson

__all__ = ["QUESTIONS"]

_MEASURED = {"bits_per_s": float, "r_squared": float, "measured": str}

QUESTIONS: Mapping[str, Any] = {
    "predict": predict.PredictJson,
    "predict_jobs": predict.JobsAnsweredJson,
    "plan": plan.PlanJson,
    "sweep": sweep.SweepJson,
    "inspect": inspect.InspectJson,
    "validate": validate.ValidateJson,
    "list": commands.ListJson,
    "jobs": commands.JobsJson,
    "build": commands.BuildJson,
    "data_list": commands.DataListJson,
    "data_set": commands.DataSetJson,
    "label": commands.LabelJson,
    "data_made": commands.DataMadeJson,
    "data_simulated": commands.DataSimulatedJson,
    "links": links.LinksJson,
    "stalls": links.StallsJson,
    "profile": ProfileJson,
    "trace": commands.TraceJson,
    "platform": Annotated[PlatformRecord, _MEASURED],
    "train": commands.TrainJson,
    "transfer": commands.TransferJson,
    "tune": validate.TuningJson,
    "evaluate": validate.EvaluateJson,
    "measure": commands.MeasureJson,
    "record": commands.RecordJson,
    "measure_machine": commands.MachineJson,
    "env": commands.EnvJson,
}
"""The type of the answer to each question, without `question` where the command line adds it."""
