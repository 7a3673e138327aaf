"""Tensors of a batch, in whatever form a data loader gives it.

    tensor | tuple | NamedTuple | dictionary | dataclass | object with tensors -> its tensors

Objects, such as a dataclass or a `Data` of PyG, are kept whole: a copy gets the changed tensors.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["changed_batch", "is_object", "tensors_of"]

_DEEPEST = 6  # objects within objects
_PLAIN = (str, bytes, int, float, bool, complex, type(None))
_GRAPHS = "torch_geometric"


def tensors_of(batch: Any) -> list[Tensor]:
    """All tensors of a batch, in order."""
    return list(_tensors(batch, set(), 0))


def changed_batch(batch: Any, change: Callable[[Any], Any]) -> Any:
    """The batch with each of its leaves changed; what has none of them stays as it is.

    Args:
        batch: of any form.
        change: of a tensor or another value without parts.
    """
    plain = dict(batch) if isinstance(batch, Mapping) else batch
    return tree_map(lambda leaf: _changed(leaf, change, 0), plain)


def is_object(batch: Any) -> bool:
    """Whether a model is given the batch as a whole: a NamedTuple, or an object with tensors."""
    if isinstance(batch, Tensor | Mapping | list):
        return False
    if isinstance(batch, tuple):
        return hasattr(batch, "_fields")
    return bool(tensors_of(batch))


def _tensors(value: Any, seen: set[int], depth: int) -> Iterator[Tensor]:
    plain = dict(value) if isinstance(value, Mapping) else value
    for leaf in tree_leaves(plain):
        if isinstance(leaf, Tensor):
            yield leaf
        elif _has_parts(leaf) and depth < _DEEPEST and id(leaf) not in seen:
            seen.add(id(leaf))
            for part in _attributes(leaf).values():
                yield from _tensors(part, seen, depth + 1)


def _changed(value: Any, change: Callable[[Any], Any], depth: int) -> Any:
    if isinstance(value, Tensor) or not _has_parts(value) or depth >= _DEEPEST:
        return change(value)
    if not tensors_of(value):
        return value
    if type(value).__module__.startswith(_GRAPHS):
        return copy.copy(value).apply(change)
    changed_copy = copy.copy(value)
    for name, part in _attributes(value).items():
        if isinstance(part, Mapping) and type(part) is not dict:
            changed: Any = part  # of a class of its own, whose values are its owner's
        else:
            changed = tree_map(lambda leaf: _changed(leaf, change, depth + 1), part)
        object.__setattr__(changed_copy, name, changed)  # a dataclass may be frozen
    return changed_copy


def _has_parts(value: Any) -> bool:
    """Whether it is an object of a class of somebody's own."""
    if isinstance(value, (*_PLAIN, type, nn.Module, ModuleType)) or inspect.isroutine(value):
        return False
    return hasattr(value, "__dict__") or dataclasses.is_dataclass(value)


def _attributes(value: Any) -> dict[str, Any]:
    attributes = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            attributes.setdefault(field.name, getattr(value, field.name, None))
    return attributes
