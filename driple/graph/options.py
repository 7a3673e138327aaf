"""Options for reading a graph file: sizes that it leaves open, the train op, turns of a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driple.checks import check_text, check_whole
from driple.errors import ConfigError

__all__ = [
    "GRAPH_FORMATS",
    "GRAPH_SUFFIXES",
    "LARGEST_DIMENSION",
    "MOST_LOOP_TURNS",
    "ReadOptions",
    "sizes_of",
]

GRAPH_SUFFIXES = (".pb", ".pbtxt", ".meta")
GRAPH_FORMATS = f"{', '.join(GRAPH_SUFFIXES)}, also .gz"
LARGEST_DIMENSION = 2**31 - 1
MOST_LOOP_TURNS = 10**6
_MAX_RANK = 16
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*(?::\d{1,3})?")


def sizes_of(value: object) -> tuple[int, ...] | None:
    """The sizes of a shape, from any sequence of whole numbers; None if it is no shape."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return None
    fits = all(
        isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= LARGEST_DIMENSION
        for size in value
    )
    return tuple(value) if fits else None


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
        ConfigError: a number out of range or of another type, or a name that no node can have.
    """

    batch_size: int | None = None
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    target: str | None = None
    loop_turns: int | None = None

    def __post_init__(self) -> None:
        for flag, number, most in (
            ("--batch-size", self.batch_size, LARGEST_DIMENSION),
            ("--set loop_turns", self.loop_turns, MOST_LOOP_TURNS),
        ):
            if number is not None:
                check_whole(flag, number, 1, most)
        if self.target is not None:
            check_text("--set target", self.target)
        object.__setattr__(self, "inputs", _checked_inputs(self.inputs))


def _checked_inputs(inputs: object) -> dict[str, tuple[int, ...]]:
    """A copy of the shapes by name.

    Raises:
        ConfigError: no shapes by name, a name that no node can have, or a size out of range.
    """
    if not isinstance(inputs, Mapping):
        raise ConfigError(
            f"--input needs shapes by the names of inputs, such as {{'images': (32, 224, 224, 3)}},"
            f" got {inputs!r:.80}"
        )
    checked = {}
    for name, shape in inputs.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"--input {str(name)[:80]!r} is not the name of a node")
        sizes = sizes_of(shape)
        if sizes is None or len(sizes) > _MAX_RANK:
            raise ConfigError(
                f"--input {name[:80]} needs up to {_MAX_RANK} sizes, whole numbers from 1 to "
                f"{LARGEST_DIMENSION}, got {shape!r:.80}"
            )
        checked[name] = sizes
    return checked
