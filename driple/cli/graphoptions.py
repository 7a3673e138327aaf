"""Options of every command that takes a graph file: its open sizes, its train op, its limits.

--batch-size 32 --input images=32x300x300x3 --target train_op --loop-turns 35 --max-mib 512
--graph_options-->  GraphOptions, for `driple.cli.source.read_source`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from driple.cli.numbers import finite_number, whole_number
from driple.errors import ConfigError
from driple.graph.options import GRAPH_FORMATS, LARGEST_DIMENSION, MOST_LOOP_TURNS, ReadOptions

__all__ = [
    "GRAPH_HELP",
    "MAX_MIB",
    "BatchSizeOption",
    "GraphOptions",
    "InputOption",
    "LoopTurnsOption",
    "MaxMibOption",
    "TargetOption",
    "graph_options",
]

GRAPH_HELP = f"GraphDef, MetaGraphDef or SavedModel: {GRAPH_FORMATS}, or a SavedModel's folder"
MAX_MIB = 512.0
_MIB_BYTES = 2**20
_MOST_MIB = 2**20
_SCALAR = "scalar"
_FIRST_OUTPUT = ":0"  # as TensorFlow names the tensor of an op
_LONGEST_SIZE = len(str(LARGEST_DIMENSION))

BatchSizeOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="samples of a worker in a step; sets the first dimension of inputs that leave it open",
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


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOptions:
    """What a user adds to a graph, ready for the reader.

    Attributes:
        read: sizes, train op and turns.
        max_bytes: largest graph file that is read.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    max_bytes: int = int(MAX_MIB * _MIB_BYTES)

    @property
    def file_flags(self) -> tuple[str, ...]:
        """The flags that were given and make sense for a graph file alone."""
        given = {
            "--input": self.read.inputs,
            "--target": self.read.target,
            "--loop-turns": self.read.loop_turns,
        }
        return tuple(flag for flag, value in given.items() if value)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that were given, but for the limit."""
        return (*(["--batch-size"] if self.read.batch_size else []), *self.file_flags)


def graph_options(
    batch_size: int | None = None,
    inputs: Sequence[str] | None = None,
    target: str | None = None,
    loop_turns: int | None = None,
    max_mib: float = MAX_MIB,
) -> GraphOptions:
    """Check and collect the options of a graph.

    Raises:
        ConfigError: an `--input` that is no NAME=SHAPE, or one that comes twice.
        GraphError: a name that no node can have, or a size out of range.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in inputs or []:
        name, shape = _input_of(text)
        if name.removesuffix(_FIRST_OUTPUT) in {one.removesuffix(_FIRST_OUTPUT) for one in shapes}:
            raise ConfigError(f"--input {name[:80]} is given twice; give one shape")
        shapes[name] = shape
    return GraphOptions(
        read=ReadOptions(
            batch_size=batch_size,
            inputs=shapes,
            target=None if target is None else target.removesuffix(_FIRST_OUTPUT),
            loop_turns=loop_turns,
        ),
        max_bytes=max(int(max_mib * _MIB_BYTES), 1),
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
