"""Predict what scripts/throughput_campaign.py measured, and make docs/throughput.md of it.

    OMP_NUM_THREADS=1 python scripts/throughput_report.py

Takes runs and traces from --work (runs/throughput), keeps a copy of both in docs/throughput, and
with `--work docs/throughput` makes the report from that copy. Some minutes.
"""

from __future__ import annotations

import argparse
import shutil
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from shipped import DOCS
from throughput_campaign import (
    CASES,
    LOOKED_AT,
    SERVER_SHARE,
    WORKER_SHARES,
    Case,
    read_runs,
    trace_file,
)
from throughput_figures import draw_curves, draw_errors, draw_overhead

from driple.cli.show import progress_bar
from driple.errors import ConfigError
from driple.files import write_whole
from driple.throughput.baselines import cynthia, lin_queues, linear, phases_of
from driple.throughput.compiled import CompiledJob
from driple.throughput.jobtrace import JobTrace, read_job_trace
from driple.throughput.overhead import Overhead
from driple.throughput.scaling import (
    Cluster,
    alone_s,
    job_of_trace,
    simulate_workers,
    with_computing,
)
from driple.throughput.streams import stream_errors

Run = dict[str, Any]  # a line of runs.jsonl

OURS, WHOLE = "window 28 MB", "no window"
METHODS = (OURS, WHOLE, "Cynthia", "Cynthia, half T_C", "Lin et al.", "linear")
WINDOW_BYTES = 28e6
FEWEST = 2  # workers whose prediction is one: that of one worker is what was profiled


@dataclass(frozen=True)
class Point:
    """A case with a number of workers: examples/s, mean over repetitions."""

    case: Case
    workers: int
    measured: float
    spread: float  # between repetitions, standard deviation over mean
    repetitions: int
    cpu_ratios: tuple[float, ...]  # of each repetition: CPU seconds of a step over one worker's
    predicted: Mapping[str, float]
    steady: Mapping[str, float]  # predicted with the CPU seconds that steps cost in each run

    def error(self, method: str) -> float:
        """Share of the measured throughput."""
        return self.predicted[method] / self.measured - 1


def sound_runs(runs: list[Run]) -> dict[str, dict[int, dict[int, Run]]]:
    """The last run that was not refused, by case, repetition and workers."""
    found: dict[tuple[str, int], dict[int, Run]] = defaultdict(dict)
    for run in runs:
        if run["kind"] == "run" and not run["refused"]:
            found[run["case"], run["repetition"]][run["workers"]] = run
    by_case: dict[str, dict[int, dict[int, Run]]] = defaultdict(dict)
    for (case, repetition), numbers in found.items():
        if 1 in numbers:
            by_case[case][repetition] = numbers
    return by_case


def like(trace: JobTrace, platform: Mapping[str, Any], step_s: float) -> JobTrace:
    """The trace on what its links yield, its steps as long as those without tracing."""
    about = replace(trace.about, untraced_step_s=step_s)
    return replace(trace, bytes_per_s=platform["bytes_per_s"], about=about)


def predictions(job: CompiledJob, trace: JobTrace, workers: int) -> list[float]:
    """Examples/s by every method: ours of the job, the others' of the trace that it was made of."""
    cluster = Cluster(num_workers=workers, bytes_per_s=trace.bytes_per_s)
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
    sound: Mapping[int, Mapping[int, Run]],
    traces: Mapping[int, JobTrace],
    platform: Mapping[str, Any],
) -> list[Point]:
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
        Point(
            case=case,
            workers=workers,
            measured=float(np.mean(values)),
            spread=float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0,
            repetitions=len(values),
            cpu_ratios=tuple(ratios[workers]),
            predicted=_by_method(predicted[workers]),
            steady=_by_method(steady[workers]),
        )
        for workers, values in sorted(measured.items())
    ]


def _by_method(rows: list[list[float]]) -> dict[str, float]:
    return dict(zip(METHODS, np.mean(rows, axis=0).tolist(), strict=True))


