"""Predict what run.py measured, by every method: writes points.jsonl and streams.jsonl.

    OMP_NUM_THREADS=1 python -m scripts.studies.throughput.predict [--work runs/throughput]

Takes runs and traces of one worker from --work, and keeps a copy of the runs. Some minutes. The
shipped traces are in the history: datasets/README.md shows how to restore them, for
`--work scripts/studies/throughput`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driple.async_sgd.baselines import cynthia, lin_queues, linear, phases_of
from driple.async_sgd.compiled import CompiledJob
from driple.async_sgd.jobtrace import JobTrace, read_job_trace
from driple.async_sgd.overhead import Overhead
from driple.async_sgd.scaling import (
    ScaledCluster,
    alone_s,
    job_of_trace,
    simulate_workers,
    with_computing,
)
from driple.cli.progress import progress_bar
from driple.errors import ConfigError
from driple.files import atomic_write
from scripts.studies.kit.results import Row
from scripts.studies.throughput.run import CASES, Case, read_runs, trace_file
from scripts.studies.throughput.streams import stream_errors

HOME = Path(__file__).parent
OURS, WHOLE = "window 28 MB", "no window"
METHODS = (OURS, WHOLE, "Cynthia", "Cynthia, half T_C", "Lin et al.", "linear")
WINDOW_BYTES, HTTP_2_WINDOW_BYTES = 28e6, 65_535


def sound_runs(runs: list[Row]) -> dict[str, dict[int, dict[int, Row]]]:
    """The last run that was not refused, by case, repetition and workers."""
    last_runs: dict[tuple[str, int], dict[int, Row]] = defaultdict(dict)
    for run in runs:
        if run["kind"] == "run" and not run["refused"]:
            last_runs[run["case"], run["repetition"]][run["workers"]] = run
    by_case: dict[str, dict[int, dict[int, Row]]] = defaultdict(dict)
    for (case, repetition), numbers in last_runs.items():
        if 1 in numbers:
            by_case[case][repetition] = numbers
    return by_case


def like(trace: JobTrace, platform: Mapping[str, Any], step_s: float) -> JobTrace:
    """The trace on what its links yield, its steps as long as those without tracing."""
    about = replace(trace.about, untraced_step_s=step_s)
    return replace(trace, bytes_per_s=platform["bytes_per_s"], about=about)


def predictions(job: CompiledJob, trace: JobTrace, workers: int) -> list[float]:
    """Examples/s by every method: ours of the job, the others' of the trace that it was made of."""
    cluster = ScaledCluster(num_workers=workers, bytes_per_s=trace.bytes_per_s)
    phases = phases_of(trace, trace.bytes_per_s)
    return [
        *(
            simulate_workers(job, replace(cluster, window_bytes=window)).examples_per_s
            for window in (WINDOW_BYTES, None)
        ),
        cynthia(phases, workers),
        cynthia(phases, workers, halved=True),
        lin_queues(phases, workers),
        linear(phases, workers),
    ]


def points_of(
    case: Case,
    sound: Mapping[int, Mapping[int, Row]],
    traces: Mapping[int, JobTrace],
    platform: Mapping[str, Any],
) -> list[Row]:
    """Measured and predicted, for each number of workers of a case.

    Args:
        case: the case.
        sound: its runs, by repetition and workers.
        traces: its own, by repetition.
        platform: its link.
    """
    overhead = Overhead(**platform["overhead"])
    measured, ratios = defaultdict(list), defaultdict(list)
    predicted, steady = defaultdict(list), defaultdict(list)
    for repetition, numbers in sound.items():
        trace = traces[repetition]
        own = like(trace, platform, 1 / numbers[1]["steps_per_s"])
        job = job_of_trace(own, overhead)
        for workers, run in numbers.items():
            ratio = _cpu_of_a_step(run) / _cpu_of_a_step(numbers[1])
            slowed = with_computing(job, ratio)
            same = like(trace, platform, alone_s(slowed, own.bytes_per_s))
            measured[workers].append(run["steps_per_s"] * trace.batch_size)
            ratios[workers].append(ratio)
            predicted[workers].append(predictions(job, own, workers))
            steady[workers].append(predictions(slowed, same, workers))
    return [
        {
            "case": case.name,
            "workers": workers,
            "measured": float(np.mean(values)),
            "spread": float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0,
            "repetitions": len(values),
            "cpu_ratios": ratios[workers],
            "predicted": _by_method(predicted[workers]),
            "steady": _by_method(steady[workers]),
        }
        for workers, values in sorted(measured.items())
    ]


def _by_method(rows: list[list[float]]) -> dict[str, float]:
    return dict(zip(METHODS, np.mean(rows, axis=0).tolist(), strict=True))


def _cpu_of_a_step(run: Row) -> float:
    """CPU seconds of all workers for a MB of parameters.

    Every step fetches all of them once, so it does not matter when a run began or ended.
    """
    used = sum(cores for name, cores in run["used_cores"].items() if name.startswith("w"))
    sent = sum(mb for name, mb in run["sent_mb_per_s"].items() if name.startswith("ps"))
    return float(used / sent)


def streams_of(case: Case, trace: JobTrace, platform: Mapping[str, Any]) -> Row:
    """Errors of the ends of downlink streams: mean, median, 95th percentile and maximum."""
    row: Row = {"case": case.name}
    for window in (WINDOW_BYTES, HTTP_2_WINDOW_BYTES):
        errors = stream_errors(
            trace, Overhead(**platform["overhead"]), platform["bytes_per_s"], window
        )
        row[str(int(window))] = [errors.average, errors.median, errors.p95, errors.maximum]
    return row


def main() -> None:
    """Predict every sound case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("runs/throughput"))
    options = parser.parse_args()
    runs = read_runs(options.work)
    sound = sound_runs(runs)
    platforms = {run["rate"]: run for run in runs if run["kind"] == "platform"}
    cases = [case for case in CASES if case.name in sound]
    if not cases:
        raise SystemExit(f"no sound run in {options.work}; run scripts.studies.throughput.run")
    traces = [
        {
            number: read_job_trace(trace_file(options.work, case, number))
            for number in sound[case.name]
        }
        for case in cases
    ]
    links = [platforms[case.rate] for case in cases]
    points: list[Row] = []
    with progress_bar() as bar, ProcessPoolExecutor() as pool:
        results = pool.map(points_of, cases, [sound[case.name] for case in cases], traces, links)
        for some in bar.track(results, total=len(cases), description="predicting"):
            points += some
    streams = [
        streams_of(case, next(iter(made.values())), link)
        for case, made, link in zip(cases, traces, links, strict=True)
    ]
    for name, rows in (("points.jsonl", points), ("streams.jsonl", streams)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        atomic_write(HOME / name, text.encode(), error=ConfigError)
    if options.work.resolve() != HOME:
        shutil.copyfile(options.work / "runs.jsonl", HOME / "runs.jsonl")


if __name__ == "__main__":
    main()
