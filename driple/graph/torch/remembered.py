"""Results of ops on the meta device, worked out once for each kind of call.

    op, shapes and types of its arguments -> shapes, strides and types of its results

PyTorch derives the shapes of most ops in Python, which takes most of the time of following a step.
The layers of a model call the same ops on the same shapes, so a result is made anew from what an
equal call gave. Only results in memory of their own are: views, ops that write to their arguments
and whatever has other arguments than tensors and numbers run as ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["RememberedResults", "results_of_process"]

_MOST_CALLS = 50_000  # that are kept
_PLAIN = (Tensor, nn.Parameter)
_CONSTANTS = (
    bool, int, float, str, type(None), torch.dtype, torch.layout, torch.memory_format,
    torch.device,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Strided:
    """A tensor on the meta device in memory of its own."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def made(self) -> Tensor:
        """Such a tensor."""
        tensor: Tensor = torch.ops.aten.empty_strided.default(
            self.shape, self.stride, dtype=self.dtype, device="meta"
        )
        return tensor


class RememberedResults:
    """Runs ops on the meta device, each kind of call once.

    What an op gives on shapes never changes, so one of these serves all steps of a process.
    """

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[Any, bool] | None] = {}
        self._gives_new: dict[Any, bool] = {}

    def run(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What the op gives: a new result of the shapes that an equal call had."""
        if not self._has_results_of_its_own(func):
            return func(*args, **named)
        key = _key(args)
        names = _key(tuple(named.items())) if named else ()
        if key is None or names is None:
            return func(*args, **named)
        call = (func, key, names)
        known = self._results.get(call)
        if known is not None:
            results, is_one = known
            return results[0].made() if is_one else _made(results)
        result = func(*args, **named)
        if len(self._results) >= _MOST_CALLS:
            self._results.clear()
        if call not in self._results:
            self._results[call] = _remembered(result, args, named)
        return result

    def _has_results_of_its_own(self, func: Any) -> bool:
        """Whether the op's schema says that it writes to no argument and gives no view."""
        if func not in self._gives_new:
            schema = getattr(func, "_schema", None)
            self._gives_new[func] = (
                getattr(func, "namespace", "") == "aten"
                and schema is not None
                and not schema.is_mutable
                and all(result.alias_info is None for result in schema.returns)
            )
        return self._gives_new[func]


@cache
def results_of_process() -> RememberedResults:
    """The results that all steps of this process share."""
    return RememberedResults()


def _key(values: tuple[Any, ...] | list[Any]) -> tuple[Hashable, ...] | None:
    """What of arguments decides the shapes of results; None if that is not known."""
    key: list[Hashable] = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            # Numbers in tensors of the host promote types by rules of their own.
            if value.device.type != "meta" or value.layout is not torch.strided:
                return None
            key.append((value.shape, value.stride(), value.dtype))
        elif kind in _CONSTANTS:
            key.append((kind, value))
        elif kind in {list, tuple}:
            inner = _key(value)
            if inner is None:
                return None
            key.append((kind, inner))
        else:
            return None
    return tuple(key)


def _remembered(
    outputs: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, bool] | None:
    """The results as they are made anew; None if they cannot be."""
    is_one = isinstance(outputs, Tensor)
    results = (outputs,) if is_one else outputs
    if not isinstance(results, tuple):
        return None
    seen = {_memory(tensor) for tensor in _tensors((*args, *named.values()))}
    kept: list[Any] = []
    for result in results:
        if isinstance(result, Tensor):
            memory = _memory(result)
            form = _Strided(tuple(result.shape), result.stride(), result.dtype)
            if (
                type(result) is not Tensor
                or memory in seen
                or result.device.type != "meta"
                or result.storage_offset()
                or result.untyped_storage().nbytes() != form.made().untyped_storage().nbytes()
            ):
                return None
            seen.add(memory)
            kept.append(form)
        elif type(result) in _CONSTANTS:
            kept.append(result)
        else:
            return None
    return tuple(kept), is_one


def _made(results: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([one.made() if type(one) is _Strided else one for one in results])


def _tensors(values: tuple[Any, ...]) -> list[Tensor]:
    tensors = []
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors += [item for item in value if isinstance(item, Tensor)]
    return tensors


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
