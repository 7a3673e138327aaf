"""Checks of `driple record` on this machine: steps by period, kills, and the test bed's numbers.

    python -m scripts.checks.records periods --out runs/records
    python -m scripts.checks.records kills --out runs/records
    python -m scripts.checks.records numbers --out runs/records      (root, iproute2)

periods  ten DDP programs (`record_jobs`), recorded; the period of the counters against the marks
kills    50 recorders killed with SIGKILL at random; what each record lost
numbers  DDP programs in two network namespaces with a limited rate and CPU quotas: the twelve
         numbers of the records, merged, against those of the test bed's own sampler on that run

Results, with their date: scripts/checks/records.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driple.errors import TraceError
from driple.measure.counters.cgroups import CpuShare
from driple.measure.record.steps import steps_of
from driple.measure.record.store import HostRecord, read_record
from driple.measure.record.use import LABEL_GRID_S, run_use
from driple.measure.testbed.cluster import RunRecord
from driple.measure.testbed.collect import labels_of_run, targets_of_run
from driple.measure.testbed.network import ClusterNetwork
from driple.measure.testbed.processes import Sampling
from driple.trace.repeatability import smape_shares
from driple.trace.targets import RESOURCES, TARGET_NAMES
from scripts.checks.record_jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]
_NUM_KILLS = 50
_SHARE, _BITS_PER_S = 0.8, 400e6
_SAMPLE_S = 0.005


def _record_words(folder: Path, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "driple", "record", "-o", str(folder), "--", *command]


def _job_words(name: str, seconds: float, *more: str) -> list[str]:
    words = [sys.executable, "-m", "scripts.checks.record_jobs", name, "--seconds", f"{seconds:g}"]
    return [*words, *more]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def check_periods(out: Path, seconds: float) -> list[dict[str, object]]:
    """Steps by the period and by marks, over the same seconds, of ten programs."""
    rows = []
    for number, name in enumerate(JOBS):
        folder = out / "periods" / name
        if not (folder / "samples.bin").exists():
            address = ("--address", f"127.0.0.1:{29610 + number}")
            command = _record_words(folder, _job_words(name, seconds, *address))
            # Gloo aborts now and then when a rank leaves first; the record is whole.
            subprocess.run(command, check=False, env=_environment(), cwd=ROOT)
        record = read_record(folder)
        marked = steps_of(record)
        try:
            period = steps_of(record, by_period=True)
        except TraceError:  # no period stands out: the recorder says so and gives no step
            rows.append({"job": name, "marked_ms": 1000 * marked.step_s, "period_ms": None})
            continue
        same_s = _marked_within(record, period.start_ns, period.end_ns)
        end = record.about.end
        rows.append(
            {
                "job": name,
                "marked_ms": 1000 * same_s,
                "spread_pct": 100 * (marked.high_s - marked.low_s) / marked.step_s,
                "period_ms": 1000 * period.step_s,
                "off_pct": 100 * (period.step_s / same_s - 1),
                "steps": period.num_steps,
                "sampler_pct": 100 * end.sampler_cpu_s / end.seconds if end else None,
            }
        )
    return rows


def _marked_within(record: HostRecord, start_ns: int, end_ns: int) -> float:
    """Mean seconds of the marked steps between two times, without pauses."""
    means = []
    for process in record.marks:
        times = process.times_ns[(process.times_ns >= start_ns) & (process.times_ns <= end_ns)]
        steps = np.diff(times) / 1e9
        means.append(steps[steps <= 5 * np.median(steps)].mean())
    return float(np.mean(means))


def check_kills(out: Path, seed: int) -> list[dict[str, object]]:
    """What 50 killed recorders lost: seconds from the last sample to the kill, and cut bytes."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    rows: list[dict[str, object]] = []
    shutil.rmtree(out / "kills", ignore_errors=True)
    for number in range(_NUM_KILLS):
        folder = out / "kills" / str(number)
        command = [sys.executable, "-c", "import driple, time\n"
                   "for _ in range(600): time.sleep(0.01); driple.mark_step()"]  # fmt: skip
        recorder = subprocess.Popen(
            _record_words(folder, command), env=_environment(), cwd=ROOT, stderr=subprocess.DEVNULL
        )
        while not (folder / "samples.bin").exists():
            time.sleep(0.01)
        time.sleep(draw.uniform(1.5, 4.5))
        recorder.kill()
        killed_ns = time.monotonic_ns()
        recorder.wait()
        record = read_record(folder)
        rows.append(
            {
                "lost_s": (killed_ns - int(record.samples.before_ns[-1])) / 1e9,
                "blocks": len(record.clock_ns),
                "cut_bytes": record.unread_bytes,
                "marks": len(record.marks[0].times_ns),
            }
        )
    return rows


