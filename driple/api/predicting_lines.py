"""Lines of `driple predict --jobs`, answered one by one: an error is a row.

    {"job": "resnet50", "setting": "8xH100", "batch_size": 64}  --answer_lines-->  a row of JSON

A line has the names of the command line with `_` in place of `-`. It is data: what names user code
is refused, and what would be read beside the job has no name here. A job is read once by each
worker, and kept while others like it come.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.api.arguments import (
    PathLike,
    catalog_of,
    machine_of,
    path_of,
    paths_of,
    with_asked_scheme,
)
from driple.api.results import Cell
from driple.checks import check_text
from driple.errors import ConfigError, DripleError
from driple.jobs.load import JobOptions, load_job, reading_key
from driple.jobs.options import JOB_OPTIONS
from driple.storedfiles import parse_json
from driple.trace.targets import FIGURES, RESOURCES

if TYPE_CHECKING:
    from driple.api.predicting import Answer
    from driple.cluster.setting import Setting
    from driple.jobs.job import Job

__all__ = ["COLUMNS", "LINE_FIELDS", "MOST_LINE_BYTES", "LineBlock", "LineOptions", "answer_lines"]

MOST_LINE_BYTES = 64 * 2**10
_MOST_SETTINGS = 1000  # of a line
_LONGEST_REASON = 2000  # characters
_KEPT_NODES = 2_000_000  # of the graphs of all jobs that a worker keeps
_ANSWERED, _NO_OBJECT, _TOO_LONG, _REFUSED, _DEFECT = 200, 400, 413, 422, 500

# Of files beside the job, of user code, and limits of reading.
_LEFT_OUT = {"data", "trace", "own_code_s", "own_code_gib", "config", "max_bytes"}
_JOB_FIELDS = {row.name: row for row in JOB_OPTIONS if row.name not in _LEFT_OUT}
_ASKED = ("method", "preset", "seed", "placement", "host_us_per_op", "link_bandwidth")
LINE_FIELDS: tuple[str, ...] = ("job", "setting", "scheme", "steps", *_ASKED, *_JOB_FIELDS)
"""Names that a line may have."""

COLUMNS: Mapping[str, type] = {
    "line": int,
    "job": str,
    "setting": str,
    "status": int,
    "reason": str,
    "method": str,
    "iteration_time_s": float,
    "low_s": float,
    "high_s": float,
    "p10_s": float,
    "p50_s": float,
    "p90_s": float,
    "samples_per_s": float,
    "fits": str,
    "memory_bytes": float,
    "capacity_bytes": float,
    **{f"{resource}_{figure}": float for resource in RESOURCES for figure in FIGURES},
}
"""Columns of a row, each null where it is unknown; `line` counts from 1, `status` is as in HTTP."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineOptions:
    """What holds for all lines.

    Attributes:
        catalogs: files of own devices and links.
        machine: file of a measured machine.
    """

    catalogs: tuple[Path, ...] = ()
    machine: Path | None = None

    @classmethod
    def of(cls, catalogs: PathLike | Sequence[PathLike], machine: PathLike | None) -> LineOptions:
        """Options by the files that a user names, which are read once: refused before any line.

        Args:
            catalogs: files of own devices and links.
            machine: file of `driple measure --machine`.

        Raises:
            ConfigError: no paths.
            CatalogError: a file that cannot be read.
        """
        catalog_of(catalogs, machine_of(machine))
        return cls(
            catalogs=tuple(paths_of("--catalog", catalogs)), machine=path_of("--machine", machine)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LineBlock:
    """Lines that follow one another.

    Attributes:
        first: number of the first line, from 1.
        lines: content; None of one that is too long.
    """

    first: int
    lines: tuple[bytes | None, ...]


def answer_lines(options: LineOptions, block: LineBlock) -> tuple[bytes, int, int]:
    """The answers of a block: a task of an engine.

    Args:
        options: of all lines.
        block: lines.

    Returns:
        Rows, each a line of JSON; how many rows, and how many of them are errors.
    """
    rows = [
        {**dict.fromkeys(COLUMNS), "line": number, **row}
        for number, line in enumerate(block.lines, block.first)
        for row in _rows_of(options, line)
    ]
    text = "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in rows)
    return text.encode(), len(rows), sum(row["status"] != _ANSWERED for row in rows)


def _rows_of(options: LineOptions, line: bytes | None) -> list[dict[str, Cell]]:
    """A row for each setting of a line; none of an empty one."""
    if line is None:
        return [_error(_TOO_LONG, f"the line has more than {MOST_LINE_BYTES} bytes")]
    if not line.strip():
        return []
    try:
        asked = parse_json(line)
    except ValueError as error:
        return [_error(_NO_OBJECT, f"the line is no JSON: {error}")]
    if not isinstance(asked, dict):
        return [_error(_NO_OBJECT, f"the line must be a JSON object, got {line[:60]!r}")]
    known: dict[str, Cell] = {}
    if isinstance(asked.get("job"), str):
        known["job"] = asked["job"]
    try:
        settings = _settings(asked)
    except DripleError as error:
        return [known | _error(_REFUSED, str(error))]
    rows = []
    for setting in settings:
        own = known if setting is None else known | {"setting": setting}
        try:
            rows.append(own | _answered(options, asked, setting))
        except DripleError as error:
            rows.append(own | _error(_REFUSED, str(error)))
        except Exception as error:  # a defect, or no memory: the next line may have an answer
            words = f"a defect of Driple, {type(error).__name__}: {error}; report it with the line"
            rows.append(own | _error(_DEFECT, words))
    return rows


def _error(status: int, reason: str) -> dict[str, Cell]:
    return {"status": status, "reason": " ".join(reason.split())[:_LONGEST_REASON]}


def _settings(asked: Mapping[str, Any]) -> Sequence[str | None]:
    """The settings of a line; None for the job's usual one.

    Raises:
        ConfigError: an unknown field, or no text where one is needed.
    """
    for name in asked:
        if name not in LINE_FIELDS:
            raise ConfigError(f"unknown field {name[:60]!r}; known are {', '.join(LINE_FIELDS)}")
    if "job" not in asked:
        raise ConfigError('the line has no job; it is as {"job": "resnet50", "setting": "8xH100"}')
    check_text("job", asked["job"])
    given = asked.get("setting")
    settings = given if isinstance(given, list) else [given]
    if not 1 <= len(settings) <= _MOST_SETTINGS:
        raise ConfigError(f"setting has {len(settings)} names; give 1 to {_MOST_SETTINGS}")
    for setting in settings:
        if given is not None:
            check_text("setting", setting)
    return settings


def _answered(options: LineOptions, asked: Mapping[str, Any], name: str | None) -> dict[str, Cell]:
    """The row of a line on one setting.

    Raises:
        DripleError: what the question refuses.
    """
    from driple.api.predicting import predict

    setting = None if name is None else _setting(options, asked, name)
    if name is None and asked.get("scheme") is not None:
        raise ConfigError('scheme needs a setting, such as "setting": "8xH100"')
    for text in ("method", "preset", "placement"):
        if asked.get(text) is not None:
            check_text(text, asked[text])
    job_options = JobOptions(**{field: asked[field] for field in _JOB_FIELDS if field in asked})
    job = _JOBS.job(asked["job"], job_options, setting)
    result = predict(
        job,
        setting,
        num_steps=asked.get("steps"),
        catalogs=options.catalogs,
        machine=options.machine,
        **{field: asked[field] for field in _ASKED if asked.get(field) is not None},
    )
    return _row(result.answers[0])


def _setting(options: LineOptions, asked: Mapping[str, Any], name: str) -> Setting:
    """A setting with the scheme of the line.

    Raises:
        SettingError: an unknown setting, or a scheme that it does not have.
    """
    from driple.cluster.setting import parse_setting

    setting = parse_setting(name, options.catalogs, options.machine)
    scheme = asked.get("scheme")
    if scheme is None:
        return setting
    check_text("scheme", scheme)
    return with_asked_scheme([setting], scheme)[0]


def _row(answer: Answer) -> dict[str, Cell]:
    """One answer as a flat row."""
    from driple.api.predict_json import answer_row
    from driple.api.quantiles import quantiles_of
    from driple.api.throughput import throughput_of

    row = answer_row(answer)
    del row["job"]  # as the line has it
    row["status"] = _ANSWERED
    time = None if answer.best is None else answer.best.step_time
    spread = quantiles_of(time)
    if spread is not None:
        row |= {"p10_s": spread.p10, "p50_s": spread.p50, "p90_s": spread.p90}
    rate = None if time is None else throughput_of(answer)
    if rate is not None:
        row["samples_per_s"] = rate.samples_per_s.value
    memory = None if answer.memory is None else answer.memory.estimate
    if memory is not None and memory.needed is not None:
        row |= {"fits": memory.fits, "memory_bytes": memory.needed.value}
        row["capacity_bytes"] = memory.capacity_bytes
    return row


class _KeptJobs:
    """Jobs that this worker has read, and errors of those that it could not, within a bound."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Job | str] = OrderedDict()
        self._nodes = 0

    def job(self, text: str, options: JobOptions, setting: Setting | None) -> Job:
        """The job of a line.

        Raises:
            DripleError: it cannot be read, or is user code.
        """
        _refuse_code(text, options)
        key = (text, reading_key(text, options, setting))
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            self._keep(key, self._read(text, options, setting))
        kept = self._kept[key]
        if isinstance(kept, str):
            raise ConfigError(kept)
        return kept

    def _read(self, text: str, options: JobOptions, setting: Setting | None) -> Job | str:
        try:
            return load_job(text, options, setting=setting, forward=True)
        except DripleError as error:
            return str(error)

    def _keep(self, key: Hashable, job: Job | str) -> None:
        self._kept[key] = job
        self._nodes += _nodes(job)
        while self._nodes > _KEPT_NODES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._nodes -= _nodes(dropped)


def _nodes(job: Job | str) -> int:
    return 1000 if isinstance(job, str) else 1000 + job.graph.num_nodes


def _refuse_code(text: str, options: JobOptions) -> None:
    """Refuse a job that is code of a user.

    Raises:
        ConfigError: it is, or no such job.
    """
    from driple.jobs.own_model import OWN_MODEL
    from driple.jobs.readers import reader_of

    reader = reader_of(text, options)
    if reader.origin is OWN_MODEL.origin:
        raise ConfigError(
            f"{text[:80]} is code, which no line of a file runs; ask driple predict {text[:80]} "
            "for it alone, or give the graph that torch.onnx.export writes"
        )


_JOBS = _KeptJobs()
