"""`driple predict --jobs`: a stream of jobs and clusters, answered by an engine and resumable.

    JOBS.jsonl -> blocks of lines -> engine -> rows, in order -> OUT.part -> OUT.jsonl, OUT.parquet

Rows go to OUT.part. Once a second they are on the disk, and OUT.part.json states how far they
reach: an interrupted run goes on from there, and ends with the same bytes. Memory does not grow
with the number of lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from driple.api.answering_tables import row_schema
from driple.api.arguments import PathLike
from driple.api.predicting_lines import (
    MOST_LINE_BYTES,
    LineBlock,
    LineOptions,
    answer_lines,
)
from driple.api.results import Cell, Result
from driple.codec import Json, from_json, to_dict
from driple.dataset.tables import require_pyarrow
from driple.engine.engine import Engine, open_engine
from driple.errors import ConfigError
from driple.extras import driple_version
from driple.files import atomic_replace, atomic_write, wrap_os_error
from driple.locks import locked
from driple.storedfiles import check_regular, read_json

if TYPE_CHECKING:
    from driple.api.json_types.predict import JobsAnsweredJson

__all__ = ["SUFFIXES", "AnsweredJobs", "predict_jobs"]

SUFFIXES = (".jsonl", ".parquet")
_LINES = 32  # of a block
_STORED_S = 1.0  # between two times at which all is on the disk
_FORMAT = 1
_ROWS = 20_000  # of a row group
_CHUNK_BYTES = 1 << 20
_PARQUET = "answers in Parquet"  # what needs pyarrow


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class AnsweredJobs(Result):
    """What a run of `predict --jobs` has written.

    Attributes:
        output: the file.
        lines: that were read, empty ones included.
        answers: rows of the file.
        errors: rows with a reason in place of an answer.
        resumed_at: line at which this run went on; 0 if it began at the begin.
    """

    output: Path
    lines: int
    answers: int
    errors: int
    resumed_at: int

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple predict --jobs --json` prints."""
        as_json: JobsAnsweredJson = {
            "question": "predict_jobs",
            "output": str(self.output),
            "lines": self.lines,
            "rows": self.answers,
            "errors": self.errors,
            "resumed_at": self.resumed_at,
        }
        return to_dict(as_json)

    def rows(self) -> list[dict[str, Cell]]:
        """One row: the counts. The answers are in the file."""
        return [
            {
                "output": str(self.output),
                "lines": self.lines,
                "rows": self.answers,
                "errors": self.errors,
            }
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _State:
    """How far OUT.part reaches.

    Attributes:
        format: of this file.
        version: of Driple.
        options: what holds for all lines.
        lines: that are answered.
        digest: SHA-256 of these lines.
        nbytes: of their rows.
        rows: how many.
        errors: how many of them are errors.
    """

    format: int = _FORMAT
    version: str
    options: str
    lines: int = 0
    digest: str = field(default_factory=lambda: hashlib.sha256().hexdigest())
    nbytes: int = 0
    rows: int = 0
    errors: int = 0


def predict_jobs(
    jobs: PathLike,
    output: PathLike,
    *,
    engine: str = "local",
    workers: int = 2,
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AnsweredJobs:
    """Answer each line of a file of jobs: a row for each job and cluster, in the order of lines.

    Args:
        jobs: file of JSON lines, such as `{"job": "resnet50", "setting": "8xH100"}`, with the names
            of `LINE_FIELDS`. `setting` may be a list, which gives a row for each.
        output: file to write, `.jsonl` or `.parquet`, with the columns of `COLUMNS`.
        engine: `local` or `ray`.
        workers: processes; on a cluster of Ray its own processors count.
        catalogs: files of own devices and links.
        machine: file of `driple measure --machine`.
        progress: called with (lines done, lines in all).

    Returns:
        What was written. A line that has no answer is a row with its reason.

    Raises:
        ConfigError: a file that cannot be read or written, another suffix, an interrupted run of
            other lines, or a second run at the same time.
        CatalogError: a catalogue or a machine file that cannot be read.
        MissingExtraError: Parquet without pyarrow, or Ray without Ray.
        EngineError: workers die over and over.
    """
    source, target = Path(jobs), Path(output)
    options = LineOptions.of(catalogs, machine)
    if target.suffix not in SUFFIXES:
        raise ConfigError(f"-o {target} needs a name that ends with {' or '.join(SUFFIXES)}")
    if target.is_dir():
        raise ConfigError(f"-o {target} is a folder; give the name of a file in it")
    if target.suffix == ".parquet":
        require_pyarrow(_PARQUET)
    with wrap_os_error(ConfigError, f"read {source}", "give a file of JSON lines with --jobs"):
        check_regular(source)
        total = _count_lines(source)
    part = target.with_name(f"{target.name}.part")
    with wrap_os_error(ConfigError, f"write {part}"):
        part.touch()
    held = f"another run of driple predict --jobs writes {target}; wait for it, or give another -o"
    with locked(part, error=ConfigError, held=held):
        state = _state_of(part, source, options)
        resumed_at = state.lines
        progress(state.lines, total)
        blocks = max(-(-(total - state.lines) // _LINES), 1)
        with open_engine(engine, workers=min(workers, blocks)) as running:
            for done in _answered(running, options, source, part, state):
                state = done
                progress(state.lines, total)
        _finish(part, target, state)
    return AnsweredJobs(
        output=target,
        lines=state.lines,
        answers=state.rows,
        errors=state.errors,
        resumed_at=resumed_at,
    )


def _count_lines(source: Path) -> int:
    """Lines of a file, which is read in pieces."""
    count, last = 0, b"\n"
    with source.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def _state_of(part: Path, source: Path, options: LineOptions) -> _State:
    """Where to go on; what OUT.part holds beyond that is cut off.

    Raises:
        ConfigError: it is of other lines, options or another version.
    """
    begin = _State(version=driple_version(), options=repr(options))
    file, advice = _state_file(part), f"delete {part} to begin anew"
    state = begin
    if file.exists():
        try:
            stored = read_json(file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file} is damaged ({error}); {advice}") from error
        state = from_json(_State, stored, where=f"{file} is damaged", advice=advice)
        if (state.format, state.version, state.options) != (
            begin.format, begin.version, begin.options,
        ):  # fmt: skip
            raise ConfigError(
                f"{part} is of an interrupted run of another version ({state.version}) or with "
                f"other catalogues; {advice}"
            )
        nbytes = part.stat().st_size
        if nbytes < state.nbytes:  # it was deleted, to begin anew
            state = begin
    with wrap_os_error(ConfigError, f"write {part}"):
        os.truncate(part, state.nbytes)
    if state.lines and _digest(source, state.lines) != state.digest:
        raise ConfigError(
            f"{part} is of an interrupted run of other lines than those of {source}; {advice}"
        )
    return state


def _state_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _digest(source: Path, lines: int) -> str:
    """SHA-256 of the first lines of a file."""
    digest = hashlib.sha256()
    with source.open("rb") as file:
        for _ in range(lines):
            _read_line(file, digest)
    return digest.hexdigest()


def _read_line(file: IO[bytes], digest: Any) -> bytes | None:
    """The next line; None of one that is too long, of which no more is kept than may be."""
    line = file.readline(MOST_LINE_BYTES + 1)
    digest.update(line)
    if len(line) <= MOST_LINE_BYTES or line.endswith(b"\n"):
        return line
    while piece := file.readline(_CHUNK_BYTES):
        digest.update(piece)
        if piece.endswith(b"\n"):
            break
    return None


@dataclass(frozen=True, slots=True)
class _Read:
    """A block, and what was read up to its end."""

    block: LineBlock
    digest: str


def _blocks(source: Path, begin: int) -> Iterator[_Read]:
    """Blocks of the lines after the first ones; few of them are in memory."""
    digest = hashlib.sha256()
    with source.open("rb") as file:
        for _ in range(begin):
            _read_line(file, digest)
        number = begin
        while True:
            lines: list[bytes | None] = []
            while len(lines) < _LINES:
                line = _read_line(file, digest)
                if line == b"":
                    break
                lines.append(line)
            if not lines:
                return
            yield _Read(LineBlock(first=number + 1, lines=tuple(lines)), digest.hexdigest())
            number += len(lines)


def _answered(
    engine: Engine, options: LineOptions, source: Path, part: Path, state: _State
) -> Iterator[_State]:
    """Answer block after block, and write the rows; yields how far they reach."""
    waiting: deque[_Read] = deque()

    def coming() -> Iterator[LineBlock]:
        for read in _blocks(source, state.lines):
            waiting.append(read)
            yield read.block

    begin = state
    stored_s = time.monotonic()
    with wrap_os_error(ConfigError, f"write {part}"), part.open("r+b", buffering=0) as file:
        file.seek(begin.nbytes)
        for rows, count, errors in engine.stream(answer_lines, options, coming()):
            read = waiting.popleft()
            _write_all(file, rows)
            state = replace(
                state,
                lines=state.lines + len(read.block.lines),
                digest=read.digest,
                nbytes=state.nbytes + len(rows),
                rows=state.rows + count,
                errors=state.errors + errors,
            )
            if time.monotonic() - stored_s > _STORED_S:
                _store(file, part, state)
                stored_s = time.monotonic()
            yield state
        os.fsync(file.fileno())


def _write_all(file: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _store(file: IO[bytes], part: Path, state: _State) -> None:
    """Have the rows on the disk, then how far they reach."""
    os.fsync(file.fileno())
    atomic_write(_state_file(part), json.dumps(to_dict(state)).encode(), error=ConfigError)


def _finish(part: Path, target: Path, state: _State) -> None:
    """Put the rows in the place of the output."""
    with wrap_os_error(ConfigError, f"write {target}"):
        if target.suffix == ".parquet":
            with atomic_replace(target) as (part_file,):
                _write_parquet(part, part_file)
            part.unlink()
        else:
            part.replace(target)
        _state_file(part).unlink(missing_ok=True)


def _write_parquet(part: Path, target: Path) -> None:
    """The rows as a Parquet file, a group of them at a time."""
    arrow = require_pyarrow(_PARQUET)
    from pyarrow import parquet

    schema = row_schema()
    with part.open("rb") as file, parquet.ParquetWriter(target, schema) as writer:
        rows: list[dict[str, Cell]] = []
        for line in file:
            rows.append(json.loads(line))
            if len(rows) == _ROWS:
                writer.write_table(arrow.Table.from_pylist(rows, schema))
                rows = []
        writer.write_table(arrow.Table.from_pylist(rows, schema))
