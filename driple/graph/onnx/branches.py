"""Whether both branches of an If compute the same, so that it does not matter which one runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["same_branches"]

_MOST_NODES = 10_000


def same_branches(then: Any, other: Any) -> bool:
    """Whether two `GraphProto` have the same nodes in order, but for names of their own tensors.

    Values of weights that a branch holds do not matter: they change no size and no cost.
    """
    if len(then.node) != len(other.node) or len(then.node) > _MOST_NODES:
        return False
    return list(_lines(then)) == list(_lines(other))


def _lines(graph: Any) -> Iterator[object]:
    """What a branch holds, with numbers in place of its own names."""
    number: dict[str, int] = {}
    for tensor in graph.initializer:
        number[tensor.name] = len(number)
        yield tensor.data_type, tuple(tensor.dims)
    for node in graph.node:
        for name in node.output:
            number.setdefault(name, len(number))
        attributes = sorted(each.SerializeToString(deterministic=True) for each in node.attribute)
        read = tuple(number.get(name, name) for name in node.input)
        yield (
            node.domain,
            node.op_type,
            read,
            tuple(number[name] for name in node.output),
            attributes,
        )
    yield tuple(number.get(each.name, each.name) for each in graph.output)
