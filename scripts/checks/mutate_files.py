"""Damaged files for every reader: each ends in an answer, or in one line and exit status 2.

    valid files -> damage by a seed -> `driple COMMAND FILE` in a process of its own -> faults

    python -m scripts.checks.mutate_files --count 10000 --readers onnx,cluster

A fault is a traceback, an exit status but 0 and 2, a message of several lines, a control character
of a file on the terminal, over 30 s of processor time (or 180 s in all), or over 2 GB. Progress
lies in build/mutate_files: a run that was stopped goes on, and each damaged file with a fault is
kept there. `--write` puts the counts, with the date, into scripts/checks/mutate_files.json, in
place of those of the same readers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.checks.file_readers import READERS, ROOT, FileReader, Seed
from scripts.checks.mutations import mutated

__all__ = ["Counts", "Ended", "check_reader", "fault_of", "main", "run_command"]

BUILD = ROOT / "build" / "mutate_files"
RESULT = ROOT / "scripts" / "checks" / "mutate_files.json"
MOST_S, MOST_BYTES = 30.0, 2 * 10**9
_KILL_S = 180  # wall time, also on a machine with much else to do
_MORE_S = 20  # beyond the alarm that a child sets itself
_NOTHING_S = 0.02  # processor time of a child that did not begin
_MOST_PRINTED = 1 << 20
_SAVE_EVERY = 100
_FIRST = 3  # lines of a fault that are kept
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        status: exit status; negative: the signal that ended it.
        out: what it printed.
        err: messages.
        seconds: processor time; a process that waits is ended after `_KILL_S`.
        peak_bytes: most memory at once.
    """

    status: int
    out: str
    err: str
    seconds: float
    peak_bytes: int


@dataclass(slots=True)
class Counts:
    """What came of the damaged files of a reader.

    Attributes:
        files: how many were read.
        answered: of these, with exit status 0.
        refused: with exit status 2 and one line.
        faults: number and what was wrong, of each other one.
        slowest_s: processor time of the slowest.
        peak_bytes: memory of the largest.
    """

    files: int = 0
    answered: int = 0
    refused: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_bytes: int = 0


def run_command(arguments: Sequence[object]) -> Ended:
    """Run `driple` with arguments in a process forked from this one, so that imports are shared.

    A fork beside threads of a library may wait for ever for a lock that one of them held, before
    the command begins: such a child, which took no time at all, is made again.
    """
    while True:
        outputs = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115  # closed below
        child = os.fork()
        if child == 0:
            _run_here([str(word) for word in arguments], [stream.fileno() for stream in outputs])
        ended, used = _wait(child)
        if os.waitstatus_to_exitcode(ended) != -signal.SIGKILL or used.ru_utime > _NOTHING_S:
            break
        for stream in outputs:
            stream.close()
    texts = []
    for stream in outputs:
        stream.seek(0)
        texts.append(stream.read(_MOST_PRINTED).decode(errors="replace"))
        stream.close()
    return Ended(
        status=os.waitstatus_to_exitcode(ended),
        out=texts[0],
        err=texts[1],
        seconds=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss * 1024,
    )


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    """How a child ended, and what it used; killed where its own alarm does not end it."""
    end_s, pause_s = time.monotonic() + _KILL_S + _MORE_S, 1e-3
    while True:
        ready, ended, used = os.wait4(child, os.WNOHANG)
        if ready:
            return ended, used
        if time.monotonic() > end_s:
            os.kill(child, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)


