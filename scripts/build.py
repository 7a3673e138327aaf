"""Make again what ships, and say what is stale.

    python -m scripts.build                      the stages, and what is stale of each
    python -m scripts.build --check              the same; exit status 1 if anything is
    python -m scripts.build --from gpu-fit       run that stage, then each later one that is stale
    python -m scripts.build --from gpu-fit --only        that one alone
    python -m scripts.build --from settings --sample     its shorter command
    python -m scripts.build --record gpu-fit     note that the stage was run by hand
    python -m scripts.build --adopt gpu-fit --because WORDS   take what is there

stages.py (what each stage reads and writes) + build.json (hashes when it last ran) -> what is stale

Of a stage whose files are taken as they are, build.json says why, and so does the list.

A stage is stale if a file that it reads or writes is not the one that was there when it ran. It
writes build.json after each stage, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.files import atomic_write
from scripts.stages import BY_HAND, SHIPPED, STAGES, Stage

__all__ = ["PART", "ROOT", "Build", "main", "part_of"]

ROOT = Path(__file__).parents[1]
RECORD = Path("scripts/build.json")
PART = "#"


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A checkout, its stages, and what was there when each stage last ran.

    Attributes:
        root: of the checkout.
        stages: in the order in which they run.
        by_hand: globs of files that no program makes.
        shipped: globs of files that need a maker; here * crosses folders.
    """

    root: Path
    stages: Sequence[Stage] = STAGES
    by_hand: Sequence[str] = BY_HAND
    shipped: Sequence[str] = SHIPPED

    def record(self) -> dict[str, Any]:
        """What build.json says: of each stage `date`, `reads` and `writes`, hashes by path."""
        file = self.root / RECORD
        if not file.exists():
            return {}
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return record

    def note(self, stage: Stage, *, because: str = "") -> None:
        """Write down what is there.

        Args:
            stage: that has just run, with the date of today.
            because: why what is there is taken without running it; empty if it ran.
        """
        entry = {"date": None, "because": because} if because else {"date": _today(), "because": ""}
        now = {
            **entry,
            "reads": self.hashes(stage.reads),
            "writes": self.hashes(stage.writes),
        }
        record = self.record() | {stage.name: now}
        ordered = {each.name: record[each.name] for each in self.stages if each.name in record}
        text = json.dumps(ordered, indent=1) + "\n"
        atomic_write(self.root / RECORD, text.encode(), error=ConfigError)

    def hashes(self, patterns: Iterable[str]) -> dict[str, str]:
        """First 16 hex digits of the SHA-256 of each file or part that globs name, by path."""
        hashes: dict[str, str] = {}
        for pattern in patterns:
            glob, _, part = pattern.partition(PART)
            for path in sorted(self.root.glob(glob)):
                if path.is_file():
                    name = path.relative_to(self.root).as_posix()
                    hashes[f"{name}{PART}{part}" if part else name] = _hash(path, part)
        return hashes

    def stale(self, stage: Stage) -> list[str]:
        """Why a stage is stale, a line each."""
        ran = self.record().get(stage.name)
        if ran is None:
            return ["never recorded"]
        return [
            *_differences(ran["reads"], self.hashes(stage.reads), "reads"),
            *_differences(ran["writes"], self.hashes(stage.writes), "writes"),
        ]

    def made(self, stage: Stage) -> str:
        """When a stage that is not stale has run, or why it has not."""
        ran = self.record()[stage.name]
        return f"made on {ran['date']}" if ran["date"] else f"not run: {ran['because']}"

    def without_maker(self) -> list[str]:
        """Shipped files that no stage writes and nobody is said to have written."""
        makers = [glob.partition(PART)[0] for stage in self.stages for glob in stage.writes]
        makers += self.by_hand
        tracked = subprocess.run(
            ["git", "ls-files"], cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return [
            name
            for name in tracked
            if any(fnmatchcase(name, glob) for glob in self.shipped)
            and not any(_names(glob, name) for glob in makers)
        ]

    def run(self, stage: Stage, *, sample: bool = False) -> None:
        """Run the command of a stage.

        Raises:
            SystemExit: it needs what no checkout has, has no sample, or failed.
        """
        if stage.needs:
            raise SystemExit(
                f"{stage.name} needs {stage.needs}; run it by hand (python -m {stage.command}), "
                f"then python -m scripts.build --record {stage.name}"
            )
        command = stage.sample if sample else stage.command
        if not command:
            raise SystemExit(f"{stage.name} has no sample; leave out --sample")
        gone = [name for name in stage.writes if not (self.root / name).exists()]
        if stage.fills and gone:
            subprocess.run(
                ["git", "checkout", "-q", "HEAD", "--", *gone], cwd=self.root, check=True
            )
        words = shlex.split(command)
        program = [sys.executable, "-m", *words]
        print(f"{stage.name} ({stage.takes}): {command}", flush=True)
        if subprocess.run(program, cwd=self.root, check=False).returncode:
            raise SystemExit(f"{stage.name} failed; go on with --from {stage.name}")
        if not sample:
            self.note(stage)

    def run_from(self, first: str, *, only: bool, sample: bool) -> None:
        """Run a stage, then each later one that is stale."""
        names = [stage.name for stage in self.stages]
        start = names.index(first)
        self.run(self.stages[start], sample=sample)
        for stage in [] if only or sample else self.stages[start + 1 :]:
            if self.stale(stage):
                self.run(stage)


def _shortly(reasons: Sequence[str]) -> str:
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"stale: {reasons[0]}{more}"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _names(glob: str, name: str) -> bool:
    """Whether a glob names a path: * stays within a folder."""
    parts, given = glob.split("/"), name.split("/")
    return len(parts) == len(given) and all(map(fnmatchcase, given, parts))


def _hash(path: Path, part: str) -> str:
    """Hash of a file, or of a part of a JSON file."""
    content = path.read_bytes()
    if part:
        content = part_of(content, part)
    return hashlib.sha256(content).hexdigest()[:16]


def part_of(content: bytes, part: str) -> bytes:
    """Text of a part of a JSON file, by keys with slashes."""
    value = json.loads(content)
    for key in part.split("/"):
        value = value[key]
    return json.dumps(value, sort_keys=True).encode()


def _differences(then: Mapping[str, str], now: Mapping[str, str], verb: str) -> Iterator[str]:
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            yield f"{verb} {name}, which is gone"
        elif name not in then:
            yield f"{verb} {name}, which is new"
        elif then[name] != now[name]:
            yield f"{verb} {name}, which has changed"


def main(arguments: Sequence[str] | None = None, build: Build | None = None) -> int:
    """Say what is stale, or run stages; the exit status."""
    build = build or Build(root=ROOT)
    stage_of = {stage.name: stage for stage in build.stages}
    names = list(stage_of)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="fail if anything is stale")
    parser.add_argument("--from", dest="first", choices=names, metavar="STAGE", help="run it")
    parser.add_argument("--only", action="store_true", help="no later stage")
    parser.add_argument("--sample", action="store_true", help="the stage's shorter command")
    parser.add_argument("--adopt", choices=names, metavar="STAGE", help="take what is there")
    parser.add_argument("--because", metavar="WORDS", help="why --adopt does not run it")
    parser.add_argument("--record", choices=names, metavar="STAGE", help="it was run by hand")
    options = parser.parse_args(arguments)
    if options.record:
        build.note(stage_of[options.record])
    if bool(options.adopt) != bool(options.because):
        parser.error("--adopt STAGE and --because WORDS go together")
    if options.adopt:
        build.note(stage_of[options.adopt], because=options.because)
    if options.first:
        build.run_from(options.first, only=options.only, sample=options.sample)
    stale = 0
    for stage in build.stages:
        reasons = build.stale(stage)
        stale += bool(reasons)
        if reasons or not options.check:
            print(f"{stage.name:21} {_shortly(reasons) if reasons else build.made(stage)}")
    missing = build.without_maker()
    for name in missing:
        print(f"{name} ships, and no stage of scripts/stages.py makes it")
    if options.check and not stale and not missing:
        print(f"nothing is stale: {len(names)} stages")
    return int(options.check and bool(stale or missing))


if __name__ == "__main__":
    sys.exit(main())
