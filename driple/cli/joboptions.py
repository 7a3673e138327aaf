"""Options of every command that takes a JOB, made from the table of job options (`JobOptions`).

@job_options                       adds --batch-size, --input, --seq-len, --precision, ...; passes
def predict(job, options, ...)     one JobOptions
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from driple.cli.overrides import SetOption, SetTable, SetValue, read_values
from driple.errors import ConfigError
from driple.graph.options import LARGEST_DIMENSION, ReadOptions
from driple.jobs.load import JOB_HELP, JobOptions
from driple.jobs.option_row import JobOption
from driple.jobs.options import JOB_OPTIONS
from driple.rules import short

__all__ = [
    "LINK_BANDWIDTH_HELP",
    "CatalogOption",
    "EngineOption",
    "JobArgument",
    "MachineOption",
    "SettingOption",
    "file_options",
    "job_options",
    "options_of",
]

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help=JOB_HELP)]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(help="cluster setting, such as V100-P1w2; may be given several times"),
]
CatalogOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        help="catalogue file (TOML) with devices, links, instances and prices of your own, which "
        "take precedence; may be given several times",
    ),
]

MachineOption = Annotated[
    Path | None,
    typer.Option(
        "--machine",
        metavar="FILE",
        help="file of driple measure --machine: the host, GPUs and links of your machine, which "
        "take precedence over catalogues",
    ),
]

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local: processes of this machine (--set processes); ray: the cluster of RAY_ADDRESS",
    ),
]

LINK_BANDWIDTH_HELP = (
    "what joins the devices of --setting, as measured: bus bandwidth of a large all-reduce over "
    "all of them, such as 5.08GB/s, or a file with the output of all_reduce_perf (nccl-tests)"
)

_SCALAR = "scalar"
_FIRST_OUTPUT = ":0"  # as TensorFlow names the tensor of an op
_LONGEST_SIZE = len(str(LARGEST_DIMENSION))
_SET = "set_"
_FILE_NAMES = {*(column.name for column in fields(ReadOptions)), "max_bytes"}


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a JOB in place of its parameter `options`.

    Its `--set`, if it has one, also takes the values of a JOB; the command gets its own. A command
    with a parameter `batch_sizes`, which takes several, has no other `--batch-size`.
    """
    return _with_options(command, JOB_OPTIONS)


