"""Predictions of held-out runs -> the checked runs whose errors answers state.

HeldOutPrediction, ... of TensorFlow runs  -> CheckedRun, ... of `driple.answers.checked_runs`
MeasuredRun, ... + Predictions            -> CheckedRun, ...
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np
import numpy.typing as npt

from driple.answers.checked_runs import CheckedRun
from driple.answers.job_kind import JobKind, job_kind
from driple.answers.like_cluster import ClusterKind
from driple.answers.op_mix import distance_of, kinds_of, shares_of_time
from driple.cluster.setting import Setting
from driple.runs.measured_run import MeasuredRun, family_of_job
from driple.runs.steps import StepSource
from driple.runs.validation.held_out import HeldOutPrediction, summarise
from driple.runs.validation.predictions import Predictions
from driple.simulate.calibration import ClusterErrors
from driple.simulate.prepared_job import PreparedJob
from driple.trace.provenance import TimeError
from scripts.fits.leave_one_out import Graphs
from scripts.fits.links import program_of

__all__ = [
    "checked_rows",
    "checked_runs",
    "cluster_errors",
    "kind_of_prepared",
    "with_distances",
    "without_repeats",
]

_SPLITS = {"family": "model", "size": "size", "device": "device"}


def checked_runs(predictions: Iterable[HeldOutPrediction], graphs: Graphs) -> list[CheckedRun]:
    """The TensorFlow runs as a user asks for them, with model or device held out.

    A ring that sends gradients only when all are computed (tf_cnn_benchmarks on one machine) counts
    with the answer that a user gets for it, which takes it for overlapped: that is an error of the
    answer too. Without these, no run tells of rings in half precision. Left out are runs whose ops
    a compiler fused, as no simulated answer is of those.

    Args:
        predictions: of runs.
        graphs: of their models.
    """
    mixes: dict[tuple[str, bool, int], tuple[float, ...]] = {}
    runs = []
    for prediction in predictions:
        run = prediction.run
        if prediction.held_out == "nothing" or run.compiled or prediction.answer_s is None:
            continue
        key = (run.job, run.half, run.batch_size)
        if key not in mixes:
            batched = graphs[run.job, run.half]
            mixes[key] = _mix_of(batched.job(run.batch_size, program_of(run)))
        runs.append(
            CheckedRun(
                kind=run.kind,
                held_out=prediction.held_out,
                run=MeasuredRun(framework="tensorflow", family=family_of_job(run.job)),
                devices=tuple(sorted(set(run.devices))),
                num_devices=run.num_devices,
                num_servers=run.num_servers,
                several_machines=len(run.devices) > run.per_machine,
                link=run.link,
                half=run.half,
                log_ratio=log(prediction.answer_s / run.step_s),
                mix=mixes[key],
            )
        )
    return runs


def checked_rows(
    rows: Sequence[MeasuredRun],
    predictions: Predictions,
    steps: StepSource,
    progress: Callable[[str], None] = lambda _: None,
    *,
    ends: Mapping[str, str] | None = None,
) -> list[CheckedRun]:
    """Rows of the benchmark that a fit without their family, size or device predicted.

    Args:
        rows: with measured times.
        predictions: by fits that had not seen them.
        steps: of the rows.
        progress: called with the job of each row.
        ends: by id of a row, whether it is of its family's `largest` or `smallest` size; rows that
            are not there are of neither.
    """
    kinds: dict[tuple[object, ...], JobKind] = {}
    clusters: dict[str, ClusterKind] = {}
    runs = []
    for row in sorted(rows, key=lambda row: repr(row.step_key)):
        progress(row.job)
        if row.step_key not in kinds:
            kinds = {row.step_key: kind_of_prepared(steps.prepared(row), compiled=row.compiled)}
        if row.setting not in clusters:
            clusters[row.setting] = ClusterKind.of(Setting.parse(row.setting))
        job, cluster = kinds[row.step_key], clusters[row.setting]
        for split, held_out in _SPLITS.items():
            predicted = predictions.of(row.id, split)
            if predicted is None:
                continue
            runs.append(
                CheckedRun(
                    kind=cluster.kind,
                    held_out=held_out,
                    run=MeasuredRun(
                        framework=job.framework,
                        task=row.task,
                        family=row.family,
                        compiled=job.compiled,
                        weight=row.weight,
                    ),
                    devices=(row.device,),
                    num_devices=row.num_devices,
                    num_servers=cluster.num_servers,
                    several_machines=cluster.several_machines,
                    link=cluster.link,
                    half=job.half,
                    log_ratio=log(predicted.seconds / row.step_s),
                    end=(ends or {}).get(row.id, ""),
                    mix=job.mix,
                )
            )
    return runs


def cluster_errors(predicted: Sequence[HeldOutPrediction], kind: str) -> ClusterErrors:
    """Errors on one kind of cluster, with the model held out, and with the device held out.

    Of rings those count whose gradients travel while later ones are computed, as in every
    simulated ring; tf_cnn_benchmarks sends them afterwards, and only serves to fit the links.
    """
    errors: dict[str, TimeError] = {}
    for held_out in ("model", "device"):
        some = [
            item
            for item in predicted
            if (item.run.kind, item.held_out) == (kind, held_out)
            and (item.run.overlapped or kind != "ring")
        ]
        summary = summarise(some)
        devices = (
            {item.name for item in some}
            if held_out == "device"
            else {name for item in some for name in item.run.devices}
        )
        errors[held_out] = TimeError(
            rows=summary.rows,
            median_pct=round(100 * summary.median, 1),
            p90_pct=round(100 * summary.p90, 1),
            devices=tuple(sorted(devices)),
        )
    known = errors["model"]
    return ClusterErrors(
        rows=known.rows,
        median_pct=known.median_pct,
        p90_pct=known.p90_pct,
        devices=known.devices,
        new_device=errors["device"],
    )


def kind_of_prepared(job: PreparedJob, *, compiled: bool) -> JobKind:
    """The kind of a stored job, whose graph may lack the groups that a compiler fuses."""
    return replace(job_kind(job.graph, job.cost), compiled=compiled)


def _mix_of(job: PreparedJob) -> tuple[float, ...]:
    """The mix of a job whose table is not that of its graph's signatures."""
    table, kinds = job.kinds.table, job.kinds
    of_row = np.zeros(len(table.moved), dtype=np.int64)
    of_row[kinds.kind_of] = kinds_of(job.graph.signatures)[job.graph.signature_of]
    runs = np.bincount(kinds.kind_of, weights=kinds.executions, minlength=len(table.moved))
    return shares_of_time(
        of_row, 2 * table.sides.prod(axis=1), table.moved, runs.astype(np.float64)
    )


