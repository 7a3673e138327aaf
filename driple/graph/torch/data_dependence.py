"""Refuse a model that decides by values of tensors, with the line of the model that does.

if x.sum() > 0:   ->  GraphError: net.py, line 12: `if x.sum() > 0:` ...
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from driple.errors import GraphError

__all__ = ["NeedsValuesError", "frame_of_model", "refuse_values", "step_error"]


class NeedsValuesError(GraphError):
    """A step needs values of tensors that only have shapes; on real inputs it can be followed."""


# Ops whose result, or whose result's shape, depends on values; by name without overload.
_BY_VALUE = frozenset(
    {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_consecutive",
     "unique_dim", "equal", "is_nonzero", "item", "histc", "bincount", "allclose"}
)  # fmt: skip
_BY_MASK = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
_BY_COUNTS = ("aten::repeat_interleave.Tensor", "aten::repeat_interleave.self_Tensor")
_OUR_FOLDERS = tuple(str(Path(path).resolve().parent) + "/" for path in (torch.__file__, __file__))
_MASK_TYPES = (torch.bool, torch.uint8)
_LONGEST_LINE = 80


# What PyTorch says of a tensor without values that goes to NumPy, to Python, or to the CPU.
_WITHOUT_VALUES = ("copy out of meta tensor", "convert meta", "on meta tensors", "of meta tensor")
_UNREAD = {
    "FlexAttention is only": (
        "; flex_attention is not read: use torch.nn.functional.scaled_dot_product_attention"
    ),
}


@contextmanager
def refuse_values(func: Any, arguments: Sequence[Any]) -> Iterator[None]:
    """Turn the failure of an op that needs values into one line.

    Raises:
        NeedsValuesError: the op needs the values of tensors that only have shapes.
    """
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:
        if not _needs_values(func, arguments):
            raise
        raise NeedsValuesError(
            f"{_place_of_frame(sys._getframe())} needs values of tensors "
            f"({func.name().partition('::')[2]}), and a step is read from shapes alone; use "
            "torch.cond, torch.where or results of fixed shape there"
        ) from error


def _needs_values(func: Any, arguments: Sequence[Any]) -> bool:
    name = func.name().partition("::")[2].partition(".")[0]
    if name in _BY_VALUE or func.name() in _BY_COUNTS:
        return True
    if name not in _BY_MASK:
        return False
    indices = arguments[1] if len(arguments) > 1 else ()
    return any(isinstance(one, Tensor) and one.dtype in _MASK_TYPES for one in indices or ())


def _place_of_frame(frame: FrameType | None) -> str:
    """File, line and code of the innermost call that is neither PyTorch's nor ours."""
    frame = frame_of_model(frame)
    if frame is None:
        return "the model"
    return _place(frame.f_code.co_filename, frame.f_lineno)


def frame_of_model(frame: FrameType | None) -> FrameType | None:
    """The innermost call, from this one outwards, that is neither PyTorch's nor ours."""
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def step_error(error: Exception) -> GraphError:
    """What to raise for an exception of a model or a loss within its step."""
    words = _error_words(error)
    if any(part in str(error) for part in _WITHOUT_VALUES):
        return NeedsValuesError(
            f"the training step needs values of tensors, and it is read from shapes alone: {words}"
        )
    advice = next((advice for part, advice in _UNREAD.items() if part in str(error)), "")
    return GraphError(f"the training step fails: {words}{advice}")


def _error_words(error: BaseException) -> str:
    """Type, first line of the message, and the innermost line outside of PyTorch and Driple."""
    message = str(error).partition("\n")[0].strip()
    words = f"{type(error).__name__}: {message}" if message else type(error).__name__
    places = [
        f"{one.filename}, line {one.lineno}"
        for one in traceback.extract_tb(error.__traceback__)
        if not _is_ours(one.filename)
    ]
    return f"{words} ({places[-1]})" if places else words


def _is_ours(filename: str) -> bool:
    return filename.startswith((*_OUR_FOLDERS, "<")) or "contextlib" in filename


def _place(filename: str, line: int) -> str:
    code = linecache.getline(filename, line).strip()[:_LONGEST_LINE]
    return f"{filename}, line {line}: `{code}`" if code else f"{filename}, line {line}"
