"""Signatures of ops: shapes and types of inputs and outputs, shared by many nodes.

A ResNet has thousands of nodes and a few hundred signatures, so what an op costs is worked out once
per signature (`driple.graph.cost`), and a data set stores each once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from driple.errors import GraphError
from driple.graph.datatypes import BYTES_OF
from driple.graph.opkind import KINDS
from driple.graph.tf.op_kinds import kind_of_op_type, op_type_of_kind

__all__ = ["OpSignature", "Tensor", "signatures_from_json", "signatures_to_json"]

_DEFAULT_BYTES = 4
_BETWEEN_ROWS = re.compile(r',(?=\["[A-Z_@][^"]*",\[)')
# Graphs of a family share most signatures; a data set of 832 graphs has some ten thousands.
_CACHED = 1 << 17


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output.

    Attributes:
        shape: sizes, -1 where unknown; None for an unknown rank.
        dtype: number of TensorFlow's DataType; 0 if unknown.
        is_parameter: whether it is a variable's value, read (and cast) but not computed with.
    """

    shape: tuple[int, ...] | None
    dtype: int
    is_parameter: bool = False

    @property
    def elements(self) -> int:
        """Number of elements; an unknown dimension counts as 1, an unknown rank as none."""
        return 0 if self.shape is None else prod(1 if n == -1 else n for n in self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * BYTES_OF.get(self.dtype, _DEFAULT_BYTES)


@dataclass(frozen=True, slots=True)
class OpSignature:
    """All that decides what one execution of an op costs.

    Attributes:
        kind: one of `driple.graph.opkind.KINDS`, such as `conv`.
        inputs: its data inputs, in the order of the kind's formula, which is TensorFlow's where it
            has such an op; a filter is [window..., channels in / groups, channels out].
        outputs: its outputs, in order.
        numbers: whole-number attributes that matter, such as `ksize`, sorted by name.
        variant: TensorFlow's op type where the kind has several and this is not the usual one, so
            that stored graphs keep their names; no cost depends on it.
    """

    kind: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    variant: str = ""

    @classmethod
    def of_op_type(
        cls,
        op_type: str,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
        numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> OpSignature:
        """The signature of an op of TensorFlow, such as `Conv2D`."""
        kind = kind_of_op_type(op_type)
        variant = "" if op_type == op_type_of_kind(kind) else op_type
        return cls(kind, inputs, outputs, numbers, variant)

    @property
    def stored_name(self) -> str:
        """TensorFlow's op type; of a kind that TensorFlow has no op of, `@` and the kind."""
        return self.variant or op_type_of_kind(self.kind) or f"@{self.kind}"


def signatures_to_json(signatures: Iterable[OpSignature]) -> str:
    """Compact JSON; the same for the same signatures in the same order."""
    return f"[{','.join(map(_to_text, signatures))}]"


# What JSON of another form, of impossible numbers or of deep nesting raises here.
_DAMAGED = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


def signatures_from_json(text: str) -> tuple[OpSignature, ...]:
    """The inverse of `signatures_to_json`.

    Raises:
        GraphError: not what that function writes.
    """
    try:
        return _from_pieces(text)
    except _DAMAGED:
        pass  # cut in the wrong place, or damaged
    try:
        return tuple(map(_from_row, json.loads(text)))
    except _DAMAGED as error:
        raise GraphError(f"signatures of ops are damaged ({error})") from error


def _from_pieces(text: str) -> tuple[OpSignature, ...]:
    """The signatures, each read from its own piece of the text, once however often it occurs.

    A piece ends before the next op type, which begins with a capital, an underscore or an `@`, as
    names of attributes usually do not. Were a cut in the wrong place, neither half would be JSON.
    """
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"{text[:40]} is no list")
    inside = text[1:-1]
    return tuple(map(_from_text, _BETWEEN_ROWS.split(inside))) if inside else ()


@lru_cache(maxsize=_CACHED)
def _to_text(op: OpSignature) -> str:
    row = [
        op.stored_name,
        [_tensor_row(tensor) for tensor in op.inputs],
        [_tensor_row(tensor) for tensor in op.outputs],
        [[name, list(values)] for name, values in op.numbers],
    ]
    return json.dumps(row, separators=(",", ":"))


@lru_cache(maxsize=_CACHED)
def _from_text(text: str) -> OpSignature:
    return _from_row(json.loads(text))


def _from_row(row: Sequence[Any]) -> OpSignature:
    name, inputs, outputs, numbers = str(row[0]), *row[1:]
    read = tuple(_tensor(row) for row in inputs)
    outputs_read = tuple(_tensor(row) for row in outputs)
    stated = tuple((str(name), tuple(int(n) for n in values)) for name, values in numbers)
    if not name.startswith("@"):
        return OpSignature.of_op_type(name, read, outputs_read, stated)
    if name[1:] not in KINDS:
        raise ValueError(f"{name[:40]!r} is no kind of op that this version knows")
    return OpSignature(name[1:], read, outputs_read, stated)


def _tensor_row(tensor: Tensor) -> list[object]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return [shape, tensor.dtype, int(tensor.is_parameter)]


def _tensor(row: list[object]) -> Tensor:
    shape, dtype, is_parameter = row
    if not isinstance(dtype, int) or not (shape is None or isinstance(shape, list)):
        raise ValueError(f"{str(row)[:40]} is no tensor")
    sizes = None if shape is None else tuple(int(n) for n in shape)
    return Tensor(sizes, dtype, bool(is_parameter))