def _run_here(arguments: list[str], outputs: list[int]) -> None:
    """What the child does; never returns."""
    status = 1
    try:
        for descriptor, number in zip(outputs, (1, 2), strict=True):
            os.dup2(descriptor, number)
        # A test has its own streams in these places.
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))
        signal.alarm(_KILL_S)
        resource.setrlimit(resource.RLIMIT_DATA, (2 * MOST_BYTES, 2 * MOST_BYTES))
        from driple.cli.main import run

        run(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def fault_of(ended: Ended) -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    if ended.seconds > MOST_S:
        return f"took {ended.seconds:.0f} s"
    if ended.peak_bytes > MOST_BYTES:
        return f"took {ended.peak_bytes / 1e9:.1f} GB"
    if ended.status not in (0, 2) or "Traceback" in ended.err:
        lines = [line for line in ended.err.splitlines() if line.strip()]
        return f"status {ended.status}: {' | '.join(lines[-_FIRST:])[:400]}"
    if _CONTROLS.search(ended.out) or _CONTROLS.search(ended.err):
        return "a control character was printed"
    if ended.status == 2:
        odd = [line for line in ended.err.splitlines() if not line.startswith("driple: ")]
        if odd or not ended.err:
            return f"message of several lines, or none: {' | '.join(odd[:_FIRST])[:400]}"
    return ""


def check_reader(
    name: str, reader: FileReader, count: int, build: Path, *, most_s: float = float("inf")
) -> Counts:
    """Have a reader read damaged files, from where an earlier run stopped.

    Args:
        name: of the reader.
        reader: what reads.
        count: number of the last file.
        build: folder for progress, and for files with a fault.
        most_s: seconds after which it stops, from the first damaged file on.
    """
    place = build / name
    shutil.rmtree(place / "seeds", ignore_errors=True)
    (place / "seeds").mkdir(parents=True)
    seeds = reader.seeds(place / "seeds")
    counts = _kept(place)
    if counts.files < count:
        for seed in seeds:  # what valid files import, damaged ones need not import again
            _warm(reader, seed, place)
    end_s = time.monotonic() + most_s
    while counts.files < count and time.monotonic() < end_s:
        number = counts.files
        chance = random.Random(f"{name} {number}")  # noqa: S311  # to be repeated, not secret
        seed = chance.choice(seeds)
        work = place / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        file = work / seed.name
        file.write_bytes(mutated(seed.data, reader.form, chance))
        ended = run_command(reader.command(file))
        fault = fault_of(ended)
        counts.files += 1
        counts.answered += not fault and ended.status == 0
        counts.refused += not fault and ended.status == 2
        counts.slowest_s = max(counts.slowest_s, round(ended.seconds, 2))
        counts.peak_bytes = max(counts.peak_bytes, ended.peak_bytes)
        if fault:
            counts.faults.append((number, fault))
            shutil.copy(file, place / f"{number}-{seed.name}")
            print(f"{name} {number}: {fault}", flush=True)
        if fault or counts.files % _SAVE_EVERY == 0:
            _keep(place, counts)
    _keep(place, counts)
    return counts


def _warm(reader: FileReader, seed: Seed, place: Path) -> None:
    """Read a valid file in this process, without its output."""
    from driple.cli.main import run

    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    file = work / seed.name
    file.write_bytes(seed.data)
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        run([str(word) for word in reader.command(file)])
    except SystemExit:
        pass
    finally:
        sys.stdout.flush()
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nowhere)


def _kept(place: Path) -> Counts:
    file = place / "counts.json"
    if not file.exists():
        return Counts()
    values = json.loads(file.read_text(encoding="utf-8"))
    values["faults"] = [(number, fault) for number, fault in values["faults"]]
    return Counts(**values)


def _keep(place: Path, counts: Counts) -> None:
    text = json.dumps(asdict(counts), indent=1)
    (place / "counts.json.part").write_text(text, encoding="utf-8")
    (place / "counts.json.part").replace(place / "counts.json")


def _write(counts: dict[str, Counts]) -> None:
    """Put the counts into the dated file, beside those of other readers."""
    there = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    for name, each in counts.items():
        there[name] = {"date": time.strftime("%Y-%m-%d"), "commit": commit, **asdict(each)}
    RESULT.write_text(json.dumps(there, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--readers", default=",".join(READERS), help="names, by commas")
    parser.add_argument("--count", type=int, default=10_000, help="damaged files of each reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each reader")
    parser.add_argument("--again", action="store_true", help="from the first file on")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = parser.parse_args(arguments)
    outcomes = {}
    for name in given.readers.split(","):
        if given.again:
            shutil.rmtree(BUILD / name, ignore_errors=True)
        each = check_reader(name, READERS[name], given.count, BUILD, most_s=given.seconds)
        outcomes[name] = each
        print(
            f"{name}: {each.files} files, {each.answered} answered, {each.refused} refused, "
            f"{len(each.faults)} faults; at most {each.slowest_s:.1f} s, "
            f"{each.peak_bytes / 1e6:.0f} MB",
            flush=True,
        )
    if given.write:
        _write(outcomes)
    return 1 if any(each.faults for each in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