def _cpu_of_a_step(run: Run) -> float:
    """What all workers' CPU seconds are in proportion to: those for a MB of parameters.

    Every step fetches all of them once, so it does not matter when a run began or ended.
    """
    used = sum(cores for name, cores in run["used_cores"].items() if name.startswith("w"))
    sent = sum(mb for name, mb in run["sent_mb_per_s"].items() if name.startswith("ps"))
    return float(used / sent)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown, figures to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(points: list[Point]) -> str:
    """Errors of each method over all points with several workers."""
    if not points:
        return "None measured yet."
    rows = []
    for method in METHODS:
        errors = np.abs([point.error(method) for point in points]) * 100
        rows.append([
            method,
            f"{errors.mean():.1f} %", f"{np.median(errors):.1f} %",
            f"{np.quantile(errors, 0.95):.1f} %", f"{errors.max():.1f} %",
            f"{(errors > 15).sum()} of {len(errors)}",
        ])  # fmt: skip
    return table(["method", "mean", "median", "95th percentile", "worst", "above 15 %"], rows)


def goal(points: list[Point]) -> str:
    """Whether the goal of 5 % on average and 15 % at most is reached, and the baselines beaten."""
    errors = np.abs([point.error(OURS) for point in points]) * 100
    others = {
        method: float(np.mean(np.abs([point.error(method) for point in points]))) * 100
        for method in METHODS[2:]
    }
    best = min(others, key=lambda method: others[method])
    reached = errors.mean() <= 5 and errors.max() <= 15 and errors.mean() < others[best]
    return (
        f"Goal (mean at most 5 %, none above 15 %, better than every baseline): "
        f"**{'reached' if reached else 'missed'}**, with {errors.mean():.1f} % on average and "
        f"{errors.max():.1f} % at worst; the best baseline, {best}, has {others[best]:.1f} %."
    )


def state(points: list[Point]) -> str:
    """How much of the campaign is measured."""
    found = {point.case.name: point.repetitions for point in points}
    fewest, most = min(found.values()), max(found.values())
    times = f"{most} times" if fewest == most else f"{fewest} to {most} times"
    return (
        f"Measured: {len(found)} of {len(CASES)} cases, {times} each; {len(points)} numbers of "
        "workers in all."
    )


def all_points(points: list[Point]) -> str:
    """Every point and method."""
    rows = [
        [
            point.case.name, str(point.workers),
            f"{point.measured:.1f} ± {100 * point.spread:.0f} %",
            *(f"{point.predicted[m]:.1f} ({100 * point.error(m):+.0f} %)" for m in METHODS),
            f"{np.mean(point.cpu_ratios):.2f}",
        ]
        for point in points
    ]  # fmt: skip
    return table(["case", "workers", "measured, examples/s", *METHODS, "CPU"], rows)


def table_1(traces: Mapping[Case, Mapping[int, JobTrace]], platforms: Mapping[str, Any]) -> str:
    """Errors of the ends of downlink streams."""
    rows = []
    for case, made in traces.items():
        trace = next(iter(made.values()))
        platform = platforms[case.rate]
        cells = []
        for window in (WINDOW_BYTES, 65_535):
            found = stream_errors(
                trace, Overhead(**platform["overhead"]), platform["bytes_per_s"], window
            )
            values = (found.average, found.median, found.p95, found.maximum)
            cells += [f"{100 * value:.1f} %" for value in values]
        rows.append([case.name, *cells])
    names = ["average", "median", "95 %", "maximum"]
    return table(["case", *names, *(f"{name}, 64 KiB" for name in names)], rows)


def platform_table(platforms: Mapping[str, Any]) -> str:
    """What links yield and receiving costs."""
    return table(
        ["link", "a connection gets", "receiving costs", "R^2"],
        [
            [
                rate,
                f"{found['bytes_per_s'] / 1e6:.2f} of {found['bits_per_s'] / 8e6:.2f} MB/s",
                f"{1e3 * found['overhead']['s']:.2f} ms + "
                f"{1e9 * found['overhead']['s_per_byte']:.2f} ms/MB",
                f"{found['r_squared']:.2f}",
            ]
            for rate, found in sorted(platforms.items())
        ],
    )


