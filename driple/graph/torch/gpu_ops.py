"""Ops that PyTorch computes by one kernel on a GPU, and takes apart on any other device.

    attention, dropout, recurrent layers and cells

Each is called as the op that a GPU would run, so that a recorder sees that one op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.library import Library
from torch.nn.functional import pad
from torch.utils._pytree import tree_map

from driple.graph.torch.attention import attention_kernel
from driple.graph.torch.dispatch import below, library
from driple.graph.torch.recurrent_cells import gru_cell, lstm_cell, register
from driple.graph.torch.unfused_attention import unfused_attention

__all__ = ["CAPABILITY", "FUSES_ATTENTION", "registered"]

Lowered = Callable[[Any], Any]

# Compute capability of the device that a step is read for; None if it has no fused attention.
CAPABILITY: ContextVar[tuple[int, int] | None] = ContextVar("CAPABILITY", default=(8, 0))
# Whether attention is one op of PyTorch at all, which it was not before PyTorch 2.
FUSES_ATTENTION: ContextVar[bool] = ContextVar("FUSES_ATTENTION", default=True)
_FLASH_SIDE = 8  # the flash kernel fills heads up to a multiple
_MASK_SIDE = 16  # rows of a mask are filled up to a multiple
# Modes of cuDNN's recurrent layers (cudnnRNNMode_t), and whether they have a cell state.
_MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
# Numbers that each keeps of a unit at a step for its backward pass: the gates, the state of a cell,
# and what the last gate of a GRU resets. cuDNN does not document them (an LSTM was measured).
_KEPT_OF_A_UNIT = {0: 1, 1: 1, 2: 5, 3: 4}
_aten = torch.ops.aten


@contextmanager
def registered(aten: Library, lowered: Lowered) -> Iterator[None]:
    """Have these ops run as on a GPU.

    Args:
        aten: our kernels of aten's ops.
        lowered: casts a tensor as autocast casts the inputs of products.
    """
    with ExitStack() as stack:
        meta = stack.enter_context(library("aten", "Meta"))
        meta.impl("_cudnn_rnn_backward", _recurrent_gradients)  # type: ignore[no-untyped-call]
        # PyTorch's own keeps nothing for the backward pass.
        meta.impl("_cudnn_rnn", _recurrent_shapes, allow_override=True)  # type: ignore[no-untyped-call]
        # PyTorch's own takes the norm apart, which takes most of a trace's time.
        meta.impl("native_batch_norm", _batch_norm, allow_override=True)  # type: ignore[no-untyped-call]
        gradients = "native_batch_norm_backward"
        meta.impl(gradients, _batch_norm_gradients, allow_override=True)  # type: ignore[no-untyped-call]
        for op in ("_ctc_loss", "_ctc_loss.Tensor"):
            meta.impl(op, _ctc_loss)  # type: ignore[no-untyped-call]
        for op in ("_ctc_loss_backward", "_ctc_loss_backward.Tensor"):
            meta.impl(op, _ctc_loss_gradient)  # type: ignore[no-untyped-call]
        # On the CPU too, where a step on real inputs runs.
        host = stack.enter_context(library("aten", "CPU"))
        host.impl("_cudnn_rnn", _recurrent_on_cpu)  # type: ignore[no-untyped-call]
        host.impl("_cudnn_rnn_backward", _recurrent_gradients)  # type: ignore[no-untyped-call]
        register(meta, host)
        # Without a kernel of the device, autograd takes this norm apart.
        core: Any = meta.m  # `impl` refuses the op for having a composite kernel as well
        core.impl("_fused_rms_norm", "Meta", _root_mean_square_norm, False)
        # PyTorch's own takes bfloat16 alone, as did the first kernels.
        meta.impl("_grouped_mm", _grouped_product, allow_override=True)  # type: ignore[no-untyped-call]
        recurrent: tuple[tuple[Any, Callable[..., Any]], ...] = (
            *((getattr(_aten, name).input, _recurrent(name, packed=False)) for name in _MODES),
            *((getattr(_aten, name).data, _recurrent(name, packed=True)) for name in _MODES),
            (_aten.lstm_cell.default, lstm_cell),
            (_aten.gru_cell.default, gru_cell),
        )
        for op, kernel in recurrent:
            aten.impl(op, _with_casts(op, kernel, lowered))  # type: ignore[no-untyped-call]
        attention = _aten.scaled_dot_product_attention.default
        aten.impl(attention, _attention_of(attention, lowered))  # type: ignore[no-untyped-call]
        aten.impl(_aten.dropout.default, _dropout)  # type: ignore[no-untyped-call]
        stack.enter_context(patch.object(torch, "cond", _branch))
        yield


def _with_casts(op: Any, kernel: Callable[..., Any], lowered: Lowered) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        with below():
            return kernel(op, *tree_map(lowered, args), **tree_map(lowered, kwargs))

    return called


def _attention_of(op: Any, lowered: Lowered) -> Callable[..., Any]:
    """Attention by a kernel, or by ops of their own, each of which autocast casts for itself."""
    fused = _with_casts(op, _attention, lowered)

    def called(*args: Any, **kwargs: Any) -> Any:
        return (fused if FUSES_ATTENTION.get() else unfused_attention)(*args, **kwargs)

    return called


def _attention(  # noqa: PLR0917  # as the op has them
    op: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention by the kernel that a GPU would use."""
    kernel = attention_kernel(
        query, key, value, attn_mask,
        is_causal=is_causal, dropout=dropout_p, grouped=enable_gqa, capability=CAPABILITY.get(),
    )  # fmt: skip
    if query.device.type != "meta" or kernel == "math":
        result: Tensor = op(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                          enable_gqa=enable_gqa)  # fmt: skip
        return result
    width = value.shape[-1]
    if kernel == "flash":
        missing = -query.shape[-1] % _FLASH_SIDE
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        if missing:
            query, key, value = (pad(one, (0, missing)) for one in (query, key, value))
        result = _aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
        return result[..., :width] if missing else result
    trains = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    result = _aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, trains, dropout_p, is_causal, scale=scale
    )[0]
    return result


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A mask as numbers that are added to the scores, expanded over batch and heads."""
    if mask.dtype == torch.bool:
        zeros = torch.zeros_like(mask, dtype=query.dtype)
        mask = zeros.masked_fill_(mask.logical_not(), float("-inf"))
    missing = -mask.shape[-1] % _MASK_SIDE
    if missing:
        mask = pad(mask, (0, missing))[..., : mask.shape[-1]]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _dropout(values: Tensor, p: float, train: bool) -> Tensor:
    """Dropout by one kernel, which keeps a mask of a byte for each element."""
    with below():
        if not train or not 0 < p < 1 or not values.numel():
            result: Tensor = _aten.dropout(values, p, train)
            return result
        kept: Tensor = _aten.native_dropout(values, p, train)[0]
        return kept


def _recurrent(name: str, *, packed: bool) -> Callable[..., Any]:
    """All layers of an LSTM, a GRU or a plain recurrent network by cuDNN."""
    has_cell = name == "lstm"

    def kernel(op: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return op(*args, **kwargs)
        if packed:
            values, batch_sizes, states, weights, _, layers, dropout, train, two = args
            batch_first = False
        else:
            values, states, weights, _, layers, dropout, train, two, batch_first = args
            batch_sizes = None
        hidden, cell = (states[0], states[1]) if has_cell else (states, None)
        width = hidden.shape[-1] if cell is None else cell.shape[-1]
        projected = hidden.shape[-1] if hidden.shape[-1] != width else 0
        each = len(weights) // (layers * (2 if two else 1))
        lengths = [] if batch_sizes is None else _lengths(batch_sizes, hidden)
        buffer = weights[0].detach()  # stands for the one that all weights lie in
        results = _aten._cudnn_rnn(
            values, list(weights), each, buffer, hidden, cell, _MODES[name], width, projected,
            layers, batch_first, dropout, train, two, lengths, None,
        )  # fmt: skip
        return (results[0], results[1], results[2]) if has_cell else (results[0], results[1])

    return kernel


def _lengths(batch_sizes: Tensor, hidden: Tensor) -> list[int]:
    """Samples of each step of a packed sequence; without their values, as many as the batch."""
    if batch_sizes.device.type != "meta":
        return [int(one) for one in batch_sizes.tolist()]
    steps = int(batch_sizes.shape[0])
    return [int(hidden.shape[1])] * steps


def _recurrent_shapes(  # noqa: PLR0917  # as the op has them
    values: Tensor,
    weight: Sequence[Tensor],
    weight_stride0: int,
    weight_buf: Tensor | None,
    hx: Tensor,
    cx: Tensor | None,
    mode: int,
    hidden_size: int,
    proj_size: int,
    num_layers: int,
    batch_first: bool,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: Sequence[int],
    dropout_state: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Shapes of a recurrent layer's results, and of what it reserves for the backward pass."""
    width, directions = proj_size or hidden_size, 2 if bidirectional else 1
    output = values.new_empty(*values.shape[:-1], width * directions)
    cell = values.new_empty(0) if cx is None else torch.empty_like(cx)
    rows = values.shape[:-1].numel() * directions
    kept = num_layers * _KEPT_OF_A_UNIT[mode] * hidden_size
    kept += (num_layers - 1) * (width + (width if dropout else 0))  # what the next layer reads
    nbytes = rows * kept * values.element_size() if train else 0
    reserve = values.new_empty(nbytes, dtype=torch.uint8)
    buffer = values.new_empty(0) if weight_buf is None else weight_buf
    return output, torch.empty_like(hx), cell, reserve, buffer


