"""The optimizer's update: kernels that it starts, bytes that it moves and keeps.

    trained parameters, StepOptions -> one step of torch.optim on the meta device -> OptimizerUpdate

PyTorch's default implementations (foreach) apply one op to many tensors by as few kernels as their
arguments fit in; `multi_tensor_kernels` counts those (aten/src/ATen/native/cuda/
MultiTensorApply.cuh). Optimizers that torch does not have follow their own implementations: Lion
(Chen et al., 2023), 8-bit Adam (bitsandbytes), LAMB (You et al., 2020) and NovoGrad (Ginsburg et
al., 2019) as fused in NVIDIA's apex, LARS (You et al., 2017).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import ceil
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from driple.graph.step_facts import OptimizerUpdate
from driple.graph.torch.aten import kernels_of, tensors_in
from driple.graph.torch.eight_bit_adam import eight_bit_update
from driple.graph.torch.options import StepOptions
from driple.graph.torch.recorder import memory_of

__all__ = ["multi_tensor_kernels", "update_of"]

_TENSORS = (110, 64, 48, 36, 30)  # that one kernel takes, by number of lists
_BLOCKS, _CHUNK = 320, 65_536
# Lists of tensors of a fused kernel, and how often it reads or writes each: parameters and states
# are read and written, gradients read.
_FUSED = {"sgd": (2, 3), "momentum": (3, 5), "adam": (4, 7), "adamw": (4, 7), "adagrad": (3, 5)}
_RATE = 1e-3
_FULL_BYTES = 4


def multi_tensor_kernels(elements: Iterable[int], lists: int) -> int:
    """Kernels that apply an op to lists of tensors of these sizes.

    Args:
        elements: of each tensor of one list.
        lists: how many lists the op reads and writes.
    """
    most = _TENSORS[min(max(lists, 1), len(_TENSORS)) - 1]
    kernels = tensors = blocks = 0
    for size in elements:
        if not size:
            continue
        tensors += 1
        left = ceil(size / _CHUNK)
        while left:
            taken = min(left, _BLOCKS - blocks)
            left -= taken
            blocks += taken
            if blocks == _BLOCKS or (not left and tensors == most):
                kernels += 1
                blocks, tensors = 0, 1 if left else 0
    return kernels + (blocks > 0)


def update_of(parameters: Sequence[nn.Parameter], options: StepOptions) -> OptimizerUpdate:
    """What one update of these parameters takes, clipping and scaling of gradients included."""
    forms = tuple((one.shape, one.stride(), one.dtype) for one in parameters if one.requires_grad)
    asked = StepOptions(
        optimizer=options.optimizer,
        precision=options.precision,
        clip_gradients=options.clip_gradients,
    )
    return _update_of(forms, asked)


@lru_cache(maxsize=8)
def _update_of(
    forms: tuple[tuple[torch.Size, tuple[int, ...], torch.dtype], ...], options: StepOptions
) -> OptimizerUpdate:
    """Of parameters of these shapes, strides and types; ways to train one model share them."""
    name = options.optimizer_name
    given = [_with_gradient(*form) for form in forms]
    trained = [_master(one) for one in given] if options.has_masters else given
    if name == "adam8bit":
        eight_bit = eight_bit_update(
            [one.numel() for one in trained], [one.nbytes for one in trained]
        )
        state_bytes, moved, kernels = (
            eight_bit.state_bytes,
            eight_bit.moved_bytes,
            eight_bit.num_kernels,
        )
        temporary_bytes = 0
    else:
        counter = _Counter()
        state_bytes = _STEPS[name](trained, counter)
        moved, kernels = counter.moved_bytes, counter.kernels
        temporary_bytes = counter.most_bytes
        if options.is_fused:
            temporary_bytes = 0
            lists, accesses = _FUSED[name]
            moved = accesses * sum(one.nbytes for one in trained)
            kernels = multi_tensor_kernels([one.numel() for one in trained], lists)
    extra = _Counter()
    if options.has_masters:
        copied_bytes = _copied(given, trained, extra)
        state_bytes += copied_bytes
        temporary_bytes += copied_bytes  # gradients in fp32
    gradients = [one.grad for one in trained if one.grad is not None]
    if options.scales_loss:
        extra.multi_tensor([gradients], written=1)  # unscale, and look for infinities
    if options.clip_gradients:
        _clip(gradients, extra)
    return OptimizerUpdate(
        optimizer=options.optimizer,
        state_bytes=state_bytes,
        moved_bytes=moved + extra.moved_bytes,
        num_kernels=kernels + extra.kernels,
        temporary_bytes=max(temporary_bytes, extra.most_bytes),
    )


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """Counts kernels and bytes of ops on the meta device; scalars on the host do not count.

    `most_bytes` is the most that the results of these ops take up at once.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels = self.moved_bytes = self.most_bytes = 0
        self._live: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._live_bytes = 0

    def multi_tensor(self, lists: Sequence[Sequence[Tensor]], written: int) -> None:
        """Count an op on lists of tensors, the first `written` of which it also writes."""
        self.kernels += multi_tensor_kernels([one.numel() for one in lists[0]], len(lists))
        read = {id(one): one.nbytes for part in lists for one in part}  # each once
        self.moved_bytes += sum(read.values())
        self.moved_bytes += sum(one.nbytes for part in lists[:written] for one in part)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the op, and count it."""
        named = kwargs or {}
        name = func.name().partition("::")[2].partition(".")[0]
        if name == "_local_scalar_dense" and args[0].device.type == "meta":
            return 1.0  # a factor of a later op, whose size it does not change
        result = func(*args, **named)
        arguments = (*args, *named.values())
        if not any(one.device.type == "meta" for one in tensors_in((*arguments, result))):
            return result
        if name.startswith("_foreach_"):
            lists = [one for one in arguments if isinstance(one, list | tuple) and one]
            lists = [one for one in lists if all(isinstance(each, Tensor) for each in one)]
            if lists and lists[0][0].device.type == "meta":
                self._foreach(name, lists, result)
        else:
            for kernel in kernels_of(func, args, named, result):
                self.kernels += 1
                tensors = (*kernel.inputs, *kernel.outputs)
                self.moved_bytes += sum(
                    one.tensor.nbytes for one in tensors if one.tensor is not None
                )
        self._watch(arguments, result)
        return result

    def _watch(self, arguments: Sequence[Any], result: Any) -> None:
        """Add up the memory of results that are neither written in place nor views."""
        before = {memory_of(one) for one in tensors_in(arguments)}
        for tensor in tensors_in(result):
            key = memory_of(tensor)
            if key in before or key in self._live or tensor.device.type != "meta":
                continue
            storage = tensor.untyped_storage()
            watch = weakref.ref(storage, partial(self._freed, key))
            self._live[key] = int(storage.nbytes()), watch
            self._live_bytes += int(storage.nbytes())
        self.most_bytes = max(self.most_bytes, self._live_bytes)

    def _freed(self, key: int, _: Any) -> None:
        self._live_bytes -= self._live.pop(key)[0]

    def _foreach(self, name: str, lists: list[Any], results: Any) -> None:
        if name in {"_foreach_copy_", "_foreach_zero_"}:
            self.multi_tensor(lists, written=0)  # what is written alone is in the first list
        elif name.endswith("_"):
            self.multi_tensor(lists, written=1)
        else:
            self.multi_tensor([*lists, list(tensors_in(results))], written=0)


def _with_gradient(shape: torch.Size, stride: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    """A parameter of this shape and type on the meta device, with a gradient."""
    parameter = nn.Parameter(torch.empty_strided(shape, stride, dtype=dtype, device="meta"))
    parameter.grad = torch.empty_like(parameter)
    return parameter


def _master(parameter: nn.Parameter) -> nn.Parameter:
    """A copy of a parameter in fp32, with a gradient; itself if it has that already."""
    if parameter.element_size() >= _FULL_BYTES:
        return parameter
    return _with_gradient(parameter.shape, parameter.stride(), torch.float32)


def _copied(
    given: Sequence[nn.Parameter], masters: Sequence[nn.Parameter], counter: _Counter
) -> int:
    """Count the copies of gradients to fp32 and of parameters back; bytes of the masters."""
    pairs = [(one, copy) for one, copy in zip(given, masters, strict=True) if one is not copy]
    if not pairs:
        return 0
    halves, copies = ([*side] for side in zip(*pairs, strict=True))
    for source, target in ((halves, copies), (copies, halves)):
        counter.kernels += multi_tensor_kernels([one.numel() for one in source], 2)
        counter.moved_bytes += sum(one.nbytes for one in (*source, *target))
    return sum(one.nbytes for one in copies)


def _torch_step(
    make: Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer],
) -> Callable[[Sequence[nn.Parameter], _Counter], int]:
    """Count the second step of an optimizer of torch, whose states exist by then."""

    def count(parameters: Sequence[nn.Parameter], counter: _Counter) -> int:
        optimizer = make(parameters)
        with _Counter():
            optimizer.step()
        with counter:
            optimizer.step()
        states = optimizer.state.values()
        tensors = [one for state in states for one in state.values() if isinstance(one, Tensor)]
        return sum(one.nbytes for one in tensors if one.device.type == "meta")

    return count


def _lion(parameters: Sequence[nn.Parameter], counter: _Counter) -> int:
    """Sign of an average of gradients; weights decay."""
    weights = [one.detach() for one in parameters]
    gradients = [one.grad for one in parameters if one.grad is not None]
    averages = [torch.empty_like(one) for one in weights]
    with counter:
        torch._foreach_mul_(weights, 0.99)
        steps = torch._foreach_mul(averages, 0.9)
        torch._foreach_add_(steps, gradients, alpha=0.1)
        torch._foreach_sign_(steps)
        torch._foreach_add_(weights, steps, alpha=-_RATE)
        torch._foreach_lerp_(averages, gradients, 0.01)
    return sum(one.nbytes for one in averages)


def _lamb(parameters: Sequence[nn.Parameter], counter: _Counter) -> int:
    """Moments and the update, in place of the gradient; norms of both; the scaled step."""
    weights, gradients, averages = _with_states(parameters)
    squares = [torch.empty_like(one) for one in weights]
    counter.multi_tensor([gradients], written=0)  # their norm
    counter.multi_tensor([gradients, averages, squares, weights], written=3)
    counter.multi_tensor([weights], written=0)
    counter.multi_tensor([gradients], written=0)
    counter.multi_tensor([weights, gradients], written=1)
    return sum(one.nbytes for one in (*averages, *squares))


def _lars(parameters: Sequence[nn.Parameter], counter: _Counter) -> int:
    """Norms of parameters and gradients, then a step with momentum."""
    weights, gradients, averages = _with_states(parameters)
    counter.multi_tensor([weights], written=0)
    counter.multi_tensor([gradients], written=0)
    counter.multi_tensor([weights, averages, gradients], written=2)
    return sum(one.nbytes for one in averages)


def _novograd(parameters: Sequence[nn.Parameter], counter: _Counter) -> int:
    """The gradient's norm for each tensor, which is its second moment, then a step."""
    weights, gradients, averages = _with_states(parameters)
    counter.multi_tensor([gradients], written=0)
    counter.multi_tensor([weights, averages, gradients], written=2)
    return sum(one.nbytes + 4 for one in averages)


