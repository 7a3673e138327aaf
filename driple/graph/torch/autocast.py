"""Automatic mixed precision for a model that is followed by shapes alone.

    with gpu_autocast(): model(inputs)     torch.autocast in the model casts as it would on a GPU

PyTorch casts by the device of the tensors and knows no `meta` device: a step on it would run in
single precision, whatever the model says. Here `torch.autocast` of any device is followed, with
PyTorch's lists for CUDA (aten/src/ATen/autocast_mode.h); both end with the context. So do the other
choices that PyTorch makes for a GPU alone (`gpu_ops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from driple.graph.torch import gpu_ops
from driple.graph.torch.dispatch import below, dispatch_key, is_active

__all__ = ["LOWER", "PROMOTED", "SINGLE", "SINGLE_RESULT", "gpu_autocast"]

# Ops that run in the lower precision.
LOWER = (
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "convolution", "prelu", "addmm", "addmv", "addr",
    "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm",
    "chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
    "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "_scaled_dot_product_flash_attention", "scaled_dot_product_attention",
)  # fmt: skip
# Those that run in single precision.
SINGLE = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal",
    "rsqrt", "sinh", "tan", "pow", "softplus", "layer_norm", "native_layer_norm", "rms_norm",
    "group_norm", "frobenius_norm", "nuclear_norm", "cosine_similarity", "poisson_nll_loss",
    "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss",
    "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_nearest2d",
    "_upsample_nearest_exact2d", "upsample_nearest3d", "_upsample_nearest_exact3d",
    "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_trilinear3d",
    "upsample_bicubic2d", "_upsample_bicubic2d_aa",
)  # fmt: skip
# Those that give single precision, unless the caller asks for another type.
SINGLE_RESULT = (
    "prod", "softmax", "log_softmax", "cumprod", "cumsum", "linalg_vector_norm",
    "linalg_matrix_norm", "sum", "norm",
)  # fmt: skip
# Those that run in the widest type of their inputs.
PROMOTED = (
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
    "tensordot", "scatter_add",
)  # fmt: skip
# The device whose switch `torch.autocast` turns, since it can be turned on any machine.
_SWITCH = "cpu"
# Those of `LOWER` that have a kernel in `gpu_ops`, which casts itself.
_OWN = ("scaled_dot_product_attention", "lstm_cell", "gru_cell")

# Those that read float16 and give single precision by one kernel.
_AT_ONCE: Mapping[str, Callable[[Tensor, int, bool], Tensor]] = MappingProxyType(
    {"aten::softmax.int": torch._softmax, "aten::log_softmax.int": torch._log_softmax}
)

Casts = dict[int, tuple[Tensor, Tensor]]


@contextmanager
def gpu_autocast() -> Iterator[None]:
    """Have `torch.autocast` cast tensors of the meta device, as on a GPU.

    Enter it before any recorder of ops, and before the model is built or imported: a decorator
    `@torch.autocast("cuda")` decides there whether it does anything. Within itself it does nothing.
    """
    if is_active():
        yield
        return
    casts: Casts = {}
    with ExitStack() as stack:
        aten = stack.enter_context(dispatch_key())
        lists = ((LOWER, _lower), (SINGLE, _single), (SINGLE_RESULT, _single_result),
                 (PROMOTED, _promoted), (("binary_cross_entropy",), _refused))  # fmt: skip
        for names, kernel_of in lists:
            for op in _overloads(tuple(name for name in names if name not in _OWN)):
                aten.impl(op, kernel_of(op, casts))  # type: ignore[no-untyped-call]
        stack.enter_context(gpu_ops.registered(aten, lambda value: _lowered(value, casts)))
        stack.enter_context(_switched(casts))
        # Otherwise products of attention in half precision are computed in single.
        allowed = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
        stack.callback(torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, allowed)
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        yield


@contextmanager
def _switched(casts: Casts) -> Iterator[None]:
    """`torch.autocast` of any device turns our switch; leaving the outermost forgets the casts."""
    begin, clear = torch.autocast.__init__, torch.clear_autocast_cache

    def begin_switch(
        self: torch.autocast,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        usual = torch.bfloat16 if device_type == "cpu" else torch.float16
        begin(self, _SWITCH, dtype or usual, enabled, cache_enabled)

    def clear_casts() -> None:
        casts.clear()
        clear()

    with (
        patch.object(torch.autocast, "__init__", begin_switch),
        patch.object(torch, "clear_autocast_cache", clear_casts),
    ):
        yield


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


def _is_on() -> bool:
    return bool(torch.is_autocast_enabled(_SWITCH))


def _lower(op: Any, casts: Casts) -> Callable[..., Any]:
    """The op in the lower precision."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with below():
            if not _is_on():
                return op(*args, **kwargs)
            dtype = torch.get_autocast_dtype(_SWITCH)

            def cast(value: Any) -> Any:
                return _cast(value, dtype, casts)

            return op(*tree_map(cast, args), **tree_map(cast, kwargs))

    return kernel


