"""Records of one job as a workload of a data set, with labels of source `measured`.

records -> runs (hosts by overlap, repeats) -> targets of each -> median -> Example -> Dataset
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from driple.dataset.example import Dataset, Detail, Example, graph_hash, merge_examples
from driple.errors import DatasetError
from driple.graph import OpGraph
from driple.measure.record.hosts import runs_of
from driple.measure.record.store import HostRecord
from driple.measure.record.use import LABEL_GRID_S, RunUse, run_use
from driple.trace.provenance import Provenance
from driple.trace.repeatability import repeatability
from driple.trace.targets import FIGURES, RESOURCES, Targets

__all__ = ["RecordedWorkload", "with_recorded"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedWorkload:
    """What the records are of.

    Attributes:
        name: of the workload, unique in the data set.
        family: of its model.
        setting: full name of the setting.
        graph: of one worker's step.
        facts: details that are stored beside the label.
    """

    name: str
    family: str
    setting: str
    graph: OpGraph
    facts: dict[str, Detail]


def with_recorded(
    records: Sequence[HostRecord],
    workload: RecordedWorkload,
    *,
    name: str,
    dataset: Dataset | None = None,
    grid_s: float = LABEL_GRID_S,
) -> tuple[Dataset, list[RunUse]]:
    """The data set with this workload, and the use of each run.

    Args:
        records: of one job: hosts of a run overlap in time, repeats do not.
        workload: what they are of.
        name: of a new data set.
        dataset: the one to add to; None for a new one.
        grid_s: sampling period of the traces that are labelled.

    Raises:
        TraceError: a record without steps, a resource that was not recorded.
        DatasetError: a data set of another setting or kind of labels.
    """
    if dataset is not None and dataset.about.label_source != "measured":
        raise DatasetError(
            f"{dataset.name} has labels of source {dataset.about.label_source}, records are "
            "measured; write to another folder"
        )
    known = {example.workload: example for example in (dataset.examples if dataset else ())}
    same = known.get(workload.name)
    if same is not None and graph_hash(same.graph) != graph_hash(workload.graph):
        raise DatasetError(
            f"{name} has a workload {workload.name} with another graph; name this one with --set "
            "workload=NAME"
        )
    runs = runs_of(records)
    uses = [run_use(run, grid_s=grid_s) for run in runs]
    rows = np.array([use.targets().flat for use in uses])
    times = np.array([use.steps.step_s for use in uses])
    days = sorted(record.about.created for record in records)
    example = Example(
        workload=workload.name,
        family=workload.family,
        setting=workload.setting,
        graph=workload.graph,
        targets=Targets(np.median(rows, axis=0).reshape(len(RESOURCES), len(FIGURES))),
        iteration_time_s=median(times.tolist()),
        label_source="measured",
        details={
            **workload.facts,
            "repeats": len(runs),
            "hosts": max(map(len, runs)),
            "devices": uses[0].num_devices,
            "iterations": min(use.steps.num_steps for use in uses),
            "steps_by": uses[0].steps.source,
            "measured": days[0],
            "measured_last": days[-1],
            **{f"pattern_{key}": label.pattern for key, label in uses[0].labels.items()},
            **{f"idle_amount_{key}": label.idle_amount for key, label in uses[0].labels.items()},
        },
    )
    if dataset is None:
        about = Provenance(
            host=records[0].about.host,
            created=days[0],
            versions={"driple": records[0].about.driple},
            label_source="measured",
            collected=datetime.datetime.now(datetime.UTC).date().isoformat(),
            label_grid_s=grid_s,
            source="driple record",
        )
        dataset = Dataset(name=name, setting=workload.setting, examples=(), about=about)
    merged = merge_examples(dataset, [example])
    if len(runs) > 1:
        spread = repeatability({workload.name: rows}, {workload.name: times})
        merged = replace(merged, about=replace(merged.about, repeatability=spread))
    num_runs = sum(int(example.details.get("repeats", 1)) for example in merged.examples)
    return replace(merged, about=replace(merged.about, num_runs=num_runs)), uses
