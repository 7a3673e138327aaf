"""Options of every command that takes a JOB, defined once.

@job_options                       adds --batch-size, --input, --target, --loop-turns, --max-mib,
def predict(job, options, ...)     --data-function and --loss-function; passes one JobOptions
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from driple.cli.numbers import finite_number, whole_number
from driple.errors import ConfigError
from driple.graph.options import LARGEST_DIMENSION, MOST_LOOP_TURNS, ReadOptions
from driple.jobs.load import JOB_HELP, MAX_MIB, JobOptions

__all__ = [
    "MAX_MIB",
    "BatchSizeOption",
    "CatalogOption",
    "DataFunctionOption",
    "InputOption",
    "JobArgument",
    "LoopTurnsOption",
    "LossFunctionOption",
    "MaxMibOption",
    "SettingOption",
    "TargetOption",
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

_MIB_BYTES = 2**20
_MOST_MIB = 2**20
_SCALAR = "scalar"
_FIRST_OUTPUT = ":0"  # as TensorFlow names the tensor of an op
_LONGEST_SIZE = len(str(LARGEST_DIMENSION))

BatchSizeOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="samples of a device in a step; sets the first dimension of inputs that leave it open",
        callback=whole_number(1, LARGEST_DIMENSION),
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=SHAPE",
        help="shape of an input of the graph, such as images=32x300x300x3, or rate=scalar; "
        "NAME:OUTPUT=SHAPE, such as IteratorGetNext:1=32x16, for a node with several outputs, "
        "counted from 0; may be given several times",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option("--target", help="name of the train op; default: the one with the most ops"),
]
LoopTurnsOption = Annotated[
    int | None,
    typer.Option(
        "--loop-turns",
        help="turns of each loop whose number of turns is not in the graph; default: 1",
        callback=whole_number(1, MOST_LOOP_TURNS),
    ),
]
MaxMibOption = Annotated[
    float,
    typer.Option(
        "--max-mib",
        help="refuse graph files larger than this, in MiB",
        callback=finite_number(above=0, most=_MOST_MIB),
    ),
]
DataFunctionOption = Annotated[
    str | None,
    typer.Option("--data-function", help="FILE.py:FUNCTION that builds your model's data set"),
]
LossFunctionOption = Annotated[
    str | None,
    typer.Option(
        "--loss-function",
        help="FILE.py:FUNCTION of your model's outputs and labels; default: cross entropy",
    ),
]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "batch_size": (BatchSizeOption, None),
    "inputs": (InputOption, None),
    "target": (TargetOption, None),
    "loop_turns": (LoopTurnsOption, None),
    "max_mib": (MaxMibOption, MAX_MIB),
    "data_function": (DataFunctionOption, None),
    "loss_function": (LossFunctionOption, None),
}


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a JOB in place of its parameter `options`."""
    known = inspect.signature(command, eval_str=True)
    own = [one for one in known.parameters.values() if one.name != "options"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in _OPTIONS}
        command(options=options_of(**given), **values)

    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    signature = known.replace(parameters=[*own, *shared])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads
    run.__annotations__ = {one.name: one.annotation for one in (*own, *shared)}
    return run


def options_of(
    batch_size: int | None = None,
    inputs: Sequence[str] | None = None,
    target: str | None = None,
    loop_turns: int | None = None,
    max_mib: float = MAX_MIB,
    data_function: str | None = None,
    loss_function: str | None = None,
) -> JobOptions:
    """Check and collect the options of a job.

    Raises:
        ConfigError: an `--input` that is no NAME=SHAPE, or one that is given twice.
        GraphError: a name that no node can have, or a size out of range.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in inputs or []:
        name, shape = _input_of(text)
        if name.removesuffix(_FIRST_OUTPUT) in {one.removesuffix(_FIRST_OUTPUT) for one in shapes}:
            raise ConfigError(f"--input {name[:80]} is given twice; give one shape")
        shapes[name] = shape
    return JobOptions(
        read=ReadOptions(
            batch_size=batch_size,
            inputs=shapes,
            target=None if target is None else target.removesuffix(_FIRST_OUTPUT),
            loop_turns=loop_turns,
        ),
        max_bytes=max(int(max_mib * _MIB_BYTES), 1),
        data_function=data_function,
        loss_function=loss_function,
    )


def _input_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Name and shape from `images=32x300x300x3`."""
    name, equals, shape = text.rpartition("=")
    if equals and name and shape == _SCALAR:
        return name, ()
    sizes = shape.lower().split("x")
    fine = all(size.isascii() and size.isdecimal() and len(size) <= _LONGEST_SIZE for size in sizes)
    if not (name and equals and fine):
        raise ConfigError(
            f"--input needs NAME=SHAPE such as images=32x300x300x3, got '{text[:80]}'"
        )
    return name, tuple(int(size) for size in sizes)
