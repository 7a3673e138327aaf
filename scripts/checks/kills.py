"""Commands are killed at random moments and started again: what they leave is as without.

    command -> SIGKILL of all its processes -> the same command ... -> files, byte for byte

    python -m scripts.checks.kills predict-jobs simulate --kills 200 --write

A cycle begins with an empty folder and ends when the command does, which after eight kills is left
to; it fails if a file differs from that of the run without kills, is missing, or is left over. A
kill counts if the command was still running. Training is done with one thread, on whose number the
weights depend. What `measure` and `record` write depends on the clock: there the files must be the
same by name, nothing of a killed run may run on, and a killed record must be readable. `--write`
puts the counts, with the date, into scripts/checks/kills.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from driple.errors import TraceError
from driple.measure.record.store import read_record
from scripts.checks.chaos import write_jobs

__all__ = ["COMMANDS", "Command", "Outcome", "main", "outcome_of"]

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "scripts" / "checks" / "kills.json"
_PAPER = ROOT / "datasets" / "graphs" / "paper"
_DATASET = ROOT / "datasets" / "settings" / "CPU-P1w2_ho-200M"
_NAMESPACES = Path("/run/netns")  # of the hosts of measured workloads
_MARK = "DRIPLE_KILLED_RUN"  # in the environment of all processes of a run
_FIRST_BLOCK_BYTES = 20_000  # more than one has
_MOST_OF_CYCLE = 8  # kills, after which the command is left to end
_ENDS_S = 5.0  # in which the processes of a killed command must be gone
_BY_NAME = ("",)  # the end of each file: all of them are compared by name alone
_NUMBERS = re.compile(r"\d+-\d{9,}")  # process and clock in names of files
_MEASURE = (
    "measure", "lenet-x0.25/mnist/b8/momentum/async", "--set", "iterations=10", "--set",
    "seconds=0.5", "--set", "tries=1", "--set", "quiet_wait=0",
)  # fmt: skip
_STEPS = "import driple, time\nfor _ in range(300): time.sleep(0.01); driple.mark_step()\n"


@dataclass(frozen=True, slots=True)
class Command:
    """A command that goes on where it was stopped.

    Attributes:
        arguments: of `driple`, by the folder that it writes into.
        prepare: writes its input into a folder.
        ignored: endings of files that state when or how long something ran.
        left: what must not be there when a run has ended, by its folder.
        goes_on: the command continues in its folder; else it gets another one after each kill.
    """

    arguments: Callable[[Path], Sequence[str | Path]]
    prepare: Callable[[Path], None] = lambda folder: None
    ignored: tuple[str, ...] = ()
    left: Callable[[Path], Sequence[str]] = lambda folder: ()
    goes_on: bool = True


@dataclass(slots=True)
class Outcome:
    """What came of a campaign.

    Attributes:
        kills: that landed.
        cycles: runs that ended after their kills.
        faults: how such a run differed from one without kills.
    """

    kills: int = 0
    cycles: int = 0
    faults: list[str] = field(default_factory=list)


def _jobs(folder: Path) -> None:
    write_jobs(folder / "jobs.jsonl", lines=500)


@cache
def _measured_runs() -> tempfile.TemporaryDirectory[str]:
    """A folder of runs, measured once, as two measurements differ."""
    place = tempfile.TemporaryDirectory()
    command = [sys.executable, "-m", "driple", *_MEASURE, "-o", place.name]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return place


def _copy_of_measured_runs(folder: Path) -> None:
    shutil.copytree(_measured_runs().name, folder / "runs")


def _namespaces(folder: Path) -> list[str]:
    """Network namespaces of measured workloads, which the last run removes."""
    return [file.name for file in _NAMESPACES.glob("dpl_*")]


def _unreadable(folder: Path) -> list[str]:
    """Why a killed record cannot be read, if it is longer than its first block, of a second."""
    record = folder / "record"
    samples = record / "samples.bin"
    if not samples.exists() or samples.stat().st_size < _FIRST_BLOCK_BYTES:
        return []
    try:
        read_record(record)
    except TraceError as error:
        return [str(error)]
    return []


COMMANDS = {
    "predict-jobs": Command(
        lambda out: ("predict", "--jobs", out / "jobs.jsonl", "-o", out / "rows.jsonl"), _jobs
    ),
    "simulate": Command(
        lambda out: ("data", "simulate", _PAPER, "--setting", "V100-P1w2/ho-10G",
                     "-o", out / "data", "--set", "processes=1"),
    ),
    "train": Command(
        lambda out: ("train", "--setting", "CPU-P1w2/ho-200M", "--dataset", _DATASET,
                     "-o", out / "run", "--set", "max_epochs=12", "--set", "threads=1"),
        ignored=(".jsonl", "config.json"),
    ),
    "evaluate": Command(
        lambda out: ("evaluate", "--dataset", _DATASET, "--against", "mean,knn,trees,forest",
                     "-o", out / "folds", "--set", "seeds=5", "--set", "threads=1"),
    ),
    "transfer": Command(
        lambda out: ("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "-o", out / "run",
                     "--set", "threads=1"),
        ignored=(".jsonl", "config.json"),
    ),
    "label": Command(
        lambda out: ("data", "label", out / "runs", "-o", out / "data"), _copy_of_measured_runs
    ),
    "measure": Command(
        lambda out: (*_MEASURE, "-o", out / "runs", "--dataset", out / "data"),
        ignored=_BY_NAME, left=_namespaces,
    ),
    "record": Command(
        lambda out: ("record", "-o", out / "record", "--", sys.executable, "-c", _STEPS),
        ignored=_BY_NAME, left=_unreadable, goes_on=False,
    ),
}  # fmt: skip


def outcome_of(command: Command, kills: int, seed: int) -> Outcome:
    """Kill a command until so many kills have landed, and compare each run that ends."""
    drawn = random.Random(seed)  # noqa: S311  # of no secret
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        usual_s = _whole_run_s(command, whole)
        wanted = _content(whole, command.ignored)
        while outcome.kills < kills:
            folder = Path(place) / f"cycle{outcome.cycles}"
            folder.mkdir()
            command.prepare(folder)
            most = min(kills - outcome.kills, _MOST_OF_CYCLE if command.goes_on else 1)
            # Late kills find more to spoil; a command that goes on needs less time each time.
            moments_s = [drawn.uniform(0.0, 1.1 * usual_s) for _ in range(most)]
            if _has_ended(command, folder, moments_s, outcome):
                _compare(command, folder, wanted, outcome)
            elif command.goes_on:
                if _ended(command, folder, None):
                    _compare(command, folder, wanted, outcome)
                else:
                    _add(outcome, ["the last start fails"])
                if outcome.kills < kills:  # all were too early: the machine has more to do now
                    again = Path(place) / f"whole{outcome.cycles}"
                    usual_s = max(usual_s, _whole_run_s(command, again))
            _add(outcome, command.left(folder))
            outcome.cycles += 1
    return outcome


def _whole_run_s(command: Command, folder: Path) -> float:
    """Seconds of a run that nobody kills, in a new folder."""
    folder.mkdir()
    command.prepare(folder)
    began_s = time.monotonic()
    if not _ended(command, folder, None):
        raise SystemExit("the command fails without any kill")
    return time.monotonic() - began_s


def _has_ended(
    command: Command, folder: Path, moments_s: Sequence[float], outcome: Outcome
) -> bool:
    """Start a command and kill it at each of some moments; whether it ended before one."""
    for moment_s in moments_s:
        if _ended(command, folder, moment_s):
            return True
        outcome.kills += 1
        _add(outcome, [f"{number} runs on" for number in _run_on(str(folder))])
    return False


def _compare(command: Command, folder: Path, wanted: Mapping[str, bytes], outcome: Outcome) -> None:
    """Add the files that differ from those of the run that nobody killed."""
    left = _content(folder, command.ignored)
    names = sorted(left.keys() | wanted.keys())
    _add(outcome, [name for name in names if left.get(name) != wanted.get(name)])


def _add(outcome: Outcome, faults: Sequence[str]) -> None:
    """Add faults of the present cycle."""
    outcome.faults += [f"cycle {outcome.cycles}: {fault}" for fault in faults]


def _ended(command: Command, folder: Path, after_s: float | None) -> bool:
    """Run a command, and kill it after some seconds; whether it ended before.

    Raises:
        SystemExit: it refused to go on.
    """
    line = [sys.executable, "-m", "driple", *map(str, command.arguments(folder))]
    with subprocess.Popen(
        line, cwd=ROOT, env=os.environ | {_MARK: str(folder)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            _, said = process.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return False
    if process.returncode:
        raise SystemExit(f"{' '.join(line)}: {said.decode(errors='replace')[-500:]}")
    return True


def _run_on(token: str) -> list[int]:
    """Processes of a killed run that are still there after a while."""
    ends_s = time.monotonic() + _ENDS_S
    while (numbers := _processes(token)) and time.monotonic() < ends_s:
        time.sleep(0.1)
    return numbers


def _processes(token: str) -> list[int]:
    """Processes with a token in their environment."""
    wanted, numbers = f"{_MARK}={token}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in file.read_bytes().split(b"\0"):
                numbers.append(int(file.parent.name))
        except OSError:
            continue  # it has ended, or is another user's
    return numbers


def _content(folder: Path, ignored: tuple[str, ...]) -> dict[str, bytes]:
    """All files of a folder by name, but for those that state times: of these only that they are.

    Paths of the folder itself, which differ from run to run, are taken out, and the numbers of
    processes and clocks that names have.
    """
    return {
        _NUMBERS.sub("N", str(file.relative_to(folder))): b""
        if file.name.endswith(ignored) and ignored
        else file.read_bytes().replace(str(folder).encode(), b"")
        for file in folder.rglob("*")
        if file.is_file()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaigns; 1 if a run differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"into {RESULT.name}")
    options = parser.parse_args(argv)
    known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    faults = 0
    for name in options.names or COMMANDS:
        began_s = time.monotonic()
        outcome = outcome_of(COMMANDS[name], options.kills, options.seed)
        took_s = round(time.monotonic() - began_s)
        print(f"{name}: {outcome.kills} kills in {outcome.cycles} runs, {took_s} s", flush=True)
        print(*outcome.faults, sep="\n")
        faults += len(outcome.faults)
        known[name] = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "kills": outcome.kills,
            "runs": outcome.cycles,
            "faults": outcome.faults,
            "compared": "names" if COMMANDS[name].ignored == _BY_NAME else "bytes",
            "seconds": took_s,
        }
        if options.write:
            RESULT.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
