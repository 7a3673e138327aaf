"""Measure asynchronous workers on this machine: the runs behind page.md.

    sudo OMP_NUM_THREADS=1 python -m scripts.studies.throughput.run

The machine must be quiet for some two and a half hours. Stop it at any time, or give it
`--hours`; the same command goes on with what is missing. First every case is measured once, all its
numbers of workers in a row, then every case again. `--cases vgg11.*100M --repetitions 1` measures
some. Needs root (network namespaces, control groups), iproute2, a C compiler and TensorFlow.

A line of runs.jsonl for each run (or platform), a trace in traces/ for each case and repetition.
These are one set of processes: all workers build their graphs once, then one trains (traced, then
timed), then two, and so on; those who have no turn stand still. Then all of it again: the machine
drifts. Workers begin at random moments within a step.

That the machine is no bottleneck is checked in each run: shares sum up to less than its cores; in
windows of 0.25 s something of it was idle; other programs and the hypervisor took little. A run
that fails the check is repeated twice at most, then kept as refused and left out of the report.
A filler of idle priority fills what is left at all times: cores that share a unit then are equally
slow with few workers and with many, and a hypervisor has no sleeping core to give away.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driple.async_sgd.jobtrace import write_job_trace
from driple.async_sgd.origin import TraceOrigin
from driple.cli.progress import progress_bar
from driple.codec import to_dict
from driple.errors import DripleError
from driple.jobs.workload import Workload
from driple.measure.counters.machine import host_facts, wait_until_quiet
from driple.measure.testbed.async_cluster import Turn, TurnCluster, TurnJob
from driple.measure.testbed.filler_load import FillerLoad
from driple.measure.testbed.link_benchmark import measure_platform
from driple.measure.testbed.profile import read_steps
from driple.units import parse_rate

__all__ = ["CASES", "LOOKED_AT", "SERVER_SHARE", "WORKER_SHARES", "Case", "read_runs", "trace_file"]

# The server has a whole core: what it does for one worker must not slow another's.
SERVER_SHARE = 1.0
WORKER_SHARES = {4: 0.2, 8: 0.1}  # by the most workers that train at a time
PARTS = 2  # of a run, each begun at other moments: on fair links workers keep their distance
SKIP_S = 2.0  # of each part, left out
TRIES = 3
_PROBE_S = 1.0  # of a core's speed
MOST_FULL, MOST_OTHER, MOST_STEAL = 0.05, 0.2, 0.05
RATES = ("100M", "400M")
FEW, MANY = (1, 2, 3, 4), (1, 2, 3, 4, 6, 8)
MODELS = (
    ("alexnet-x0.25/imagenet64", (8, 16), FEW),
    ("vgg11-x0.125/cifar10", (32, 64), FEW),
    ("googlenet-x0.25/cifar10", (4, 8), FEW),
    ("resnet20/cifar10", (4, 8), FEW),
    ("lenet-x0.5/mnist", (32, 64), MANY),
    ("overfeat-x0.0625/imagenet64", (8, 16), MANY),
)
# Their variables spread over two servers; those of the others alternate between large and small.
TWO_SERVERS = (
    ("resnet20/cifar10", 4),
    ("resnet50-x0.125/imagenet64", 8),
    ("inception3-x0.125/cifar10", 16),
)

# By which ports, scaling, lengths and orders were chosen (decision 0013): no test of the model.
LOOKED_AT = (
    "vgg11-x0.125-cifar10-b32-100M-ps1",
    "resnet20-cifar10-b4-100M-ps1",
    "resnet20-cifar10-b4-100M-ps2",
    "lenet-x0.5-mnist-b32-100M-ps1",
    "lenet-x0.5-mnist-b64-100M-ps1",
    "overfeat-x0.0625-imagenet64-b8-100M-ps1",
)


@dataclass(frozen=True)
class Case:
    """One job on one network with its numbers of workers."""

    workload: str
    rate: str
    servers: int
    workers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of its lines and of its trace."""
        model, data, batch, *_ = self.workload.split("/")
        return f"{model}-{data}-{batch}-{self.rate}-ps{self.servers}"


@dataclass(frozen=True)
class Run:
    """So many workers of a case, for the so-manieth time."""

    case: str
    repetition: int
    workers: int