def _lowered(value: Any, casts: Casts) -> Any:
    """A value as an op of `LOWER` takes it."""
    return _cast(value, torch.get_autocast_dtype(_SWITCH), casts) if _is_on() else value


def _single(op: Any, _: Casts) -> Callable[..., Any]:
    """The op in single precision."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with below():
            if not _is_on():
                return op(*args, **kwargs)
            return op(*tree_map(_to_single, args), **tree_map(_to_single, kwargs))

    return kernel


def _single_result(op: Any, _: Casts) -> Callable[..., Any]:
    """The op with a result in single precision; it reads its inputs as they are."""
    names = [argument.name for argument in op._schema.arguments]
    position = names.index("dtype") if "dtype" in names else None
    whole = _AT_ONCE.get(op.name())

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with below():
            first = args[0] if args else None
            if not (isinstance(first, Tensor) and first.is_floating_point()):
                return op(*args, **kwargs)
            if position is None:
                return op(*(tree_map(_to_single, args) if _is_on() else args), **kwargs)
            given = args[position] if len(args) > position else kwargs.get("dtype")
            if given is None and _is_on() and first.dtype != torch.float64:
                given = torch.float32
            if whole and first.dtype == torch.float16 and given == torch.float32:
                return whole(first, args[1] if len(args) > 1 else kwargs["dim"], True)
            return op(*args[:position], **{**kwargs, "dtype": given})

    return kernel


def _promoted(op: Any, _: Casts) -> Callable[..., Any]:
    """The op in the widest type of its inputs."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with below():
            given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
            if not (_is_on() and any(one.dtype == torch.float32 for one in given)):
                return op(*args, **kwargs)
            return op(*tree_map(_to_single, args), **tree_map(_to_single, kwargs))

    return kernel


def _refused(op: Any, _: Casts) -> Callable[..., Any]:
    """PyTorch refuses this op under autocast on a GPU, as its results overflow."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if _is_on():
            raise RuntimeError(
                "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
                "autocast; use binary_cross_entropy_with_logits or BCEWithLogitsLoss"
            )
        with below():
            return op(*args, **kwargs)

    return kernel


def _to_single(value: Any) -> Any:
    """A tensor of half precision in single; all else as it is."""
    if isinstance(value, Tensor) and value.dtype in {torch.float16, torch.bfloat16}:
        return value.float()
    return value


def _cast(value: Any, dtype: torch.dtype, casts: Casts) -> Any:
    """A tensor in this type; a parameter's is kept, as autocast casts it once in a forward pass."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    if value.dtype in {dtype, torch.float64}:
        return value
    kept = value.is_leaf and value.requires_grad and value.dtype == torch.float32
    if not (kept and torch.is_autocast_cache_enabled()):
        return value.to(dtype)
    if id(value) not in casts:
        casts[id(value)] = (value, value.to(dtype))
    return casts[id(value)][1]