def check_numbers(out: Path, names: Sequence[str], seconds: float) -> list[dict[str, object]]:
    """The twelve numbers of records and of the test bed's sampler, of the same runs."""
    rows = []
    for name in names:
        with ClusterNetwork(["w0", "w1"], _BITS_PER_S) as network:
            shares = {role: CpuShare(f"rec_{role}") for role in network.roles}
            try:
                rows.append(_numbers_of(out / "numbers" / name, name, seconds, network, shares))
            finally:
                for share in shares.values():
                    share.remove()
    return rows


def _numbers_of(
    out: Path,
    name: str,
    seconds: float,
    network: ClusterNetwork,
    shares: dict[str, CpuShare],
) -> dict[str, object]:
    """One run: each worker in its namespace and control group, with a recorder of its own."""
    shutil.rmtree(out, ignore_errors=True)
    address = network.address("w0", 29500)
    before = set(Path("/dev/shm").glob("driple-record-*"))  # noqa: S108  # pages of recorders
    recorders, pages = [], {}
    for rank, role in enumerate(network.roles):
        shares[role].limit(_SHARE)
        join = shares[role].usage_path.parent  # the recorder joins the group, the job inherits it
        words = _job_words(name, seconds, "--rank", str(rank), "--address", address)
        command = [*network.command_prefix(role), *_record_words(out / role, words)]
        groups = {join, *(folder for folder in shares[role]._folders)}
        script = "".join(f"echo $$ > {group}/cgroup.procs; " for group in sorted(groups))
        recorders.append(
            subprocess.Popen(["sh", "-c", f'{script} exec "$@"', "sh", *command],
                             env=_environment() | {"GLOO_SOCKET_IFNAME": "eth0"}, cwd=ROOT)
        )  # fmt: skip
        while not (fresh := set(Path("/dev/shm").glob("driple-record-*")) - before):  # noqa: S108
            time.sleep(0.02)
        pages[role] = fresh.pop()
        before.add(pages[role])
    sources = []
    for role in network.roles:
        paths = network.counter_paths(role)
        sources.append(f"{role}.device_util={shares[role].usage_path}")
        sources.append(f"{role}.device_mem_util=mmap:{pages[role]}")
        sources.extend(f"{role}.{resource}={path}" for resource, path in paths.items())
    with tempfile.TemporaryDirectory() as folder:
        with Sampling(sources, _SAMPLE_S, Path(folder)) as bed:
            for recorder in recorders:
                recorder.wait()
        samples = bed.samples()
    records = [read_record(out / role) for role in network.roles]
    use = run_use(records)
    bandwidth = records[0].about.host.memory_write_bytes_per_s or 0
    times = {
        role: record.marks[0].times_ns for role, record in zip(network.roles, records, strict=True)
    }
    window = (use.steps.start_ns, min(int(own[-1]) for own in times.values()))
    run = RunRecord(
        workload=name,
        samples=samples,
        step_times_ns={
            role: [int(at) for at in own if window[0] <= at <= window[1]]
            for role, own in times.items()
        },
        units=dict.fromkeys(RESOURCES, 1.0) | {"device_util": shares["w0"].usage_unit_s},
        num_parameters=0,
        other_cores=0.0,
        steal_cores=0.0,
    )
    labels = labels_of_run(
        run,
        shares=dict.fromkeys(network.roles, _SHARE),
        write_bytes_per_s=bandwidth,
        grid_s=LABEL_GRID_S,
    )
    bed_row, own_row = targets_of_run(labels), use.targets().flat
    return {
        "job": name,
        "step_ms": 1000 * use.steps.step_s,
        "smape_pct": dict(
            zip(TARGET_NAMES, (100 * smape_shares(bed_row, own_row)).round(2).tolist(), strict=True)
        ),
        "bed": bed_row.round(4).tolist(),
        "record": own_row.round(4).tolist(),
    }


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=("periods", "kills", "numbers"))
    parser.add_argument("--out", type=Path, default=Path("runs/records"))
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--jobs", nargs="*", default=["mlp", "cnn", "gpt"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    out = given.out.absolute()
    if given.check == "periods":
        rows = check_periods(out, given.seconds)
    elif given.check == "kills":
        rows = check_kills(out, given.seed)
    else:
        rows = check_numbers(out, given.jobs, given.seconds)
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    _main()