def file_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that takes graph files only: the options of their reader."""
    return _with_options(command, [row for row in JOB_OPTIONS if row.name in _FILE_NAMES])


def _with_options(command: Callable[..., None], rows: Sequence[JobOption]) -> Callable[..., None]:
    known = inspect.signature(command, eval_str=True).parameters
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in known.items()
        if name not in ("options", _SET)
    ]
    flags = _flags(rows)
    if "batch_sizes" in known:
        del flags["--batch-size"]
    tables = known[_SET].annotation.__metadata__[0].tables if _SET in known else ()
    declared = SetOption(*tables, SetTable("Of a JOB", _set_values(rows)))
    added = [_parameter(those) for those in flags.values()]
    added.append(_keyword(_SET, list[str] | None, declared, None))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {those[0].name: values.pop(those[0].name) for those in flags.values()}
        job_texts, other_texts = _parted(values.pop(_SET), rows, declared.names)
        if tables:
            values[_SET] = other_texts
        command(options=options_of(given, job_texts), **values)

    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return run


def _flags(rows: Iterable[JobOption]) -> dict[str, list[JobOption]]:
    """Rows by the option that a user types; without those of `--set`."""
    flags: dict[str, list[JobOption]] = {}
    for row in rows:
        if not row.set_name:
            flags.setdefault(row.typed, []).append(row)
    return flags


def _set_values(rows: Iterable[JobOption]) -> tuple[SetValue, ...]:
    """The values of a JOB that `--set` changes."""
    return tuple(
        SetValue(row.set_name, row.help, row.rule, row.typed_default or row.default)
        for row in rows
        if row.set_name
    )


def _parameter(rows: Sequence[JobOption]) -> inspect.Parameter:
    """The parameter of a command for rows that share a flag."""
    row, kind = rows[0], rows[0].rule.type
    declared = typer.Option(
        row.typed,
        metavar=row.metavar,
        help="; ".join(part.help for part in rows),
        callback=None if row.rule.adds else _reader(row),
    )
    if kind is bool:
        return _keyword(row.name, bool, declared, False)
    return _keyword(row.name, (list[str] if row.rule.adds else kind) | None, declared, None)


def _keyword(name: str, kind: Any, declared: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, declared],
    )


def _reader(row: JobOption) -> Callable[[typer.CallbackParam, Any], Any]:
    """A callback that reads and checks what was typed, before any work."""

    def read(param: typer.CallbackParam, value: Any) -> Any:
        if value is None:
            return None
        is_text = isinstance(value, str | Path)
        return row.rule.read(row.flag, str(value)) if is_text else row.checked(value)

    return read


def _parted(
    given: Sequence[str] | None, rows: Iterable[JobOption], names: Sequence[str]
) -> tuple[list[str], list[str] | None]:
    """The texts of `--set` that are of a JOB, and those of the command.

    Raises:
        ConfigError: one that is neither.
    """
    mine = {row.set_name for row in rows}
    job_texts: list[str] = []
    others: list[str] = []
    for words in given or ():
        name, equals, _ = words.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or key not in names:
            raise ConfigError(
                f"--set needs NAME=VALUE with one of {', '.join(names)}, got {short(words)}"
            )
        (job_texts if key in mine else others).append(words)
    return job_texts, others or None


def options_of(flags: Mapping[str, Any], set_texts: Iterable[str] = ()) -> JobOptions:
    """The options of a job from what was typed.

    Args:
        flags: values by their names in `JobOptions`, None where an option was left out; `inputs`
            are the texts of `--input`.
        set_texts: NAME=VALUE texts of `--set`.

    Raises:
        ConfigError: an option out of range, an `--input` that is no shape, is given twice or has a
            name that no node can have.
    """
    values = {name: value for name, value in flags.items() if value is not None}
    values["inputs"], values["input_shape"] = _shapes_of(values.get("inputs", ()))
    read = read_values(_set_values(JOB_OPTIONS), set_texts)
    names = {row.set_name: row.name for row in JOB_OPTIONS}
    return JobOptions(**values, **{names[name]: value for name, value in read.items()})


def _shapes_of(
    texts: Sequence[str],
) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...] | None]:
    """Shapes of named inputs of a graph, and the shape of one sample of a model."""
    named: dict[str, tuple[int, ...]] = {}
    sample: tuple[int, ...] | None = None
    for given in texts:
        name, shape = _input_of(given)
        if not name:
            if sample is not None:
                raise ConfigError(
                    "--input was given twice for a model; give the shape of one sample"
                )
            sample = shape
            continue
        if name.removesuffix(_FIRST_OUTPUT) in {
            known.removesuffix(_FIRST_OUTPUT) for known in named
        }:
            raise ConfigError(f"--input {name[:80]} is given twice; give one shape")
        named[name] = shape
    return named, sample


def _input_of(given: str) -> tuple[str, tuple[int, ...]]:
    """Name and shape from `images=32x300x300x3`; no name from `3x224x224`."""
    name, equals, shape = given.rpartition("=")
    if equals and name and shape == _SCALAR:
        return name, ()
    sizes = shape.lower().split("x")
    fine = all(size.isascii() and size.isdecimal() and len(size) <= _LONGEST_SIZE for size in sizes)
    if not fine or (equals and not name):
        raise ConfigError(
            "--input needs the shape of one sample such as 3x224x224, or NAME=SHAPE of a graph "
            f"file such as images=32x300x300x3, got '{given[:80]}'"
        )
    return name, tuple(int(size) for size in sizes)
