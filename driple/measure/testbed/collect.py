"""Build a data set from the folders of a campaign: labels, graphs, repeatability.

run.json + samples.npz -> traces -> labels of each worker -> mean over the setting's own workers
repeats of a workload  -> median of each target           -> Example
"""

from __future__ import annotations

import datetime
import gzip
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.errors import MeasureError
from driple.graph import graph_from_graphdef_bytes
from driple.jobs import Workload
from driple.jobs.catalogue import model_of
from driple.measure.testbed.campaign import CampaignRecord, read_run
from driple.measure.testbed.cluster import RunRecord
from driple.measure.testbed.cpu_quota import labelled_workers, worker_shares
from driple.trace import Label, Trace, label_trace, targets_of
from driple.trace.provenance import Dates, Provenance
from driple.trace.repeatability import repeatability
from driple.trace.targets import FIGURES, RESOURCES, UNITS, Targets

__all__ = [
    "GRID_S",
    "collect_dataset",
    "labels_of_run",
    "measured_iteration_time_s",
    "targets_of_run",
    "traces_of_run",
    "with_counts",
]

FloatArray = npt.NDArray[np.float64]

# Sampling period of the traces that are labelled. Samples are faster; a shorter grid splits one
# burst into several (docs/decisions/0004-label-grid.md).
GRID_S = 0.05


def traces_of_run(
    record: RunRecord,
    worker: str,
    *,
    share: float,
    write_bytes_per_s: float,
    grid_s: float = GRID_S,
) -> dict[str, Trace]:
    """The traces of the four resources of one worker, from its first to its last iteration.

    Args:
        record: the run.
        worker: role, such as `w0`.
        share: cores that the worker may use; its utilisation is a share of this.
        write_bytes_per_s: memory write bandwidth of one core (`driple.measure.counters.memory`).
        grid_s: sampling period of the traces.

    Raises:
        MeasureError: the run has no such worker.
        TraceError: the run is too short.
    """
    scales = {
        "device_util": 100 * record.units["device_util"] / share,
        "device_mem_util": 100 * record.units["device_mem_util"] / write_bytes_per_s,
        "net_tx": record.units["net_tx"] / 1e6,
        "net_rx": record.units["net_rx"] / 1e6,
    }
    times = record.step_times_ns.get(worker)
    if times is None:
        raise MeasureError(
            f"a run of {record.workload} has no worker {worker}; it was measured on another setting"
        )
    return {
        resource: record.samples.to_trace(
            f"{worker}.{resource}",
            resource=resource,
            unit=UNITS[resource],
            scale=scales[resource],
            grid_s=grid_s,
            start_ns=times[0],
            end_ns=times[-1],
        )
        for resource in RESOURCES
    }


def labels_of_run(
    record: RunRecord,
    *,
    shares: Mapping[str, float],
    write_bytes_per_s: float,
    grid_s: float = GRID_S,
) -> dict[str, dict[str, Label]]:
    """Labels by worker and resource, of the workers that `shares` names."""
    labels = {}
    for worker, share in shares.items():
        traces = traces_of_run(
            record, worker, share=share, write_bytes_per_s=write_bytes_per_s, grid_s=grid_s
        )
        step_s = measured_iteration_time_s(record, [worker])
        labels[worker] = {name: label_trace(trace, step_s) for name, trace in traces.items()}
    return labels


def targets_of_run(labels: Mapping[str, Mapping[str, Label]]) -> FloatArray:
    """Shape [12], mean over the workers of `labels_of_run`."""
    rows = [targets_of(by_resource).flat for by_resource in labels.values()]
    mean: FloatArray = np.mean(rows, axis=0)
    return mean


def measured_iteration_time_s(record: RunRecord, workers: Iterable[str]) -> float:
    """Mean seconds per iteration over these workers of a run."""
    means = [np.diff(record.step_times_ns[name]).mean() / 1e9 for name in workers]
    return float(np.mean(means))