def _recurrent_gradients(  # noqa: PLR0917  # as the op has them
    values: Tensor,
    weight: Sequence[Tensor],
    weight_stride0: int,
    weight_buf: Tensor | None,
    hx: Tensor,
    cx: Tensor | None,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor | None, list[Tensor]]:
    """Gradients of a recurrent layer in shape; on real inputs they are zero."""
    of_cell = None if cx is None else torch.zeros_like(cx)
    of_weights = [torch.zeros_like(one) for one in weight]
    return torch.zeros_like(values), torch.zeros_like(hx), of_cell, of_weights


def _recurrent_on_cpu(  # noqa: PLR0917  # as the op has them
    values: Tensor,
    weight: Sequence[Tensor],
    weight_stride0: int,
    weight_buf: Tensor | None,
    hx: Tensor,
    cx: Tensor | None,
    mode: int,
    hidden_size: int,
    proj_size: int,
    num_layers: int,
    batch_first: bool,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: Sequence[int],
    dropout_state: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The results of a recurrent layer, by PyTorch's own kernels."""
    op = getattr(_aten, next(name for name, number in _MODES.items() if number == mode))
    states: Any = hx if cx is None else [hx, cx]
    biased = weight_stride0 > (2 + bool(proj_size))
    rest = (list(weight), biased, num_layers, dropout, train, bidirectional)
    if batch_sizes:
        results = op.data(values, torch.tensor(batch_sizes), states, *rest)
    else:
        results = op.input(values, states, *rest, batch_first)
    empty = values.new_empty(0)
    cell = results[2] if cx is not None else empty
    return results[0], results[1], cell, values.new_empty(0, dtype=torch.uint8), weight[0].detach()


def _branch(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """`torch.cond` without its value takes the first branch: both have results of one shape."""
    unknown = isinstance(pred, Tensor) and pred.device.type == "meta"
    return true_fn(*operands) if unknown or pred else false_fn(*operands)


def _ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *_: Any
) -> tuple[Tensor, Tensor]:
    """Shapes of the loss of each sample, and of the probabilities of its prefixes."""
    steps, batch = log_probs.shape[:2]
    longest = targets.shape[1] if targets.dim() == 2 else -(-targets.shape[0] // batch)
    return log_probs.new_empty(batch), log_probs.new_empty(batch, steps, 2 * longest + 1)


def _ctc_loss_gradient(grad: Tensor, log_probs: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(log_probs)


def _batch_norm(  # noqa: PLR0917  # as the op has them
    values: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes of a batch norm: the result, and mean and deviation of each channel in training."""
    wide = torch.float32 if values.dtype in {torch.float16, torch.bfloat16} else values.dtype
    kept = values.new_empty(values.shape[1] if training else 0, dtype=wide)
    return torch.empty_like(values), kept, torch.empty_like(kept)


def _batch_norm_gradients(  # noqa: PLR0917  # as the op has them
    gradient: Tensor,
    values: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Shapes of the gradients by images, weight and bias."""
    of_channels = None if weight is None else torch.empty_like(weight)
    return (
        torch.empty_like(values) if output_mask[0] else None,
        of_channels if output_mask[1] else None,
        None if weight is None or not output_mask[2] else torch.empty_like(weight),
    )


def _root_mean_square_norm(
    values: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    """Shapes of a norm by the root of the mean square: the result, and the root of each row."""
    rows = values.dim() - len(normalized_shape)
    kept = (*values.shape[:rows], *(1 for _ in normalized_shape))
    wide = torch.float32 if values.dtype in {torch.float16, torch.bfloat16} else values.dtype
    return torch.empty_like(values), values.new_empty(kept, dtype=wide)


def _grouped_product(
    left: Tensor,
    right: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Shape of products of groups of rows, one group for each expert."""
    if left.dim() == right.dim() == 2:
        groups = 1 if offs is None else int(offs.shape[0])
        shape: tuple[int, ...] = (groups, left.shape[0], right.shape[1])
    elif left.dim() == 2:
        shape = (left.shape[0], right.shape[-1])
    elif right.dim() == 2:
        shape = (left.shape[1], right.shape[1])
    else:
        shape = (left.shape[0], left.shape[1], right.shape[-1])
    return left.new_empty(shape, dtype=out_dtype or left.dtype)
