"""Predicted beside measured: where the time of a step is, of a job and of a profiler's trace.

Breakdown, TraceUse -> TracedStep: rows by kind of op, phase and module, gaps, remarks
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.api.traced_modules import match_modules, module_paths, predicted_seconds
from driple.estimate import optional_estimate
from driple.measure.kineto.kinds import COLLECTIVE, UPDATE, group_of_kind
from driple.measure.kineto.use import TraceUse, trace_use
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from driple.api.breakdown import Breakdown
    from driple.api.json_types.inspect import TracedJson, TracedRowJson
    from driple.catalog.catalog import Catalog
    from driple.cluster.setting import Setting
    from driple.jobs.load import Job
    from driple.measure.kineto.gaps import Gap

__all__ = ["TracedRow", "TracedStep", "device_of_trace", "traced_beside", "traced_dict"]

_PHASES = {"recompute": "backward"}  # a trace has recomputation within the backward pass


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedRow:
    """One part of a step.

    Attributes:
        name: of the kind of op, phase or module.
        predicted_s: seconds of a step; None where the job has no such part.
        measured_s: median over the steps of the trace; None where the trace shows none.
        count: kernels, or ops of the host, of a step; None of modules and phases.
    """

    name: str
    predicted_s: float | None
    measured_s: float | None
    count: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedStep:
    """A trace beside a job.

    Attributes:
        use: what the trace shows.
        kinds: those of most measured time first.
        phases: forward, backward, update, data loading.
        modules: in the order of the model; empty where none could be matched.
        remarks: what limits the comparison.
    """

    use: TraceUse
    kinds: tuple[TracedRow, ...]
    phases: tuple[TracedRow, ...]
    modules: tuple[TracedRow, ...]
    remarks: tuple[Remark, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Where no kernel, or no op, runs."""
        return self.use.gaps


def device_of_trace(path: Path, catalog: Catalog) -> str | None:
    """The device of the catalogue that a trace was recorded on; None if it names none.

    Raises:
        TraceError: no trace.
    """
    from driple.measure.kineto.stream import TraceStream

    stream = TraceStream(path)
    events = stream.events()
    next(events, None)
    events.close()
    given = stream.header.get("deviceProperties")
    first = given[0] if isinstance(given, list) and given else None
    name = first.get("name") if isinstance(first, dict) else None
    return _catalogued(name, catalog) if isinstance(name, str) else None


def _catalogued(name: str, catalog: Catalog) -> str | None:
    """The catalogue's name of a device, from all of its name or from the beginning of it."""
    words = name[:200].replace("-", " ").split()
    for count in range(len(words), 0, -1):
        for first in (0, 1):  # with and without the maker
            device = catalog.find_device(" ".join(words[first:count]))
            if device is not None and first < count:
                return device.name
    return None


def traced_beside(
    job: Job, setting: Setting, breakdown: Breakdown, path: Path, catalog: Catalog
) -> TracedStep:
    """Read a trace and set it beside the work of a job.

    Args:
        job: that was recorded.
        setting: whose device the predicted times are of.
        breakdown: of the job's step on that device.
        path: of the trace.
        catalog: which device the trace names.

    Raises:
        TraceError: no trace of a training step.
    """
    graph = job.graph
    use = trace_use(path, module_paths(graph))
    measured = match_modules(graph, use.modules) if graph.modules else {}
    return TracedStep(
        use=use,
        kinds=_kinds(breakdown, use),
        phases=_phases(breakdown, use),
        modules=_modules(breakdown, measured),
        remarks=tuple(_remarks(setting, use, measured, catalog)),
    )


def _kinds(breakdown: Breakdown, use: TraceUse) -> tuple[TracedRow, ...]:
    predicted: dict[str, float] = {}
    for share in breakdown.kinds:
        if share.time_s is not None:
            group = group_of_kind(share.name)
            predicted[group] = predicted.get(group, 0.0) + share.time_s
    if breakdown.total_s is not None:
        update_s = breakdown.total_s - sum(share.time_s or 0.0 for share in breakdown.kinds)
        if update_s > 1e-9 * breakdown.total_s:
            predicted[UPDATE] = predicted.get(UPDATE, 0.0) + update_s
    rows = [
        TracedRow(
            name=name,
            predicted_s=predicted.get(name),
            measured_s=use.kinds.get(name),
            count=use.counts.get(name),
        )
        for name in dict.fromkeys((*use.kinds, *predicted))
        if predicted.get(name) or use.kinds.get(name)
    ]
    return tuple(
        sorted(rows, key=lambda row: (-(row.measured_s or 0.0), -(row.predicted_s or 0.0)))
    )


def _phases(breakdown: Breakdown, use: TraceUse) -> tuple[TracedRow, ...]:
    predicted: dict[str, float] = {}
    for share in breakdown.phases:
        if share.time_s is not None:
            name = _PHASES.get(share.name, share.name)
            predicted[name] = predicted.get(name, 0.0) + share.time_s
    return tuple(
        TracedRow(name=name, predicted_s=predicted.get(name), measured_s=use.phases.get(name))
        for name in dict.fromkeys(("forward", "backward", "update", *predicted, *use.phases))
        if name in predicted or name in use.phases
    )


def _modules(breakdown: Breakdown, measured: Mapping[str, float]) -> tuple[TracedRow, ...]:
    if breakdown.modules is None:
        return ()
    predicted = predicted_seconds(breakdown.modules, ".")
    return tuple(
        TracedRow(name=path, predicted_s=predicted.get(path), measured_s=seconds)
        for path, seconds in measured.items()
        if path
    )


def _remarks(
    setting: Setting, use: TraceUse, measured: Mapping[str, float], catalog: Catalog
) -> list[Remark]:
    remarks = []
    asked = setting.worker
    recorded = _catalogued(use.device, catalog) if use.device else None
    if not use.on_gpu and not asked.is_cpu:
        remarks.append(remark("trace_of_host", asked=asked.name))
    elif use.device and recorded != asked.name:
        remarks.append(remark("measured_elsewhere", recorded=use.device, asked=asked.name))
    if not use.marked:
        remarks.append(remark("trace_without_steps"))
    if use.other_devices:
        remarks.append(remark("trace_of_one_device", others=use.other_devices))
    if COLLECTIVE in use.kinds:
        remarks.append(remark("trace_with_collectives"))
    if not any(use.modules):
        remarks.append(remark("trace_without_modules"))
    elif not measured:
        remarks.append(remark("trace_modules_unmatched"))
    return remarks


def traced_dict(step: TracedStep, depth: int) -> TracedJson:
    """The trace in the JSON of `inspect`.

    Args:
        step: beside its job.
        depth: levels of modules.
    """
    use = step.use
    return {
        "steps": use.num_steps,
        "marked": use.marked,
        "device": use.device or None,
        "on_gpu": use.on_gpu,
        "step_s": use.step_s,
        "busy_s": use.busy_s,
        "kinds": [_row_dict(row) for row in step.kinds],
        "phases": [_row_dict(row) for row in step.phases],
        "modules": [_row_dict(row) for row in step.modules if row.name.count(".") < depth],
        "gaps": step.gaps,
        "remarks": step.remarks,
        "events": use.num_events,
    }


def _row_dict(row: TracedRow) -> TracedRowJson:
    return {
        "name": row.name,
        "predicted_s": optional_estimate(row.predicted_s, "simulator"),
        "measured_s": optional_estimate(row.measured_s, "measured", "measured"),
        "count": row.count,
    }