def _with_states(
    parameters: Sequence[nn.Parameter],
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Parameters, their gradients, and a state of the same size."""
    weights = [one.detach() for one in parameters]
    gradients = [one.grad for one in parameters if one.grad is not None]
    return weights, gradients, [torch.empty_like(one) for one in weights]


def _clip(gradients: list[Tensor], counter: _Counter) -> None:
    """Ops of `torch.nn.utils.clip_grad_norm_`."""
    with counter:
        norms = torch._foreach_norm(gradients, 2.0)
        total = torch.linalg.vector_norm(torch.stack([one.to(norms[0].dtype) for one in norms]))
        factor = torch.clamp(1.0 / (total + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, factor)
    counter.kernels += 1  # the norms of the chunks are added up


def _sgd(momentum: float) -> Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]:
    return lambda given: torch.optim.SGD(given, lr=_RATE, momentum=momentum, foreach=True)


_STEPS: Mapping[str, Callable[[Sequence[nn.Parameter], _Counter], int]] = MappingProxyType(
    {
        "sgd": _torch_step(_sgd(0.0)),
        "momentum": _torch_step(_sgd(0.9)),
        "adam": _torch_step(lambda given: torch.optim.Adam(given, foreach=True)),
        "adamw": _torch_step(lambda given: torch.optim.AdamW(given, foreach=True)),
        "adafactor": _torch_step(lambda given: torch.optim.Adafactor(given, foreach=True)),
        "rmsprop": _torch_step(lambda given: torch.optim.RMSprop(given, foreach=True)),
        "adagrad": _torch_step(lambda given: torch.optim.Adagrad(given, foreach=True)),
        "lion": _lion,
        "lamb": _lamb,
        "lars": _lars,
        "novograd": _novograd,
    }
)
