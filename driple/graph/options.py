"""Options for reading a graph file: sizes that it leaves open, the train op, turns of a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from driple.errors import GraphError

__all__ = [
    "GRAPH_FORMATS",
    "GRAPH_SUFFIXES",
    "LARGEST_DIMENSION",
    "MOST_LOOP_TURNS",
    "ReadOptions",
    "no_inputs",
]

GRAPH_SUFFIXES = (".pb", ".pbtxt", ".meta")
GRAPH_FORMATS = f"{', '.join(GRAPH_SUFFIXES)}, also .gz"
LARGEST_DIMENSION = 2**31 - 1
MOST_LOOP_TURNS = 10**6
_MAX_RANK = 16
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*(?::\d{1,3})?")


def no_inputs() -> Mapping[str, tuple[int, ...]]:
    """The shapes of inputs where none is given."""
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """Values for dimensions and choices that a graph leaves open.

    Attributes:
        batch_size: samples per step of a worker; binds the unknown first dimension of its inputs.
            A graph whose batch is fixed to another number is refused.
        inputs: shape of an input by the name of its node; binds all of its unknown dimensions.
        target: name of the train op, where the graph has several.
        loop_turns: turns of each loop whose length the graph does not fix; one if None.

    Raises:
        GraphError: a number out of range, or a name that no node can have.
    """

    batch_size: int | None = None
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=no_inputs)
    target: str | None = None
    loop_turns: int | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None and not 1 <= self.batch_size <= LARGEST_DIMENSION:
            raise GraphError(
                f"--batch-size must be from 1 to {LARGEST_DIMENSION}, got {self.batch_size}"
            )
        if self.loop_turns is not None and not 1 <= self.loop_turns <= MOST_LOOP_TURNS:
            raise GraphError(
                f"--set loop_turns must be from 1 to {MOST_LOOP_TURNS}, got {self.loop_turns}"
            )
        for name, shape in self.inputs.items():
            if not _NAME.fullmatch(name):
                raise GraphError(f"--input {name[:80]!r} is not the name of a node")
            if len(shape) > _MAX_RANK or any(not 1 <= n <= LARGEST_DIMENSION for n in shape):
                raise GraphError(
                    f"--input {name[:80]} needs up to {_MAX_RANK} sizes from 1 to "
                    f"{LARGEST_DIMENSION}, got {'x'.join(map(str, shape))[:80]}"
                )
