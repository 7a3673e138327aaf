"""Make all simulated data sets and all inspectors again, as after a change of the simulator.

    python -m scripts.settings.all [--only graphs,simulate,measured,simulated] [--processes 2]

    graphs      the catalogue's 832 workloads, built and read         -> build/artefacts/graphs/
    simulate    settings of the paper, GPUs of today, measured ones   -> datasets/
    measured    inspectors with measured labels, both presets         -> checkpoints/
    simulated   inspectors with simulated labels, those that ship     -> checkpoints/

Stop it at any time, the same command goes on: stages that are done are left out, and the others do
not make again what they have made. To make all anew, delete build/artefacts/ and runs/. Seconds of
each stage, over all tries, are in build/artefacts/stages.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "artefacts"
RECORD = FOLDER / "stages.json"
STAGES = ("graphs", "simulate", "measured", "simulated")


def commands_of(stage: str, processes: int) -> list[list[str]]:
    """Command lines of a stage, in order."""
    graphs, number = str(FOLDER / "graphs"), str(processes)
    driple, python = [sys.executable, "-m", "driple"], [sys.executable, "-m"]
    catalogue = ["--list", "paper", "--setting", "V100-P1w2", "--set", f"processes={number}"]
    simulator = [*python, "scripts.settings.simulate", "--processes", number]
    trainer = [*python, "scripts.settings.checkpoints", "--threads", number]
    commands = {
        "graphs": [[*driple, "jobs", "build", *catalogue, "-o", graphs]],
        "simulate": [[*simulator, "--graphs", graphs]],
        "measured": [[*trainer, "--labels", "measured"]],
        "simulated": [[*trainer, "--labels", "simulated"]],
    }
    return commands[stage]


def recorded() -> dict[str, dict[str, float | bool]]:
    """Of each stage that was begun, its seconds and whether it is done."""
    stages: dict[str, dict[str, float | bool]] = (
        json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    )
    return stages


def run_stage(stage: str, processes: int) -> None:
    """Run a stage, and record its seconds over all tries, also if it is stopped."""
    before = recorded()
    known = before.get(stage, {"seconds": 0, "done": False})
    if known["done"]:
        print(f"{stage}: done before, in {known['seconds']} s")
        return
    started, done = time.monotonic(), False
    try:
        for command in commands_of(stage, processes):
            subprocess.run(command, cwd=ROOT, check=True)
        done = True
    finally:
        seconds = round(known["seconds"] + time.monotonic() - started)
        text = json.dumps({**before, stage: {"seconds": seconds, "done": done}}, indent=1)
        atomic_write(RECORD, text.encode(), error=DripleError)


def main() -> None:
    """Run the stages that are asked for, in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(STAGES), help="stages, in place of all")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    asked = arguments.only.split(",")
    if unknown := set(asked) - set(STAGES):
        parser.error(f"no stage {', '.join(sorted(unknown))}; choose from {', '.join(STAGES)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        if stage in asked:
            run_stage(stage, arguments.processes)


if __name__ == "__main__":
    main()