def with_distances(runs: Sequence[CheckedRun]) -> list[CheckedRun]:
    """The runs with the distance of each job from the nearest that its fit had seen.

    Where a family was held out, from jobs of other families; where a size was, also from its own
    family's jobs that are not at the same end; where a device was, from jobs on other devices. Jobs
    of one task and one framework are compared.
    """
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, run in enumerate(runs):
        groups[run.task, run.framework, run.held_out].append(i)
    with_distance = list(runs)
    for (task, framework, held_out), places in groups.items():
        some = [runs[i] for i in places]
        # Of a size that was held out, sizes between the ends are known; they have no such runs.
        known = "model" if held_out == "size" else held_out
        others = [runs[i] for i in groups[task, framework, known]] or some
        for i, distance in zip(places, _nearest(some, others, held_out), strict=True):
            with_distance[i] = replace(runs[i], distance=distance)
    return with_distance


def _nearest(
    runs: Sequence[CheckedRun], others: Sequence[CheckedRun], held_out: str
) -> list[float]:
    """Distance of each run from the nearest of others that its fit had seen."""
    unseen: dict[object, int] = {}

    def group_of(run: CheckedRun) -> int:
        """Runs of one group are left out together."""
        names = {"model": run.family, "size": (run.family, run.end), "device": run.devices}
        return unseen.setdefault(names[held_out], len(unseen))

    group = np.array([group_of(run) for run in others])
    mixes: npt.NDArray[np.float64] = np.array([run.mix for run in others])
    known: dict[tuple[int, tuple[float, ...]], float] = {}
    distances = []
    distinct, first = np.unique(
        np.concatenate([group[:, None], np.round(mixes, 3)], axis=1), axis=0, return_index=True
    )
    for run in runs:
        key = (group_of(run), run.mix)
        if key not in known:
            seen = first[distinct[:, 0] != key[0]]
            known[key] = float(distance_of(run.mix, mixes[seen]).min()) if len(seen) else 1.0
        distances.append(known[key])
    return distances


def without_repeats(runs: Iterable[CheckedRun]) -> list[CheckedRun]:
    """Runs of one job on one kind of cluster as one: the mean of the logarithms, weights summed.

    Sources list identical machines many times over, and jobs of nearly the same ops.
    """
    groups: dict[CheckedRun, list[CheckedRun]] = defaultdict(list)
    for run in runs:
        mix = tuple(round(share, 2) for share in run.mix)
        same = replace(run.run, weight=1.0)
        groups[replace(run, run=same, log_ratio=0.0, distance=0.0, mix=mix)].append(run)
    merged = []
    for some in groups.values():
        weights = [run.weight for run in some]
        merged.append(
            replace(
                some[0],
                log_ratio=float(np.average([run.log_ratio for run in some], weights=weights)),
                run=replace(some[0].run, weight=float(sum(weights))),
            )
        )
    return merged
