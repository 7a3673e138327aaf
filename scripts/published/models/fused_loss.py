"""Cross-entropy whose gradient is written into the logits, as fms-acceleration's `foak` has it.

    logits in single precision, shifted by one --> loss; the logits become their gradient

Unsloth's `Fast_CrossEntropyLoss`, which foak takes, keeps logits and the logarithm of a row's sum,
where PyTorch keeps the logarithms of all probabilities and makes two more tensors of that size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition

__all__ = ["FUSED_LOSS", "with_fused_loss"]

FUSED_LOSS = "foak"  # suffix of a job


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        sums = logits.new_empty(logits.shape[0])
        ctx.save_for_backward(logits, sums, labels)
        return logits.new_empty(logits.shape[0])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        logits, sums, _ = ctx.saved_tensors
        return logits.sub_(sums[:, None]).mul_(gradient[:, None]), None


def fused_loss(logits: Tensor, labels: Tensor, vocab_size: int, **_: Any) -> Tensor:
    """The mean loss of the next words."""
    wide = logits.float()
    rows = wide[..., :-1, :].contiguous().view(-1, vocab_size)
    losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]  # of torch
        rows, labels[..., 1:].contiguous().view(-1)
    )
    return losses.sum() / rows.shape[0]


def with_fused_loss(definition: Definition) -> Definition:
    """The model with this loss in place of its own."""

    def build(batch_size: int, size: int) -> Built:
        parts = definition.build(batch_size, size)
        model: nn.Module = parts.model
        model.loss_function = fused_loss  # type: ignore[assignment]  # a property of transformers
        return parts

    return replace(definition, build=build)
