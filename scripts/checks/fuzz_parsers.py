"""Millions of damaged inputs for every parser, in this process: only our own errors, within limits.

    valid inputs, and those that were refused where none was before -> damage by a seed -> parse

    python -m scripts.checks.fuzz_parsers --count 1000000 [--parsers json,npz] [--write]

A fault is any error but our own, over 10 s, 1 GB more, or a process that dies. The search is guided
by where a parser refuses: an input that ends at a line of the package at which none ended before
joins those that are damaged next. Progress is in build/fuzz_parsers: a run that was stopped goes
on; inputs with a fault are kept there. `--write` puts counts and date into fuzz_parsers.json.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.checks.clean_install import dated
from scripts.checks.mutations import mutated
from scripts.checks.parsers import PARSERS, Parser

__all__ = ["Tally", "fuzz", "main"]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz_parsers"
RESULT = ROOT / "scripts" / "checks" / "fuzz_parsers.json"
MOST_S, MOST_BYTES = 10, 10**9
_BATCH = 1000  # inputs of a process
_MOST_CORPUS, _MOST_KEPT_BYTES = 2000, 1 << 18
_RECURSION = 1000  # as in a process that begins; tests may have raised it
_FIRST = 300  # characters of a fault that are kept


@dataclass(slots=True)
class Tally:
    """What came of the inputs of a parser.

    Attributes:
        inputs: how many were parsed.
        parsed: of these, without an error.
        refused: with an error of ours.
        ends: lines of the package at which errors of ours were raised.
        faults: number and words of each other input.
    """

    inputs: int = 0
    parsed: int = 0
    refused: int = 0
    ends: list[str] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)


def fuzz(
    name: str, parser: Parser, count: int, build: Path, *, most_s: float = float("inf")
) -> Tally:
    """Have a parser read damaged inputs, from where an earlier run stopped.

    Args:
        name: of the parser.
        parser: what reads.
        count: number of the last input.
        build: folder for progress, and for inputs with a fault.
        most_s: seconds after which no further batch begins.
    """
    place = build / name
    shutil.rmtree(place / "seeds", ignore_errors=True)
    for folder in ("seeds", "corpus", "work"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    seeds = parser.seeds(place / "seeds")
    for seed in seeds:  # imports of the parser are shared by the processes
        parser.parse(seed, _folder(place / "work"))
    tally, started = _kept(place), time.monotonic()
    while tally.inputs < count and time.monotonic() - started < most_s:
        corpus = [*seeds, *(file.read_bytes() for file in sorted((place / "corpus").iterdir()))]
        end = min(count, tally.inputs + _BATCH)
        limit_s = most_s - (time.monotonic() - started)
        _batch(name, parser, corpus, (tally.inputs, end), place=place, tally=tally, limit_s=limit_s)
        (place / "tally.json.part").write_text(json.dumps(asdict(tally)), encoding="utf-8")
        (place / "tally.json.part").replace(place / "tally.json")
    return tally


def _input(name: str, form: str, corpus: Sequence[bytes], number: int) -> bytes:
    """The input of a number: the same whenever the corpus is."""
    chance = random.Random(f"{name} {number}")  # noqa: S311  # to be repeated, not secret
    return mutated(chance.choice(corpus), form, chance)


def _batch(
    name: str, parser: Parser, corpus: Sequence[bytes], numbers: tuple[int, int], *, place: Path,
    tally: Tally, limit_s: float,
) -> None:  # fmt: skip
    """Parse some inputs in a process of their own, and add what came of them."""
    with mmap.mmap(-1, 8) as shared:
        shared[:] = numbers[0].to_bytes(8, "little")
        outcome = place / "outcome.json"
        outcome.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _parse_here(
                name, parser, corpus, numbers, place=place, ends=set(tally.ends), shared=shared,
                limit_s=limit_s,
            )  # fmt: skip
        _, status = os.waitpid(child, 0)
        last = int.from_bytes(shared[:], "little")
    if outcome.exists():
        values = json.loads(outcome.read_text(encoding="utf-8"))
        tally.inputs += values["inputs"]
        tally.parsed += values["parsed"]
        tally.refused += values["refused"]
        tally.ends += values["ends"]
        faults = [(number, words) for number, words in values["faults"]]
    else:  # it died of this input; those before it are counted as refused
        faults = [(last, f"the process ended with {os.waitstatus_to_exitcode(status)}")]
        tally.refused += last - numbers[0]
        tally.inputs += last - numbers[0] + 1
    for number, words in faults:
        tally.faults.append((number, words))
        (place / f"fault-{number}").write_bytes(_input(name, parser.form, corpus, number))
        print(f"{name} {number}: {words}", flush=True)


def _data_bytes() -> int:
    """Memory of this process now: a child has all that its parent had."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))


