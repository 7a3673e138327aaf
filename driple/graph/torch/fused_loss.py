"""Cross entropy fused with the output head of a language model: its logits are never kept.

    with fused_loss(model): ...     tokens in chunks: logits -> their gradients -> of inputs, head

As Liger-Kernel does it (`LigerFusedLinearCrossEntropyFunction`): gradients are computed in the
forward pass, in chunks whose logits take about as much as the inputs [tokens, hidden] of the head.
Shapes, kernels and memory are those of its kernels; values are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from driple.errors import ConfigError

__all__ = ["fused_loss"]

_LOSSES = (None, "ForCausalLM")  # of transformers; its models without a name have the second


@contextmanager
def fused_loss(model: nn.Module) -> Iterator[None]:
    """Have a language model of transformers compute its loss from the inputs of its head.

    Raises:
        ConfigError: it is no such model, or it computed its loss in another way.
    """
    own: Any = model
    has_head = hasattr(own, "get_output_embeddings") and hasattr(own, "loss_function")
    head = own.get_output_embeddings() if has_head else None
    if not isinstance(head, nn.Linear) or getattr(own, "loss_type", None) not in _LOSSES:
        raise ConfigError(
            "--set fused_loss=on, or such a loss in a training config, is for causal language "
            "models of transformers, whose output head is a linear layer; "
            f"{type(model).__name__} is none: leave it out"
        )
    calls = 0

    def loss(logits: Tensor, labels: Tensor, *_: Any, **__: Any) -> Tensor:
        nonlocal calls
        calls += 1
        later = nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        inputs = logits.reshape(-1, logits.shape[-1])
        mean_loss: Tensor = _FusedLoss.apply(  # type: ignore[no-untyped-call]  # of torch
            inputs, head.weight, head.bias, later.view(-1)
        )
        return mean_loss

    before = own.__dict__.get("_loss_function")
    own._loss_function = loss
    vars(head)["forward"] = lambda values: values
    try:
        yield
    finally:
        del vars(head)["forward"]
        if before is None:
            del own._loss_function
        else:
            own._loss_function = before
    if not calls:
        raise ConfigError(
            f"--set fused_loss=on: {type(model).__name__} computes its loss in code of its own, "
            "where it cannot be replaced; leave it out"
        )


class _FusedLoss(torch.autograd.Function):
    """Mean cross entropy of inputs [t, h] and a head [v, h]; labels [t]."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor
    ) -> Tensor:
        tokens, hidden = inputs.shape
        by_inputs = torch.zeros_like(inputs)
        by_weight = torch.zeros_like(weight) if weight.requires_grad else None
        by_bias = torch.zeros_like(bias) if bias is not None and bias.requires_grad else None
        losses = torch.zeros(tokens, dtype=torch.float32, device=inputs.device)
        step = _chunk(tokens, -(-weight.shape[0] // hidden))
        for start in range(0, tokens, step):
            rows = inputs[start : start + step]
            logits = rows @ weight.t()
            if bias is not None:
                logits = logits + bias
            # One kernel reads them twice and writes their gradients in their place.
            losses[start : start + step] = logits.amax(dim=-1)
            logits.sub_(labels[start : start + step].unsqueeze(-1))
            by_inputs[start : start + step] = logits @ weight
            if by_weight is not None:
                by_weight += logits.t() @ rows
            if by_bias is not None:
                by_bias += logits.sum(dim=0)
        ctx.save_for_backward(by_inputs, by_weight, by_bias)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if one is None else one.mul_(gradient) for one in ctx.saved_tensors]
        return (*scaled, None)


def _chunk(tokens: int, parts: int) -> int:
    """Tokens of a chunk: the next power of two of their share, at most all."""
    share = -(-tokens // parts)
    return min(1 << max(share - 1, 0).bit_length(), tokens)
