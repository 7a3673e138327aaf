"""Ten DDP programs on two processors: the step that `predict --machine` says, and the recorded one.

    python -m scripts.checks.ddp_programs --out runs/ddp          (root, iproute2)

Two network namespaces are joined by links of a limited rate. `driple measure --machine` runs on
both, then each program (`record_jobs`) three times in mixed order under `driple record`. A program
that pauses for its input pauses as long in the prediction: its text says so. Results with their
date: scripts/checks/ddp_programs.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from driple import predict
from driple.catalog.machine_file import read_machine
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.jobs.pytorch.modules import job_of_module
from driple.measure.record.steps import steps_of
from driple.measure.record.store import read_record
from driple.measure.testbed.network import ClusterNetwork
from scripts.checks.record_jobs import JOBS
from scripts.pages.own_machine import measure_pair
from scripts.studies.kit.results import Row
from scripts.studies.kit.tables import markdown

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "scripts" / "checks" / "ddp_programs.md"
ROLES = ("w0", "w1")
_RATE, _BITS_PER_S = "400M", 400e6
_REPEATS, _SEED = 3, 0


def run_on_both(network: ClusterNetwork, words: Sequence[Sequence[str]]) -> None:
    """Run a command in each namespace.

    Args:
        network: the namespaces.
        words: of each role.
    """
    running = []
    for rank, role in enumerate(ROLES):
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "eth0",
        }
        command = [*network.command_prefix(role), sys.executable, "-m", *words[rank]]
        running.append(subprocess.Popen(command, env=environment, cwd=ROOT))
    for process in running:
        process.wait()  # Gloo aborts now and then when a rank leaves first; its record is whole


def measured(out: Path, seconds: float) -> None:
    """The machine file, and a record of each run; what is there is left."""
    runs = [(name, repeat) for repeat in range(_REPEATS) for name in JOBS]
    random.Random(_SEED).shuffle(runs)  # noqa: S311  # no secret
    file = out / "machine.toml"
    if not file.exists():
        measure_pair(file, _BITS_PER_S, "--set", "parts=processor,links")
    with ClusterNetwork(list(ROLES), _BITS_PER_S) as network:
        for number, (name, repeat) in enumerate(runs, 1):
            folders = [out / f"{name}.{repeat}" / role for role in ROLES]
            if all((folder / "samples.bin").exists() for folder in folders):
                continue
            meet = ("--seconds", f"{seconds:g}", "--address", network.address("w0", 29700 + number))
            words = [
                ("driple", "record", "-o", str(folder), "--", sys.executable, "-m",
                 "scripts.checks.record_jobs", name, *meet, "--rank", str(rank))
                for rank, folder in enumerate(folders)
            ]  # fmt: skip
            run_on_both(network, words)


def rows_of(out: Path) -> Iterator[Row]:
    """Predicted and recorded seconds of a step, one row for each run."""
    for name, (make, draw, _, pause_s) in JOBS.items():
        network, batch = make(), draw()
        network(batch[0])  # lazy layers take their sizes
        job = job_of_module(network, batch, optimizer="momentum", name=name)
        setting = f"2x1xCPU/{_RATE}"
        (answer,) = predict(job, setting, machine=out / "machine.toml").answers
        time = answer.iteration_time_s
        predicted_s = time.value
        if predicted_s is None:
            raise SystemExit(f"{name} is a guess without a number on {setting}")
        interval = time.interval
        ends = (interval.low, interval.high) if interval else ()
        ends_s = [end + pause_s for end in ends if end is not None]
        for repeat in range(_REPEATS):
            records = [read_record(out / f"{name}.{repeat}" / role) for role in ROLES]
            recorded_s = float(np.mean([steps_of(record).step_s for record in records]))
            yield {
                "job": name,
                "repeat": repeat,
                "pause_s": pause_s,
                "predicted_s": predicted_s + pause_s,
                "ends_s": ends_s or None,
                "recorded_s": recorded_s,
            }  # fmt: skip


def page(rows: Sequence[Row], out: Path) -> str:
    """The results as Markdown."""
    facts = read_machine(out / "machine.toml")
    if facts.machine is None or facts.processor is None:
        raise SystemExit(f"{out}/machine.toml lacks the machine or its processor")
    errors = np.array([100 * abs(row["predicted_s"] / row["recorded_s"] - 1) for row in rows])
    inside = sum(row["ends_s"][0] <= row["recorded_s"] <= row["ends_s"][1] for row in rows)
    lines = []
    for name in JOBS:
        mine = [row for row in rows if row["job"] == name]
        recorded = ", ".join(f"{1000 * row['recorded_s']:.0f}" for row in mine)
        off = ", ".join(
            f"{100 * (row['predicted_s'] / row['recorded_s'] - 1):+.0f}" for row in mine
        )
        lines.append(
            [name, f"{1000 * mine[0]['predicted_s']:.0f} ms", f"{recorded} ms", f"{off} %"]
        )
    table = "\n".join(markdown(["program", "predicted", "recorded", "off"], lines, right=True))
    samplers = ", ".join(f"{value:.1f}" for value in np.percentile(_samplers(out), [10, 50, 90]))
    cores = facts.processor
    machine = facts.machine
    beside = "other programs beside" if machine.disturbed else "nothing else running"
    return "\n".join(
        (
            "# DDP programs on two processors",
            "",
            f"`python -m scripts.checks.ddp_programs`, {machine.date}, {machine.cpu}, "
            f"{machine.cores} cores, torch {machine.torch}, Gloo over links of 400 Mbit/s,",
            f"{beside}. `driple measure --machine` on both found {cores.flops_per_s / 1e9:.0f} "
            f"GFLOP/s, {cores.bytes_per_s / 1e9:.1f} GB/s and {cores.us_per_op:.1f} us to start an",
            f"op. Each program ran {_REPEATS} times in mixed order under `driple record`, with "
            "marked steps.",
            "",
            table,
            "",
            f"{len(rows)} runs: {np.median(errors):.1f} % off in the median, {errors.max():.0f} % "
            f"in the worst; {inside} inside the answer's 90 % interval. Asked were 15 and 30 %.",
            "Predictions hold the pause that a program makes for its input. The recorder took "
            f"{samplers} % of a core (10th, 50th and 90th percentile).",
            "",
        )
    )


def _samplers(out: Path) -> list[float]:
    """Percent of a core that each recorder took."""
    ends = [
        read_record(out / f"{name}.{repeat}" / role).about.end
        for name in JOBS
        for repeat in range(_REPEATS)
        for role in ROLES
    ]
    return [100 * end.sampler_cpu_s / end.seconds for end in ends if end is not None]


def main() -> None:
    """Measure what is missing, print a row for each run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/ddp"))
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    out = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    measured(out, given.seconds)
    rows = list(rows_of(out))
    for row in rows:
        print(json.dumps(row))
    text = page(rows, out)
    atomic_write(PAGE, text.encode(), error=ConfigError)
    print(text)


if __name__ == "__main__":
    main()
