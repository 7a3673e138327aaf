"""Let a model that names GPUs run where there is none.

x.cuda(), model.to("cuda:1"), torch.zeros(3, device=0)  ->  all on the device of the trace
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from driple.graph.torch.library_values import keeps_values, listed

__all__ = ["OneDevice"]

_MOVES = (torch.Tensor.to, torch.as_tensor)
_HERE = ("cpu", "meta")
_FROM_LISTS = (torch.as_tensor, torch.tensor)
_TO_GPU = (torch.Tensor.cuda, torch.Tensor.xpu)


class OneDevice(TorchFunctionMode):
    """Within it, GPUs that code names are one device, and tensors of shapes alone stay there.

    Tensors that the code makes on the CPU stay on the CPU, since it may need their values. A tensor
    without values cannot get there, so `x.cpu()` of one is the tensor itself.

    Args:
        device: `meta` or `cpu`.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function with its devices replaced."""
        named = dict(kwargs or {})
        if func in _TO_GPU:
            return args[0].to(self.device)
        moves = func is torch.Tensor.to
        if func is torch.Tensor.tolist and args[0].is_meta:
            counts = listed(args[0])
            return func(*args) if counts is None else counts
        if func in _FROM_LISTS and _is_list_of_shapes(args[0]):
            return torch.stack(list(args[0])).to(named.get("dtype"))
        stays = func is torch.Tensor.cpu and args[0].is_meta
        if stays or (func in _MOVES and self.device == "meta" and keeps_values(args[0])):
            return args[0]
        if func is torch.Tensor.__format__ and args[0].is_meta and not args[0].dim():
            return "0"  # as in the name of one of several modules that are alike
        if moves and len(args) > 1:
            args = (args[0], self._replaced(args[1], args[0]), *args[2:])
        if named.get("device") is not None:
            named["device"] = self._replaced(named["device"], args[0] if moves else None)
        return func(*args, **named)

    def _replaced(self, device: Any, moved: Any) -> Any:
        """The device to use in place of a GPU; a value that is no device as it is.

        Args:
            device: as the code gives it.
            moved: the tensor that is moved there; None if one is made.
        """
        kind = _kind(device)
        if kind not in ("", *_HERE):
            return self.device
        stays = kind == "cpu" and isinstance(moved, Tensor) and moved.is_meta
        return "meta" if stays else device


def _is_list_of_shapes(values: Any) -> bool:
    """Whether numbers come from a list of tensors, not all of which have values."""
    if not isinstance(values, (list, tuple)) or not values:
        return False
    return all(isinstance(one, Tensor) for one in values) and any(one.is_meta for one in values)


def _kind(device: Any) -> str:
    """Type of a device, such as `cuda`; empty for what names none."""
    if isinstance(device, torch.device):
        return device.type
    if isinstance(device, str):
        return device.partition(":")[0]
    return "cuda" if isinstance(device, int) and not isinstance(device, bool) else ""
