"""A model whose forward pass is a user's training step: it returns the loss of a whole batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

__all__ = ["Stepped"]


class Stepped(nn.Module):
    """Calls a training step with a model and the batch.

    Args:
        model: whose parameters are trained.
        step: of model and batch; returns the loss.
    """

    def __init__(self, model: nn.Module, step: Callable[[nn.Module, Any], Tensor]) -> None:
        super().__init__()
        self.model, self._step = model, step

    def forward(self, *parts: Any, **named: Any) -> Tensor:
        """The loss of a batch, in the form in which the step takes it."""
        batch = named or (parts[0] if len(parts) == 1 else parts)
        return self._step(self.model, batch)
