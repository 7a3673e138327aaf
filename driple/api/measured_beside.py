"""Predicted beside measured: an answer of `predict` and the record of the same job.

    Answer, records -> MeasuredRecord: a row of each resource, and what differs as remarks

Means over the time of steps are compared, as bursts of unlike length may carry the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from driple.errors import TraceError
from driple.estimate import Interval, estimate
from driple.remarks import Remark, remark
from driple.trace.targets import NETWORK, UNITS

if TYPE_CHECKING:
    from driple.api.json_types.predict import MeasuredJson
    from driple.api.predicting import Answer
    from driple.measure.record.use import RunUse
    from driple.trace.targets import Targets

__all__ = ["MeasuredRecord", "MeasuredRow", "measured_beside", "measured_dict", "use_of_folders"]

_ALIKE = 0.1  # relative: numbers within that agree
_WAITS = 0.85  # of the predicted share of busy time: a device below that waits
_SILENT_MB_PER_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRow:
    """One number, predicted and measured.

    Attributes:
        resource: `step`, `memory`, or a resource.
        unit: of both numbers.
        predicted: None where the method has no such number.
        interval: of the predicted number; None if unknown.
        measured: None where it was not recorded.
    """

    resource: str
    unit: str
    predicted: float | None
    interval: Interval | None
    measured: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRecord:
    """A record beside an answer.

    Attributes:
        rows: step, memory and the four resources.
        steps_by: `marked` or `period`.
        num_steps: steps that were measured.
        differences: what differs, and what that says.
        missing: resources that were not recorded, and why.
        targets: the twelve measured numbers; None if a resource is missing.
    """

    rows: tuple[MeasuredRow, ...]
    steps_by: Literal["marked", "period"]
    num_steps: int
    differences: tuple[Remark, ...]
    missing: dict[str, str]
    targets: Targets | None


def use_of_folders(folders: Sequence[Path]) -> RunUse:
    """The use of one run.

    Args:
        folders: one record of each host.

    Raises:
        TraceError: records of several runs, or without steps.
    """
    from driple.measure.record.hosts import runs_of
    from driple.measure.record.store import read_record
    from driple.measure.record.use import run_use

    runs = runs_of([read_record(folder) for folder in folders])
    if len(runs) > 1:
        raise TraceError(
            f"--measured has records of {len(runs)} runs, as {runs[1][0].folder} does not overlap "
            f"with {runs[0][0].folder} in time; give the hosts of one run"
        )
    return run_use(runs[0])


def measured_beside(answer: Answer, use: RunUse) -> MeasuredRecord:
    """The record beside an answer, by resource.

    Args:
        answer: of the job that was recorded.
        use: of the run.
    """
    time = None if answer.best is None else answer.best.step_time
    rows = [
        MeasuredRow(
            resource="step",
            unit="s",
            predicted=None if time is None else time.value,
            interval=None if time is None else time.interval,
            measured=use.steps.step_s,
        )
    ]
    held = None if answer.memory is None else answer.memory.estimate
    if held is not None and held.device_total is not None:
        rows.append(
            MeasuredRow(
                resource="memory",
                unit="bytes",
                predicted=held.device_total.value,
                interval=None
                if held.device_total.lower is None
                else Interval(low=held.device_total.lower, high=held.device_total.upper),
                measured=None if use.device_bytes is None else float(use.device_bytes),
            )
        )
    means = {} if answer.targets is None else _means(answer.targets)
    rows += [
        MeasuredRow(
            resource=resource,
            unit=unit,
            predicted=means.get(resource),
            interval=None,
            measured=use.means.get(resource),
        )
        for resource, unit in UNITS.items()
        if unit != "s"
    ]
    return MeasuredRecord(
        rows=tuple(rows),
        steps_by=use.steps.source,
        num_steps=use.steps.num_steps,
        differences=tuple(
            _places(answer, use) or _differences({row.resource: row for row in rows})
        ),
        missing=dict(use.missing),
        targets=None if use.missing else use.targets(),
    )


def _means(targets: Targets) -> dict[str, float]:
    """Mean amount of each resource over bursts and gaps."""
    return {
        resource: figures["burst_amount"] * figures["burst_duration"] / span
        for resource, figures in targets.to_dict().items()
        if (span := figures["burst_duration"] + figures["idle_duration"]) > 0
    }


def _places(answer: Answer, use: RunUse) -> list[Remark]:
    """Where the record is of other devices, or of another number of them."""
    setting, other = answer.setting, use.other_device(answer.setting)
    if other:
        return [remark("measured_elsewhere", recorded=other, asked=setting.worker.name)]
    if use.num_devices != setting.num_workers:
        return [remark("measured_number", recorded=use.num_devices, asked=setting.num_workers)]
    return []


def _differences(rows: dict[str, MeasuredRow]) -> list[Remark]:
    """What differs, and what that says of the job."""
    step, busy = _pair(rows, "step"), _pair(rows, "device_util")
    remarks = []
    if step is not None:
        remarks.append(_step_remark(rows["step"], *step))
        waits = busy is not None and busy[1] < _WAITS * busy[0]
        longer = step[1] > (1 + _ALIKE) * step[0]
        if busy is not None and waits:
            remarks.append(remark("measured_device_waits", predicted=busy[0], measured=busy[1]))
        elif busy is not None and longer:
            remarks.append(remark("measured_device_slower", predicted=busy[0], measured=busy[1]))
        remarks += _bytes_remark(step, [_pair(rows, resource) for resource in NETWORK])
    memory = _pair(rows, "memory")
    if memory is not None and abs(memory[1] / memory[0] - 1) > _ALIKE:
        remarks.append(remark("measured_memory", predicted=memory[0], measured=memory[1]))
    return remarks


def _pair(rows: dict[str, MeasuredRow], name: str) -> tuple[float, float] | None:
    """Predicted and measured, where both are known and the prediction is above 0."""
    row = rows.get(name)
    if row is None or not row.predicted or row.measured is None:
        return None
    return row.predicted, row.measured


def _step_remark(row: MeasuredRow, predicted: float, measured: float) -> Remark:
    ends = row.interval
    inside = None
    if ends is not None:
        inside = ends.low <= measured and (ends.high is None or measured <= ends.high)
    return remark("measured_step", factor=measured / predicted, inside=inside)


def _bytes_remark(
    step: tuple[float, float], rates: Sequence[tuple[float, float] | None]
) -> list[Remark]:
    """Bytes of a step, which do not depend on how long it takes; sent, then received."""
    known = [rate for rate in rates if rate is not None and max(rate) >= _SILENT_MB_PER_S]
    predicted_mb = [rate[0] * step[0] for rate in known]
    measured_mb = [rate[1] * step[1] for rate in known]
    if len(known) < len(rates) or all(
        abs(own / expected - 1) <= _ALIKE
        for own, expected in zip(measured_mb, predicted_mb, strict=True)
    ):
        return []
    return [
        remark("measured_bytes", predicted_mb=tuple(predicted_mb), measured_mb=tuple(measured_mb))
    ]


def measured_dict(record: MeasuredRecord) -> MeasuredJson:
    """The record in the JSON of `predict`."""
    values = {} if record.targets is None else record.targets.to_dict()
    return {
        "rows": [
            {
                "resource": row.resource,
                "unit": row.unit,
                "predicted": row.predicted,
                "interval": row.interval,
                "measured": row.measured,
            }
            for row in record.rows
        ],
        "steps_by": record.steps_by,
        "num_steps": record.num_steps,
        "differences": record.differences,
        "missing": record.missing,
        "targets": {
            resource: {
                figure: estimate(value, "measured", "measured") for figure, value in figures.items()
            }
            for resource, figures in values.items()
        }
        or None,
    }
