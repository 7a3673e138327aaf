"""The question `sweep` at several batch sizes: step time, throughput and memory of each.

JOB, setting, batch sizes -> an answer of `predict` for each -> SweepResult
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driple.api.arguments import settings_of
from driple.api.memory import JobMemory, memory_beside
from driple.api.sweeping import Column, SweepResult
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.jobs.load import Job, JobOptions, load_job
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer
    from driple.api.json_types.sweep import BatchFactsJson
    from driple.memory.estimate import Bytes, MemoryEstimate

__all__ = ["sweep_batches"]

_MOST_SIZES = 40


def sweep_batches(
    source: str,
    setting: str | Setting | None,
    batch_sizes: Sequence[int],
    *,
    options: JobOptions | None = None,
    progress: Callable[[], None] | None = None,
) -> SweepResult:
    """Step time and memory of a job at several batch sizes per device.

    Args:
        source: JOB as on the command line.
        setting: cluster; the job's own if None.
        batch_sizes: samples of a device in a step, rising.
        options: of the job, without a batch size.
        progress: called after each batch size.

    Raises:
        ConfigError: no or too many batch sizes, or a job that has no use for one.
        GraphError: a job that cannot be read.
        SettingError: an unknown setting.
        CatalogError: the catalogue lacks a fact about a device.
    """
    if not 1 <= len(batch_sizes) <= _MOST_SIZES:
        raise ConfigError(f"--batch-size takes 1 to {_MOST_SIZES} numbers, got {len(batch_sizes)}")
    found = []
    for size in batch_sizes:
        asked = replace(options or JobOptions(), batch_size=size)
        found.append(_point(source, setting, asked))
        if progress is not None:
            progress()
    return _result(found, batch_sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    """The answers at one batch size."""

    job: Job
    setting: Setting
    answer: MethodAnswer
    memory: JobMemory | None


def _point(source: str, setting: str | Setting | None, options: JobOptions) -> _Point:
    from driple.answers.by_simulator import ask_simulator
    from driple.answers.ready_job import ReadyJob
    from driple.simulate.place import place_of

    named = None if setting is None else settings_of([setting], options=options)[0]
    job = load_job(source, options, setting=named)
    job.require_decided("time", "a sweep")
    there = named or Setting.parse(job.usual_setting)
    return _Point(
        job=job,
        setting=there,
        answer=ask_simulator(ReadyJob(job), place_of(there)),
        memory=memory_beside(job, there),
    )


def _result(found: Sequence[_Point], batch_sizes: Sequence[int]) -> SweepResult:
    first = found[0]
    times = [one.answer.step_time for one in found]
    samples = [
        size * first.job.grad_accumulation * first.setting.num_replicas for size in batch_sizes
    ]
    ends = [(one.interval.low, one.interval.high) for one in times if one.interval is not None]
    has_all = len(ends) == len(times)
    estimates = {
        "iteration_time_s": Column(
            value=[one.value for one in times],
            interval=ends if has_all else None,
            level=times[0].interval.level if has_all and times[0].interval else None,
            method="simulator",
        ),
        "samples_per_s": Column(
            value=[count / one.value for count, one in zip(samples, times, strict=True)],
            method="simulator",
        ),
    }
    columns, facts, remarks = _memory(found, batch_sizes)
    return SweepResult(
        kind="job",
        job=first.job,
        setting=first.setting,
        clusters={"batch_size": [float(size) for size in batch_sizes]},
        estimates=estimates | columns,
        assumptions=first.answer.assumptions,
        remarks=remarks,
        facts=facts,
    )


def _memory(
    found: Sequence[_Point], batch_sizes: Sequence[int]
) -> tuple[dict[str, Column], BatchFactsJson, tuple[Remark, ...]]:
    """Columns of memory, whether each batch size fits, and remarks."""
    known = [one.memory.estimate for one in found if one.memory and one.memory.estimate]
    if len(known) < len(found):
        nothing: list[None] = [None] * len(found)
        reason = None if found[0].memory is None else found[0].memory.reason
        remarks = () if reason is None else (remark("memory_unknown", reason=reason),)
        return {}, {"fits": nothing, "margin_bytes": nothing}, remarks
    columns = {}
    for name in ("allocated", "reserved", "device_total"):
        column = _column([getattr(one, name) for one in known])
        if column is not None:
            columns[f"{name}_bytes"] = column
    facts: BatchFactsJson = {
        "fits": [one.fits for one in known],
        "margin_bytes": [one.margin_bytes for one in known],
        "capacity_bytes": known[0].capacity_bytes,
        "largest": [one.largest for one in known],
    }
    if known[0].device:  # of unlike devices, the one with least room may change with the batch size
        facts["device"] = [one.device for one in known]
        facts["device_capacity_bytes"] = [one.capacity_bytes for one in known]
        del facts["capacity_bytes"]
    return columns, facts, (_largest_that_fits(known, batch_sizes),)


def _column(numbers: Sequence[Bytes | None]) -> Column | None:
    known = [one for one in numbers if one is not None]
    if len(known) < len(numbers):
        return None
    ends = [
        (one.lower, one.upper) for one in known if one.lower is not None and one.upper is not None
    ]
    return Column(
        value=[one.value for one in known],
        interval=ends if len(ends) == len(known) else None,
        level=0.9 if len(ends) == len(known) else None,
        method="simulator",
    )


def _largest_that_fits(known: Sequence[MemoryEstimate], batch_sizes: Sequence[int]) -> Remark:
    fitting = [size for one, size in zip(known, batch_sizes, strict=True) if one.fits == "yes"]
    return remark(
        "largest_batch",
        batch_size=max(fitting, default=None),
        devices=tuple(dict.fromkeys(one.device for one in known if one.device)),
    )
