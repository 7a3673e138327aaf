"""What libraries' own code decides by values of tensors, taken as for usual data.

    boxes[scores > 0], mask.nonzero(), if mask.any(): ...  in transformers -> the usual result

A step is followed by shapes alone, so code of a user that looks at values is refused. Models of
known libraries look at values in known ways: masks that choose rows, checks of their inputs, and
numbers that scale a loss. There a mask chooses all rows (of a mixture of experts each its share),
`all` is true, `any` is false, and a fraction is one. What was taken is listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from driple.graph.torch.data_dependence import frame_of_model

__all__ = ["assumed_values", "keeps_values", "listed", "note_result", "result_assumed"]

_LIBRARIES = frozenset({"transformers", "torchvision", "timm", "torch_geometric", "diffusers"})
_MASKS = (torch.bool, torch.uint8)
_WRITES = frozenset({"index_put", "index_put_", "_index_put_impl_"})
_BY_MASK = _WRITES | {"index"}
# By the op that makes a truth value. Models compare numbers to refuse what is out of range.
_TRUTHS: Mapping[str, bool] = {
    "all": True, "_is_all_true": True, "eq": True, "any": False, "_is_any_true": False,
    "isnan": False, "isinf": False, "bitwise_or": False, "logical_or": False, "ne": False,
    "lt": False, "gt": False, "le": False, "ge": False,
}  # fmt: skip
# Places where a value was taken as usual, in the order of the step; None where none may be.
_PLACES: ContextVar[list[str] | None] = ContextVar("_PLACES", default=None)
_NO_TASK = -1
_MOST_SIZES = 1024  # numbers that are sizes, and no data
_OTHER_DEVICE = ("is not on the expected device", "the same device", "on same device")
# Where a mask chooses one of several parts of equal size: experts, levels of a pyramid.
_PARTS = (
    ("self", "num_experts"), ("self", "n_routed_experts"), ("self", "num_routed_experts"),
    ("locals", "num_levels"),
)  # fmt: skip
# A variable of detectors that learn to tell shifted boxes from wrong ones: half are of each.
_DENOISES = "negative_gt_mask"
# Notes on masks: the op that made one, and how many elements are set.
_MADE_BY, _CHOSEN = "_driple_made_by", "_driple_chosen"


@contextmanager
def assumed_values() -> Iterator[list[str]]:
    """Within the block, libraries' models may decide by values.

    Yields:
        Places where one did, `FILE, line N`; empty until then.
    """
    places: list[str] = []
    token = _PLACES.set(places)
    try:
        yield places
    finally:
        _PLACES.reset(token)


def note_result(name: str, args: Sequence[Any], result: Any) -> None:
    """Note what is known of a mask or a truth value: which op made it, how many elements are set.

    Args:
        name: of the op, without namespace and overload.
        args: its arguments by position.
        result: its result.
    """
    if not isinstance(result, Tensor):
        return
    if name in _WRITES and args[1] and args[1][0] is not None and args[1][0].dtype in _MASKS:
        values = args[2]  # as many rows as the mask chooses, or one for all
        if values.dim() and values.shape[0] > 1:
            setattr(args[1][0], _CHOSEN, int(values.shape[0]))
    if name == "sum" and args[0].dtype in _MASKS:
        many = getattr(args[0], _CHOSEN, args[0].numel())
        setattr(result, _CHOSEN, many if not result.dim() else many // max(result.numel(), 1))
    if result.dtype not in _MASKS:
        return
    if name in _TRUTHS:
        setattr(result, _MADE_BY, name)
    chosen = _NUM_SET[name](args) if name in _NUM_SET else None
    if chosen is not None:
        setattr(result, _CHOSEN, min(chosen, result.numel()))


def listed(tensor: Tensor) -> Any:
    """Numbers of a tensor without values that counts what masks choose; None if it does not."""
    each = getattr(tensor, _CHOSEN, None)
    if each is None or tensor.dim() != 1 or _PLACES.get() is None:
        return None
    return [int(each)] * int(tensor.shape[0])


def keeps_values(tensor: Any) -> bool:
    """Whether whole numbers stay on the host, as a library's model reads them as sizes there."""
    if _PLACES.get() is None or not isinstance(tensor, Tensor) or tensor.is_floating_point():
        return False
    if tensor.device.type != "cpu" or tensor.numel() > _MOST_SIZES or tensor.dtype in _MASKS:
        return False
    frame = frame_of_model(sys._getframe())
    return frame is not None and _is_library(frame)


def _is_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES


def _sum_of_chosen(parts: Sequence[Any]) -> int | None:
    """Elements that are set in several masks together; None if it is unknown of one."""
    known = [getattr(part, _CHOSEN, None) for part in parts]
    return None if None in known else sum(one for one in known if one is not None)


