"""The measured time, where a data set has this very graph on this setting.

OpGraph, Setting, data sets -> StoredWorkload -> MethodAnswer
"""

from __future__ import annotations

from pathlib import Path

from driple.answers.method_answer import MethodAnswer
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.data_folders import setting_folders, settings_in
from driple.dataset.example import graph_hash
from driple.dataset.lookup import find_graph, find_measured_step
from driple.errors import PredictionError
from driple.estimate import Estimate

__all__ = ["ask_measured"]


def ask_measured(ready: ReadyJob, setting: Setting, datasets: Path | None = None) -> MethodAnswer:
    """The measured workload with this graph on this setting.

    Args:
        ready: the job.
        setting: cluster and scheme.
        datasets: folder of data sets; ./datasets and that of the checkout if None.

    Raises:
        PredictionError: no data set has it.
        MissingExtraError: data sets cannot be read without the extra `train`.
    """
    graph = ready.job.graph
    for folder in setting_folders() if datasets is None else settings_in(datasets):
        place = folder / setting.file_name
        if not (place / "dataset.json").exists():
            continue
        rows = find_graph(place, graph_hash(graph)) or find_measured_step(place, graph)
        measured = [row for row in rows if row.label_source == "measured"]
        if measured:
            row = measured[0]
            time = Estimate(value=row.iteration_time_s, method="measured", source="measured")
            return MethodAnswer(setting=setting, step_time=time, p90=0.0, measured=row)
    raise PredictionError(f"no data set has this graph measured on {setting.name}")
