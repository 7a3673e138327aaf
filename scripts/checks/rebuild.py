"""Whether a stage brings back a file that it ships: scripts/checks/rebuild.json.

    python -m scripts.checks.rebuild [STAGE ...] [--write]

fresh clone - a file of the stage --python -m scripts.build --only--> the file --> equal, or not

All stages if none is named; a stage of hours runs its sample. A part of a file that the stage
itself reads stays, and is compared when the stage has written it again. What is committed counts.
`--write` puts the results in place of those of the same stages.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import lzma
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write
from scripts.build import PART, ROOT, Build
from scripts.stages import STAGES, Stage

__all__ = ["Rebuilt", "compared", "main", "rebuilt"]

RESULT = Path(__file__).with_suffix(".json")
_DATE = re.compile(rb"\d{4}-\d\d-\d\d")
_UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}
EQUAL, BUT_DATES, UNPACKED = "equal", "equal but for dates", "equal once unpacked"
DIFFERS, FAILED, NOT_RUN = "differs", "failed", "not run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """What came of a stage.

    Attributes:
        result: of the comparison, or why there is none.
        file: that was deleted, or the part of a file that was made again; empty if none was.
        command: that ran, as `python -m` takes it; empty if none did.
        why: it failed or was not run; empty otherwise.
        seconds: of the command.
        date: of today.
        commit: of the clone.
    """

    result: str
    file: str = ""
    command: str = ""
    why: str = ""
    seconds: float = 0.0
    date: str = ""
    commit: str = ""


def compared(before: bytes, after: bytes, name: str) -> str:
    """How two contents of a file compare.

    Args:
        before: its bytes.
        after: its bytes once it was made again.
        name: of the file; its ending says how it is packed.
    """
    if before == after:
        return EQUAL
    if _DATE.sub(b"", before) == _DATE.sub(b"", after):
        return BUT_DATES
    unpack = _UNPACK.get(Path(name).suffix)
    return UNPACKED if unpack and unpack(before) == unpack(after) else DIFFERS


def rebuilt(checkout: Build, stage: Stage, folder: Path) -> Rebuilt:
    """Clone a checkout, delete a file of a stage, run the stage, and compare.

    Args:
        checkout: whose last commit is cloned.
        stage: of it.
        folder: for the clone; it is not there yet.
    """
    clone = Build(
        root=folder, stages=checkout.stages, by_hand=checkout.by_hand, shipped=checkout.shipped
    )
    _git("clone", "-q", str(checkout.root), str(folder))
    date, commit = _today(), _git("-C", str(folder), "rev-parse", "--short=12", "HEAD")
    if stage.needs:
        return Rebuilt(result=NOT_RUN, why=f"needs {stage.needs}", date=date, commit=commit)
    file = _deleted(clone, stage)
    before = _content(clone, file)
    if PART not in file:
        (folder / file).unlink()
    start = time.monotonic()
    why = ""
    try:
        clone.run_from(stage.name, only=True, sample=bool(stage.sample))
        result = compared(before, _content(clone, file), file)
    except (SystemExit, FileNotFoundError) as error:
        result, why = FAILED, str(error)
    return Rebuilt(
        result=result,
        file=file,
        command=stage.sample or stage.command,
        why=why,
        seconds=round(time.monotonic() - start, 1),
        date=date,
        commit=commit,
    )


def _deleted(build: Build, stage: Stage) -> str:
    """A file of a stage: one that its sample makes, else the first one, else a part of a file."""
    names = [stage.sample_writes] if stage.sample else list(build.hashes(stage.writes))
    return min(names, key=lambda name: PART in name)


def _content(build: Build, name: str) -> bytes:
    """Bytes of a file, or the hash of a part of one."""
    if PART in name:
        return build.hashes([name])[name].encode()
    return (build.root / name).read_bytes()


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
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.stages) - set(names)):
        parser.error(f"{unknown[0]} is no stage; give some of {', '.join(names)}")
    checkout, status = Build(root=ROOT), 0
    for stage in STAGES:
        if options.stages and stage.name not in options.stages:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = rebuilt(checkout, stage, Path(folder) / "clone")
        status |= outcome.result in (DIFFERS, FAILED)
        print(f"{stage.name:21} {outcome.result}: {outcome.file or outcome.why}", flush=True)
        if options.write:
            known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
            known[stage.name] = asdict(outcome)
            text = json.dumps(dict(sorted(known.items())), indent=1) + "\n"
            atomic_write(RESULT, text.encode(), error=DripleError)
    return status


if __name__ == "__main__":
    sys.exit(main())
