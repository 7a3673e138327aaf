"""Whether a stage brings back a file that it ships: scripts/checks/rebuild.json.

    python -m scripts.checks.rebuild [STAGE ...] [--write] [--work FOLDER]

fresh clone - a file of the stage --python -m scripts.build --only--> the file --> equal, or not

All stages if none is named; a stage of hours runs its sample. A part of a file that the stage
itself reads stays, and is compared when the stage has written it again. What a sample made of a
file is compared row by row. What is committed counts. `--write` puts the results in place of those
of the same stages. `--work` keeps the clone: fits and traces that a stage leaves in its ignored
folders serve the next stages, and a stage that was stopped goes on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write
from scripts.build import PART, ROOT, Build, part_of
from scripts.checks.compared import DIFFERS, SIX_DIGITS, compared, difference, rows_made
from scripts.stages import STAGES, Stage

__all__ = ["Rebuilt", "main", "rebuilt"]

RESULT = Path(__file__).with_suffix(".json")
IN_PART = "equal in the rows of the sample"
WHOLE = (".json", ".json.gz", ".parquet", ".safetensors")  # made whole, or not at all
FAILED, NOT_RUN = "failed", "not run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """What came of a stage.

    Attributes:
        result: of the comparison, or why there is none.
        file: that was deleted, or the parts of a file that were made again; empty if none was.
        command: that ran, as `python -m` takes it; empty if none did.
        why: it failed, was not run or differs; empty otherwise.
        rows: of a sample that makes a part of the file: how many are equal; empty otherwise.
        seconds: of the command.
        date: of today.
        commit: of the clone.
    """

    result: str
    file: str = ""
    command: str = ""
    why: str = ""
    rows: str = ""
    seconds: float = 0.0
    date: str = ""
    commit: str = ""


def rebuilt(checkout: Build, stage: Stage, folder: Path) -> Rebuilt:
    """Clone a checkout, delete a file of a stage, run the stage, and compare.

    Args:
        checkout: whose last commit is cloned.
        stage: of it.
        folder: for the clone; one that is there is brought to the commit, its ignored files stay.
    """
    clone = Build(
        root=folder, stages=checkout.stages, by_hand=checkout.by_hand, shipped=checkout.shipped
    )
    _clone(checkout.root, folder)
    date, commit = _today(), _git("-C", str(folder), "rev-parse", "--short=12", "HEAD")
    if stage.needs:
        return Rebuilt(result=NOT_RUN, why=f"needs {stage.needs}", date=date, commit=commit)
    names = _deleted(clone, stage)
    before = _content(clone, names)
    file, _, part = names[0].partition(PART)
    written_ns = (folder / file).stat().st_mtime_ns
    if not part:
        (folder / file).unlink()
    start = time.monotonic()
    result, why, rows = FAILED, "", ""
    try:
        clone.run_from(stage.name, only=True, sample=bool(stage.sample))
        after = _content(clone, names)
        if part and (folder / file).stat().st_mtime_ns == written_ns:
            raise SystemExit(f"{file} was not written")
        result, why, rows = _outcome(before, after, names[0], sample=bool(stage.sample))
    except (SystemExit, FileNotFoundError) as error:
        why = str(error)
    return Rebuilt(
        result=result,
        file=", ".join(names),
        command=stage.sample or stage.command,
        why=why,
        rows=rows,
        seconds=round(time.monotonic() - start, 1),
        date=date,
        commit=commit,
    )


def _outcome(before: bytes, after: bytes, file: str, *, sample: bool) -> tuple[str, str, str]:
    """Result, why, and rows of a sample."""
    result = compared(before, after, file)
    if result == SIX_DIGITS:
        return result, difference(before, after, file), ""
    if result != DIFFERS:
        return result, "", ""
    if sample and PART not in file and not file.endswith(WHOLE):
        equal, ours, ship = rows_made(before, after, file)
        rows = f"{equal} of {ours} made, {ship} ship"
        if 0 < equal == ours:
            return IN_PART, "", rows
        if ours < ship:
            return DIFFERS, "", rows
        return DIFFERS, difference(before, after, file), rows
    return DIFFERS, difference(before, after, file), ""


def _clone(source: Path, folder: Path) -> None:
    """A clone of the last commit of a checkout; one that is there keeps its ignored files."""
    if not folder.exists():
        _git("clone", "-q", str(source), str(folder))
        return
    _git("-C", str(folder), "fetch", "-q", str(source), "HEAD")
    _git("-C", str(folder), "reset", "-q", "--hard", "FETCH_HEAD")
    _git("-C", str(folder), "clean", "-q", "-f", "-d")


def _deleted(build: Build, stage: Stage) -> list[str]:
    """What of a stage is compared: what its sample makes, else its first file, else its parts."""
    names = [stage.sample_writes] if stage.sample else list(build.hashes(stage.writes))
    files = [name for name in names if PART not in name]
    return files[:1] or names


def _content(build: Build, names: Sequence[str]) -> bytes:
    """Bytes of a file, or the texts of parts of one."""
    texts = []
    for name in names:
        file, _, part = name.partition(PART)
        content = (build.root / file).read_bytes()
        texts.append(part_of(content, part) if part else content)
    return b"\n".join(texts)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def main(arguments: Sequence[str] | None = None) -> int:
    """Rebuild stages one after another; 1 if a file failed to come back equal."""
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(names))
    parser.add_argument("--write", action="store_true", help=f"into {RESULT.name}")
    parser.add_argument("--work", type=Path, help="folder of a clone that stays")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.stages) - set(names)):
        parser.error(f"{unknown[0]} is no stage; give some of {', '.join(names)}")
    checkout, status = Build(root=ROOT), 0
    for stage in STAGES:
        if options.stages and stage.name not in options.stages:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = rebuilt(checkout, stage, options.work or Path(folder) / "clone")
        status |= outcome.result in (DIFFERS, FAILED)
        words = (outcome.file, outcome.rows, outcome.why)
        print(f"{stage.name:21} {outcome.result}: {', '.join(filter(None, words))}", flush=True)
        if options.write:
            known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
            known[stage.name] = asdict(outcome)
            text = json.dumps(dict(sorted(known.items())), indent=1) + "\n"
            atomic_write(RESULT, text.encode(), error=DripleError)
    return status


if __name__ == "__main__":
    sys.exit(main())
