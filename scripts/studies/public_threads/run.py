"""Answer the jobs of `threads.json`, and store the answers in `results.jsonl`.

    python -m scripts.studies.public_threads.run FOLDER [NAME ...]

FOLDER has the clones of `clones.csv`, which the networks of `jobs/` read, and in `site/` the
packages peft, ftfy, einops, tf_keras and tf_slim. The files of `jobs/` are copied there, and the
graphs of TensorFlow that it lacks are written.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "THREADS", "main", "missing_clones"]

HOME = Path(__file__).parent
THREADS, RESULTS = HOME / "threads.json", HOME / "results.jsonl"
_ROOT = HOME.parents[2]


def missing_clones(folder: Path) -> list[str]:
    """What to type for each clone that a folder lacks."""
    with (HOME / "clones.csv").open(encoding="utf-8") as file:
        return [
            f"git clone https://github.com/{row['repository']} {row['folder']} && "
            f"git -C {row['folder']} checkout {row['commit']}"
            for row in csv.DictReader(file)
            if not (folder / row["folder"]).is_dir()
        ]


def prepare(folder: Path) -> None:
    """Copy the files of the jobs, and write the graphs that are not there."""
    shutil.copytree(
        HOME / "jobs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for program in sorted(folder.glob("*_graph.py")):
        if not (folder / f"{program.stem.removesuffix('_graph')}.pb").exists():
            subprocess.run(
                [sys.executable, program.name], cwd=folder, env=_with(folder), check=True
            )


def _with(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{_ROOT}:{folder / 'site'}"}


def answer_of(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Step in seconds and memory in GiB, each with its interval, or the message of a refusal."""
    process = subprocess.run(
        [sys.executable, "-m", "driple", "predict", *command, "--json"],
        cwd=folder,
        env=_with(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        return {"refused": process.stderr.strip().splitlines()[-1]}
    answer = json.loads(process.stdout)["answers"][0]
    step, memory = answer["iteration_time_s"], answer["memory"]
    ends = step["interval"] or {"low": None, "high": None}
    figures = {"step_s": [step["value"], ends["low"], ends["high"]], "fits": memory.get("fits")}
    if memory["known"]:
        held = memory["device_total_bytes"]
        figures["memory_gib"] = [
            None if held[end] is None else held[end] / 2**30 for end in ("value", "lower", "upper")
        ]
        figures["capacity_gib"] = memory["capacity_bytes"] / 2**30
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer all jobs, or some."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    if lacking := missing_clones(folder):
        parser.error("in that folder, first: " + "; ".join(lacking))
    prepare(folder)
    known = {}
    if RESULTS.exists():
        lines = RESULTS.read_text(encoding="utf-8").splitlines()
        known = {row["id"]: row for row in map(json.loads, lines)}
    threads = json.loads(THREADS.read_text(encoding="utf-8"))
    for thread in threads:
        if not options.names or thread["id"] in options.names:
            answer = answer_of(thread["command"], folder)
            known[thread["id"]] = {
                "id": thread["id"], "date": time.strftime("%Y-%m-%d"), **answer
            }  # fmt: skip
            print(thread["id"], json.dumps(answer), flush=True)
    rows = [json.dumps(known[each["id"]]) for each in threads if each["id"] in known]
    RESULTS.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