def machine(runs: list[dict[str, Any]], points: list[Point]) -> str:
    """How it was checked that the machine was no bottleneck."""
    hosts = [run for run in runs if run["kind"] == "host"]
    made = [run for run in runs if run["kind"] == "run"]
    kept = [run for run in made if not run["refused"]]
    host = hosts[-1]
    shares = ", ".join(
        f"{share} of a core for each of {most} workers" for most, share in WORKER_SHARES.items()
    )
    by_workers: dict[int, list[float]] = defaultdict(list)
    for point in points:
        by_workers[point.workers] += point.cpu_ratios
    means = ", ".join(
        f"{np.mean(ratios):.2f} ({count})"
        for count, ratios in sorted(by_workers.items())
        if count >= FEWEST
    )
    every = [ratio for point in points for ratio in point.cpu_ratios]
    return (
        f"{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}. Shares: {SERVER_SHARE} "
        f"core for the servers together, {shares}. {len(made)} runs, {len(made) - len(kept)} "
        f"refused. In those kept, {min(run['idle_cores'] for run in kept):.2f} cores or more were "
        f"idle on average, and {max(run['full_share'] for run in kept):.0%} of the windows of "
        f"0.25 s at most were full; other programs used "
        f"{max(run['other_cores'] for run in kept):.2f} cores at most, the hypervisor took "
        f"{max(run['steal_cores'] for run in kept):.2f}. A core beside a busy one did "
        f"{min(run['speed_beside_busy'] for run in hosts):.0%} of its work alone. CPU seconds of "
        f"a worker's step over those with one worker, mean by number of workers: {means}. Single "
        f"runs: {min(every):.2f} to {max(every):.2f}."
    )


def main() -> None:
    """Make the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("runs/throughput"))
    parser.add_argument("--docs", type=Path, default=DOCS, help="where to write")
    options = parser.parse_args()
    runs = read_runs(options.work)
    sound = sound_runs(runs)
    platforms = {run["rate"]: run for run in runs if run["kind"] == "platform"}
    traces = {
        case: {
            number: read_job_trace(trace_file(options.work, case, number))
            for number in sound[case.name]
        }
        for case in CASES
        if case.name in sound
    }
    if not traces:
        raise SystemExit(f"no sound run in {options.work}; run scripts/throughput_campaign.py")
    points: list[Point] = []
    with progress_bar() as bar, ProcessPoolExecutor() as pool:
        found = pool.map(
            points_of,
            traces,
            [sound[case.name] for case in traces],
            traces.values(),
            [platforms[case.rate] for case in traces],
        )
        for some in bar.track(found, total=len(traces), description="predicting"):
            points += some
    several = [point for point in points if point.workers >= FEWEST]
    folder = options.docs / "throughput"
    folder.mkdir(parents=True, exist_ok=True)
    draw_curves(points, METHODS, folder / "curves.png")
    draw_errors(several, METHODS, folder / "errors.png")
    draw_overhead(platforms, folder / "overhead.png")
    head = (DOCS / "throughput.head.md").read_text()
    parts = {
        "STATE": state(points),
        "GOAL": goal(several),
        "SUMMARY": summary(several),
        "UNSEEN": summary([point for point in several if point.case.name not in LOOKED_AT]),
        "STEADY": summary([replace(point, predicted=point.steady) for point in several]),
        "TWO": summary([point for point in several if point.case.servers > 1]),
        "POINTS": all_points(points),
        "STREAMS": table_1(traces, platforms),
        "PLATFORM": platform_table(platforms),
        "MACHINE": machine(runs, points),
    }
    for name, text in parts.items():
        head = head.replace(f"{{{name}}}", text)
    write_whole(options.docs / "throughput.md", head.encode(), error=ConfigError)
    keep(options.work, folder)
    print(summary(several), goal(several), sep="\n\n")


def keep(work: Path, folder: Path) -> None:
    """A copy of runs and traces, small enough for git."""
    if work.resolve() == folder.resolve():
        return
    shutil.copyfile(work / "runs.jsonl", folder / "runs.jsonl")
    shutil.copytree(work / "traces", folder / "traces", dirs_exist_ok=True)


if __name__ == "__main__":
    main()
