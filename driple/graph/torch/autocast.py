"""Automatic mixed precision for a model that is followed by shapes alone.

    with gpu_autocast(): model(inputs)     torch.autocast in the model casts as it would on a GPU

PyTorch casts by the device of the tensors and knows no `meta` device: a step on it would run in
single precision, whatever the model says. Here `torch.autocast` of any device is followed, with
PyTorch's lists for CUDA (aten/src/ATen/autocast_mode.h); both end with the context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.library import Library, fallthrough_kernel
from torch.utils._pytree import tree_map

__all__ = ["gpu_autocast"]

# Ops that autocast runs in the lower precision, and those that it runs in single precision.
_LOWER = (
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolution", "_convolution", "prelu", "addmm", "addmv", "addr", "matmul",
    "einsum", "mm", "mv", "linalg_vecdot", "linalg_multi_dot", "linear", "addbmm", "baddbmm", "bmm",
    "chain_matmul", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "scaled_dot_product_attention", "_scaled_dot_product_attention_math",
)  # fmt: skip
_SINGLE = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal",
    "rsqrt", "sinh", "tan", "pow", "softplus", "layer_norm", "native_layer_norm", "group_norm",
    "frobenius_norm", "nuclear_norm", "cosine_similarity", "poisson_nll_loss",
    "cosine_embedding_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "hinge_embedding_loss",
    "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss",
    "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp", "prod",
    "softmax", "log_softmax", "cumprod", "cumsum", "linalg_vector_norm", "linalg_matrix_norm",
    "norm", "sum",
)  # fmt: skip
# A place in PyTorch's dispatcher that nothing else uses, above the gradients; and the device whose
# switch `torch.autocast` turns, since it can be turned on any machine.
_KEY, _SWITCH = "AutocastIPU", "cpu"


@contextmanager
def gpu_autocast() -> Iterator[None]:
    """Have `torch.autocast` cast tensors of the meta device, as on a GPU.

    Enter it before any recorder of ops, and before the model is built or imported: a decorator
    `@torch.autocast("cuda")` decides there whether it does anything.
    """
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))
    if torch._C._dispatch_tls_local_include_set().has(getattr(torch._C.DispatchKey, _KEY)):
        yield
        return
    casts: dict[int, tuple[Tensor, Tensor]] = {}
    with ExitStack() as stack:
        everything = stack.enter_context(_library("_"))
        everything.fallback(fallthrough_kernel)  # type: ignore[no-untyped-call]
        aten = stack.enter_context(_library("aten"))
        for names, lower in ((_LOWER, True), (_SINGLE, False)):
            for op in _overloads(names):
                kernel = _cast_kernel(op, key, casts, lower=lower)
                aten.impl(op, kernel)  # type: ignore[no-untyped-call]
        begin = torch.autocast.__init__

        def begin_switch(
            self: torch.autocast,
            device_type: str,
            dtype: torch.dtype | None = None,
            enabled: bool = True,
            cache_enabled: bool | None = None,
        ) -> None:
            usual = torch.bfloat16 if device_type == "cpu" else torch.float16
            begin(self, _SWITCH, dtype or usual, enabled, cache_enabled)

        stack.enter_context(patch.object(torch.autocast, "__init__", begin_switch))
        # Otherwise products of attention in half precision are computed in single.
        allowed = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
        stack.callback(torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, allowed)
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        included = torch._C._dispatch_tls_local_include_set() | key
        excluded = torch._C._dispatch_tls_local_exclude_set() - key
        with torch._C._ForceDispatchKeyGuard(included, excluded):
            yield


@contextmanager
def _library(namespace: str) -> Iterator[Library]:
    """Kernels of ours in PyTorch's dispatcher, taken out at the end."""
    library = Library(namespace, "IMPL", _KEY)  # type: ignore[no-untyped-call]
    try:
        yield library
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


def _overloads(names: tuple[str, ...]) -> Iterator[Any]:
    """All functional overloads of ops of these names that this PyTorch has."""
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            writes = any(argument.is_out for argument in op._schema.arguments)
            if not writes and any("Tensor" in str(one.type) for one in op._schema.arguments):
                yield op


def _cast_kernel(
    op: Any, key: Any, casts: dict[int, tuple[Tensor, Tensor]], *, lower: bool
) -> Callable[..., Any]:
    """The op with its floating-point inputs cast where autocast is on."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            if not torch.is_autocast_enabled(_SWITCH):
                return op(*args, **kwargs)
            dtype = torch.get_autocast_dtype(_SWITCH) if lower else torch.float32
            if not lower and "dtype" in kwargs and kwargs["dtype"] is not None:
                return op(*args, **kwargs)  # as the caller asks for

            def cast(value: Any) -> Any:
                return _cast(value, dtype, casts)

            return op(*tree_map(cast, args), **tree_map(cast, kwargs))

    return kernel


def _cast(value: Any, dtype: torch.dtype, casts: dict[int, tuple[Tensor, Tensor]]) -> Any:
    """A tensor in this type; a parameter's is kept, as autocast casts it once in a forward pass."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    if value.dtype in {dtype, torch.float64}:
        return value
    if not (value.is_leaf and value.requires_grad):
        return value.to(dtype)
    if id(value) not in casts:
        casts[id(value)] = (value, value.to(dtype))
    return casts[id(value)][1]