def collect_dataset(
    folder: Path, *, name: str, about: CampaignRecord, grid_s: float = GRID_S
) -> Dataset:
    """All finished runs of a campaign as a data set.

    Args:
        folder: the campaign's folder.
        name: name of the data set.
        about: content of campaign.json.
        grid_s: sampling period of the traces that are labelled.

    Raises:
        MeasureError: the folder holds no run, or the campaign no memory bandwidth.
    """
    runs: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.r[0-9]*")):
        runs[path.name.rsplit(".r", 1)[0]].append(path)
    if not runs:
        raise MeasureError(f"{folder} holds no finished run; run driple measure first")
    setting = Setting.parse(about.setting)
    shares = worker_shares(setting, about.plan.share)
    own = {name: shares[name] for name in labelled_workers(setting)}
    write_bytes_per_s = about.host.memory_write_bytes_per_s
    if write_bytes_per_s is None:
        raise MeasureError(f"{folder}: campaign.json has no host.memory_write_bytes_per_s")
    examples, rows, times_s = [], {}, {}
    for paths in runs.values():
        example, of_runs, times = _example(paths, setting.name, own, write_bytes_per_s, grid_s)
        details = {**example.details, "campaign": about.created}
        examples.append(replace(example, details=details))
        rows[example.workload], times_s[example.workload] = of_runs, times
    facts = Provenance(
        plan=about.plan,
        host=about.host,
        created=about.created,
        versions=about.versions,
        label_source="measured",
        licence="Apache-2.0",
        collected=datetime.datetime.now(datetime.UTC).date().isoformat(),
        label_grid_s=grid_s,
        repeatability=repeatability(rows, times_s),
    )
    facts = with_counts(facts, examples)
    return Dataset(name=name, setting=about.setting, examples=tuple(examples), about=facts)


def with_counts(about: Provenance, examples: Sequence[Example]) -> Provenance:
    """The provenance with the number of runs behind the labels, and their dates if known."""
    known = [item.details for item in examples if "measured" in item.details]
    dates = None
    if known:
        first = min(str(details["measured"]) for details in known)
        last = max(str(details.get("measured_last", details["measured"])) for details in known)
        dates = Dates(first=first, last=last)
    num_runs = sum(int(item.details.get("repeats", 1)) for item in examples)
    return replace(about, num_runs=num_runs, measured=dates)


def _example(
    paths: list[Path],
    setting: str,
    shares: Mapping[str, float],
    write_bytes_per_s: float,
    grid_s: float,
) -> tuple[Example, FloatArray, FloatArray]:
    """One workload from its repeats; targets [repeats, 12] and seconds [repeats] of each."""
    rows, times, runs = [], [], []
    for path in paths:
        record, run = read_run(path)
        labels = labels_of_run(
            record, shares=shares, write_bytes_per_s=write_bytes_per_s, grid_s=grid_s
        )
        rows.append(targets_of_run(labels))
        times.append(measured_iteration_time_s(record, shares))
        runs.append((record, run, labels))
    record, _, labels = runs[0]
    dates = [run.measured for _, run, _ in runs]
    job = Workload.parse(record.workload)
    targets = Targets(np.median(rows, axis=0).reshape(len(RESOURCES), len(FIGURES)))
    example = Example(
        workload=job.name,
        family=model_of(job).family,
        setting=setting,
        graph=graph_from_graphdef_bytes(gzip.decompress((paths[0] / "graph.pb.gz").read_bytes())),
        targets=targets,
        iteration_time_s=statistics.median(times),
        label_source="measured",
        details={
            "model": job.model,
            "data_set": job.data_set,
            "batch_size": job.batch_size,
            "optimizer": job.optimizer,
            "sync": job.sync,
            "precision": job.precision,
            "data_format": job.data_format,
            "width": job.width,
            "parameters": record.num_parameters,
            "repeats": len(paths),
            "iterations": min(len(record.step_times_ns[name]) - 1 for name in shares),
            "disturbed": any(item[1].disturbed for item in runs),
            "other_cores": max(item[0].other_cores for item in runs),
            "steal_cores": max(item[0].steal_cores for item in runs),
            "measured": min(dates),
            "measured_last": max(dates),
            **_patterns(labels),
            **_idle_amounts(labels),
        },
    )
    return example, np.array(rows), np.array(times)


def _patterns(labels: Mapping[str, Mapping[str, Label]]) -> dict[str, str]:
    """The first worker's pattern of each resource."""
    first = next(iter(labels.values()))
    return {f"pattern_{resource}": label.pattern for resource, label in first.items()}


def _idle_amounts(labels: Mapping[str, Mapping[str, Label]]) -> dict[str, float]:
    """Mean over the workers, in the resource's unit; recorded, never a target."""
    return {
        f"idle_amount_{resource}": float(
            np.mean([by_resource[resource].idle_amount for by_resource in labels.values()])
        )
        for resource in RESOURCES
    }
