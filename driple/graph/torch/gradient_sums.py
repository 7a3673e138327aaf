"""Sums of the gradients of a tensor with several readers, in the memory that autograd gives them.

    op of the backward pass -> does autograd add in place there?

The engine adds a later gradient to the first one in place if nothing else holds that one
(torch/csrc/autograd/input_buffer.cpp, `can_accumulate_inplace`), but never while a dispatch mode or
tensors of the meta device are there. A recorder has to do what a plain step would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["adds_in_place", "sole_uses"]

_ADD = torch.ops.aten.add.Tensor
_NO_TASK = -1


def adds_in_place(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], sole: tuple[int, int]
) -> bool:
    """Whether an op is a sum of two gradients that autograd would write into the first of them.

    Args:
        func: the op, as a dispatch mode is given it.
        args: its arguments.
        kwargs: those by name.
        sole: of `sole_uses`.
    """
    if func is not _ADD or kwargs or len(args) != 2:
        return False
    if torch._C._current_graph_task_id() == _NO_TASK or torch.is_grad_enabled():
        return False
    first, second = args
    return (
        isinstance(first, Tensor)
        and isinstance(second, Tensor)
        and first.shape == second.shape
        and first.dtype == second.dtype
        and _uses(first) == sole
        and is_non_overlapping_and_dense_or_false(first)
    )


def _uses(tensor: Tensor) -> tuple[int, int]:
    """References to a tensor and to its memory."""
    storage = tensor.untyped_storage()._cdata
    return int(tensor._use_count()), int(torch._C._storage_Use_Count(storage))  # type: ignore[attr-defined]


@cache
def sole_uses() -> tuple[int, int]:
    """References that a dispatch mode sees to a gradient that autograd alone holds.

    Call it outside of a backward pass: it runs one, of three numbers.
    """
    with torch.enable_grad():
        inputs = torch.zeros(3, requires_grad=True)
        both = inputs.exp()
        total = (both.sin() + both.cos()).sum()
        seen = _FirstSum()  # type: ignore[no-untyped-call]  # of torch
        with seen:
            total.backward()  # type: ignore[no-untyped-call]
    uses: tuple[int, int] = seen.uses
    return uses


class _FirstSum(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """Notes the uses of what the first sum of a backward pass adds to."""

    uses = (0, 0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the op."""
        if func is _ADD and self.uses == (0, 0):
            self.uses = _uses(args[0])
        return func(*args, **(kwargs or {}))