class Tried(NamedTuple):
    """A turn, why it is not sound, and which try it was."""

    turn: Turn
    refused: list[str]
    attempt: int


def _cases() -> Iterator[Case]:
    for model, batches, workers in MODELS:
        for batch in batches:
            for rate in RATES:
                yield Case(f"{model}/b{batch}/sgd/async", rate, 1, workers)
    for model, batch in TWO_SERVERS:
        yield Case(f"{model}/b{batch}/sgd/async", RATES[0], 2, FEW)


CASES = tuple(_cases())


def read_runs(work: Path) -> list[dict[str, Any]]:
    """Lines of runs.jsonl; one that a kill cut short is left out."""
    file = work / "runs.jsonl"
    runs = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return runs


def trace_file(work: Path, case: Case, repetition: int) -> Path:
    """File of the trace of a case; each repetition has its own."""
    return work / "traces" / f"{case.name}-{repetition}.npz"


def _append(work: Path, line: dict[str, Any]) -> None:
    """One line more, on the disk when this returns."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    file = work / "runs.jsonl"
    cut = file.exists() and file.read_bytes()[-1:] not in {b"", b"\n"}
    with file.open("a") as out:
        out.write(("\n" if cut else "") + json.dumps(line | {"measured": now}) + "\n")
        out.flush()
        os.fsync(out.fileno())


def _done(runs: list[dict[str, Any]], case: Case, repetition: int) -> bool:
    numbers = {
        run["workers"]
        for run in runs
        if run["kind"] == "run" and (run["case"], run["repetition"]) == (case.name, repetition)
    }
    return set(case.workers) <= numbers


def _why_refused(turn: Turn) -> list[str]:
    """Reasons to refuse a run; none if it is sound."""
    return [
        text
        for bad, text in (
            (turn.full_share > MOST_FULL, f"machine full in {turn.full_share:.0%} of windows"),
            (turn.other_cores > MOST_OTHER, f"others used {turn.other_cores:.2f} cores"),
            (turn.steal_cores > MOST_STEAL, f"hypervisor took {turn.steal_cores:.2f} cores"),
        )
        if bad
    ]


def _measure_case(
    cluster: TurnCluster, case: Case, repetition: int, options: argparse.Namespace
) -> None:
    """All numbers of workers of a case, and the trace of one."""
    share = WORKER_SHARES[max(case.workers)]
    job = TurnJob(
        workload=Workload.parse(case.workload),
        num_servers=case.servers,
        num_workers=max(case.workers),
        bits_per_s=parse_rate("rate", case.rate),
        server_share=SERVER_SHARE / case.servers,
        worker_share=share,
    )
    moments = np.random.default_rng(zlib.crc32(f"{case.name} {repetition}".encode()))
    tried: dict[int, list[Tried]] = {workers: [] for workers in case.workers}
    try:
        cluster.open(job)
        with tempfile.TemporaryDirectory(prefix="driple-traced-") as name:
            cluster.trace(Path(name), options.traced)
            step_s = 0.0
            for workers in case.workers * PARTS:
                starts = [0.0, *moments.uniform(0, step_s, workers - 1).tolist()]
                tried[workers].append(_sound_turn(cluster, starts, options))
                step_s = 1 / float(np.mean([one.turn.steps_per_s(SKIP_S) for one in tried[1]]))
            trace = read_steps(
                Path(name),
                batch_size=job.workload.batch_size,
                bytes_per_s=job.bits_per_s / 8,
                step_s=step_s,
                about=TraceOrigin(
                    worker_share=share, others={"case": case.name, "repetition": repetition}
                ),
            )
        write_job_trace(trace, trace_file(options.work, case, repetition))
    finally:
        cluster.close_job()
    for workers, parts in tried.items():
        _append(options.work, _line(Run(case.name, repetition, workers), parts))


def _sound_turn(cluster: TurnCluster, starts: list[float], options: argparse.Namespace) -> Tried:
    """The first sound one; the last if there is none."""
    for attempt in range(1, TRIES + 1):
        turn = cluster.turn(starts, options.seconds)
        refused = [] if options.anyway else _why_refused(turn)
        if not refused or attempt == TRIES:
            break
        wait_until_quiet(MOST_OTHER, 60)
    return Tried(turn, refused, attempt)


def _line(run: Run, parts: list[Tried]) -> dict[str, Any]:
    """The line of one number of workers."""
    turns = [one.turn for one in parts]
    per_s = [turn.steps_per_s(SKIP_S) for turn in turns]
    return {
        "kind": "run",
        **asdict(run),
        "steps_per_s": float(np.mean(per_s)),
        "parts": [round(each, 4) for each in per_s],
        "used_cores": _means([turn.used_cores for turn in turns]),
        "sent_mb_per_s": _means([
            {name: sent / 1e6 for name, (sent, _) in turn.bytes_per_s.items()} for turn in turns
        ]),
        "idle_cores": round(min(turn.idle_cores for turn in turns), 3),
        "full_share": round(max(turn.full_share for turn in turns), 3),
        "other_cores": round(max(turn.other_cores for turn in turns), 3),
        "steal_cores": round(max(turn.steal_cores for turn in turns), 3),
        "attempt": max(one.attempt for one in parts),
        "refused": sorted({reason for one in parts for reason in one.refused}),
    }  # fmt: skip


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}


def speed_beside_filler() -> float:
    """Speed of a core while the other cores are busy, over its speed alone."""
    matrix = np.ones((192, 192), dtype=np.float32) / 192
    before = os.sched_getaffinity(0)
    first = min(before)

    def products_per_s() -> float:
        count, begin = 0, time.thread_time()
        while time.thread_time() - begin < _PROBE_S:
            for _ in range(50):
                matrix @ matrix
            count += 50
        return count / (time.thread_time() - begin)

    try:
        os.sched_setaffinity(0, {first})
        alone = products_per_s()
        with FillerLoad(before - {first}):
            beside = products_per_s()
    finally:
        os.sched_setaffinity(0, before)
    return beside / alone


def measure(options: argparse.Namespace) -> None:
    """Measure what is not there yet."""
    (options.work / "traces").mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    runs = read_runs(options.work)
    todo = [
        (case, number)
        for number in range(options.repetitions)
        for case in cases
        if not _done(runs, case, number)
    ]
    if not todo:
        print(f"all of {len(cases)} cases are measured {options.repetitions} times")
        return
    if not options.anyway:
        wait_until_quiet(MOST_OTHER, 600)
    speed = speed_beside_filler()
    facts = {"speed_beside_busy": speed, "seconds": options.seconds, "traced": options.traced}
    _append(options.work, {"kind": "host", **to_dict(host_facts()), **facts})
    give_up = time.monotonic() + 3600 * options.hours
    filler = FillerLoad(set() if options.anyway else None)
    most_servers = max(case.servers for case, _ in todo)
    most_workers = max(max(case.workers) for case, _ in todo)
    with (
        progress_bar() as bar,
        filler,
        TurnCluster(most_servers, most_workers, filler=filler) as cluster,
    ):
        known = {run["rate"] for run in runs if run["kind"] == "platform"}
        for rate in sorted({case.rate for case, _ in todo} - known):
            platform = measure_platform(cluster, parse_rate("rate", rate), WORKER_SHARES[4])
            _append(options.work, {"kind": "platform", "rate": rate, **to_dict(platform.record())})
        task = bar.add_task("measuring", total=len(todo))
        for case, number in todo:
            if time.monotonic() > give_up:
                break
            bar.update(task, description=f"{case.name} {number + 1}")
            try:
                _measure_case(cluster, case, number, options)
            except DripleError as error:
                bar.console.print(f"{case.name}: {error}", highlight=False)
                _append(options.work, {"kind": "failed", **asdict(case), "why": str(error)})
            bar.advance(task)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("runs/throughput"), help="folder to fill")
    parser.add_argument("--cases", default="", help="those whose name this pattern finds")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each part of a run")
    parser.add_argument("--traced", type=int, default=20, help="steps of each trace")
    parser.add_argument("--hours", type=float, default=24.0, help="begin no case after so many")
    parser.add_argument(
        "--anyway", action="store_true", help="keep runs of a busy machine, to try the script"
    )
    parser.add_argument("--list", action="store_true", help="print the cases")
    options = parser.parse_args()
    if options.list:
        for case in CASES:
            print(case.name, *case.workers)
        return
    measure(options)


if __name__ == "__main__":
    main()