def _parse_here(
    name: str, parser: Parser, corpus: Sequence[bytes], numbers: tuple[int, int], *, place: Path,
    ends: set[str], shared: mmap.mmap, limit_s: float,
) -> None:  # fmt: skip
    """What the child does; never returns."""
    from driple.errors import DripleError

    ours: tuple[type[Exception], ...] = (DripleError, *parser.refuses)
    status, end_s = 1, time.monotonic() + limit_s
    try:
        sys.setrecursionlimit(_RECURSION)
        most_bytes = _data_bytes() + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        here = Tally()
        num_corpus = len(corpus)
        for number in range(*numbers):
            shared[:] = number.to_bytes(8, "little")
            data = _input(name, parser.form, corpus, number)
            signal.alarm(MOST_S)
            try:
                parser.parse(data, _folder(place / "work"))
                here.parsed += 1
            except ours as error:
                here.refused += 1
                line = _line_of(error)
                if line not in ends:
                    ends.add(line)
                    here.ends.append(line)
                    if num_corpus < _MOST_CORPUS and len(data) <= _MOST_KEPT_BYTES:
                        num_corpus += 1
                        (place / "corpus" / f"{number:012}").write_bytes(data)
            except Exception as error:  # any other error is what is looked for
                words = f"{type(error).__name__}: {error} at {_line_of(error)}"
                here.faults.append((number, words[:_FIRST]))
            signal.alarm(0)
            here.inputs += 1
            if time.monotonic() > end_s:
                break
        (place / "outcome.part").write_text(json.dumps(asdict(here)), encoding="utf-8")
        (place / "outcome.part").replace(place / "outcome.json")
        status = 0
    finally:
        os._exit(status)


def _line_of(error: BaseException) -> str:
    """The last line of the package in a traceback, with the kinds of the errors behind it."""
    place, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if f"{os.sep}driple{os.sep}" in file:
            place = f"{file.rpartition(f'{os.sep}driple{os.sep}')[2]}:{step.tb_lineno}"
        step = step.tb_next
    cause = error.__cause__ or error.__context__
    return place if cause is None else f"{place} <- {type(cause).__name__} {_line_of(cause)}"


def _folder(place: Path) -> Path:
    """An empty folder for one input."""
    if any(place.iterdir()):
        shutil.rmtree(place)
        place.mkdir()
    return place


def _kept(place: Path) -> Tally:
    file = place / "tally.json"
    if not file.exists():
        return Tally()
    values = json.loads(file.read_text(encoding="utf-8"))
    values["faults"] = [(number, words) for number, words in values["faults"]]
    return Tally(**values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--parsers", default=",".join(PARSERS), help="names, by commas")
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs of each parser")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each parser")
    parser.add_argument("--again", action="store_true", help="from the first input on")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args(arguments)
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    has_fault = False
    for name in options.parsers.split(","):
        if options.again:
            shutil.rmtree(BUILD / name, ignore_errors=True)
        started = time.monotonic()
        tally = fuzz(name, PARSERS[name], options.count, BUILD, most_s=options.seconds)
        has_fault |= bool(tally.faults)
        print(
            f"{name}: {tally.inputs} inputs, {tally.parsed} parsed, {tally.refused} refused at "
            f"{len(tally.ends)} places, {len(tally.faults)} faults; "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )
        results[name] = dated(asdict(tally) | {"ends": len(tally.ends)})
    if options.write:
        text = json.dumps(results, indent=1, sort_keys=True) + "\n"
        RESULT.write_text(text, encoding="utf-8")
    return 1 if has_fault else 0


if __name__ == "__main__":
    sys.exit(main())