def _of_written(args: Sequence[Any]) -> int | None:
    """Elements that are set in a mask after it was written at some positions."""
    before, index = getattr(args[0], _CHOSEN, None), args[1][0]
    if before is None or len(args[1]) > 1 or index is None or index.dtype in _MASKS:
        return None
    return int(before) + int(index.numel())


# Elements that are set in the result of an op, from its arguments.
_NUM_SET: Mapping[str, Callable[[Sequence[Any]], int | None]] = {
    "zeros": lambda _: 0,
    "zeros_like": lambda _: 0,
    "index_put_": _of_written,
    "bitwise_or": lambda args: _sum_of_chosen(args[:2]),
    "cat": lambda args: _sum_of_chosen(args[0]),
}


def result_assumed(
    error: Exception, func: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """The usual result of an op whose values are not there.

    Args:
        error: of the op on tensors without values.
        func: the op.
        args: its arguments by position.
        named: those by name.

    Returns:
        `NotImplemented` if no known library calls it, or if no result is usual.
    """
    places = _PLACES.get()
    frame = frame_of_model(sys._getframe())
    if places is None or frame is None:
        return NotImplemented
    # The backward pass runs in no line of the model: its forward pass was let through.
    is_backward = torch._C._current_graph_task_id() != _NO_TASK
    if not _is_library(frame) and not is_backward:
        return NotImplemented
    if any(part in str(error) for part in _OTHER_DEVICE):  # sizes with values, on the host
        return func(*tree_map(_without_values, args), **tree_map(_without_values, dict(named)))
    result = _usual(func, args, named, frame)
    if result is not NotImplemented and not is_backward:
        place = f"{PurePath(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        if place not in places:
            places.append(place)
    return result


def _without_values(value: Any) -> Any:
    return value.to("meta") if isinstance(value, Tensor) else value


def _usual(  # noqa: PLR0911  # one return per op
    func: Any, args: Sequence[Any], named: Mapping[str, Any], frame: FrameType
) -> Any:
    name = func.name().partition("::")[2].partition(".")[0]
    first = args[0] if args else None
    if not isinstance(first, Tensor):
        return NotImplemented
    if name == "nonzero":
        return _whole(first, _chosen(first, frame), first.dim())
    if name in _BY_MASK:
        indices = [part for index in args[1] for part in _positions(index, frame)]
        return func(first, indices, *args[2:], **named)
    if name == "masked_select":
        return first.new_empty(_chosen(args[1], frame))
    if name == "_local_scalar_dense":
        return _number(first, frame)
    if name == "equal":
        return True
    if name == "nms":  # all boxes may stay; what follows keeps the best of them
        return _whole(first, first.shape[0])
    if name in {"_unique2", "unique_consecutive", "unique_dim"}:
        return first.new_empty(1), _whole(first, *first.shape), _whole(first, 1)
    if name == "histc":
        return first.new_empty(int(args[1]) if len(args) > 1 else 100)
    return NotImplemented


def _number(value: Tensor, frame: FrameType) -> Any:
    """A truth value by the op that made it; a fraction, which scales a loss, is one.

    The number of an expert is the first's: all experts are alike.
    """
    if value.is_floating_point():
        return 1.0
    if value.dtype == torch.bool:
        return _TRUTHS.get(getattr(value, _MADE_BY, ""), NotImplemented)
    known = getattr(value, _CHOSEN, None)
    if known is not None:
        return known
    if isinstance(value, nn.Buffer):  # a counter of the model, before its first step
        return 0
    owner = frame.f_locals.get("self")
    has_experts = hasattr(owner, "experts") or type(owner).__name__.endswith("Experts")
    return 0 if has_experts else NotImplemented


def _whole(like: Tensor, *sizes: int) -> Tensor:
    return like.new_empty(sizes, dtype=torch.int64)


def _positions(index: Any, frame: FrameType) -> list[Any]:
    """An index as positions: a mask of several dimensions has positions in each."""
    if not isinstance(index, Tensor) or index.dtype not in _MASKS:
        return [index]
    return [_whole(index, _chosen(index, frame)) for _ in range(index.dim())]


def _chosen(mask: Tensor, frame: FrameType) -> int:
    """How many elements a mask chooses: all, or of a mixture of experts the share of one."""
    known: int | None = getattr(mask, _CHOSEN, None)
    if known is not None:
        return known
    many, places = mask.numel(), frame.f_locals
    for source, name in _PARTS:
        parts = getattr(places.get("self"), name, None) if source == "self" else places.get(name)
        if isinstance(parts, int) and 1 < parts != many:
            return -(-many // parts)
    return -(-many // 2) if _DENOISES in places else many
