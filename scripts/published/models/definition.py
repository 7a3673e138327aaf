"""What a published model is: how it is built, how it was trained, what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Built", "Definition", "meta_tokens"]

Loss = Callable[[Any], Tensor]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A model and what one step of it takes, all on the meta device.

    Attributes:
        model: ready to train.
        batch: as `driple.graph.torch.step.traced_step` takes it.
        loss: of the model's outputs; None if the model returns its loss.
    """

    model: nn.Module
    batch: Any
    loss: Loss | None


@dataclass(frozen=True, kw_only=True)
class Definition:
    """How a published model is built and trained where its row says nothing else.

    Attributes:
        build: from samples of a device and the size of one, on the meta device.
        size: tokens of a sample, frames, or the side of an image; 0 if it has no size.
        optimizer: one of `driple.graph.torch.options.OPTIMIZERS`.
        half: precision that `fp16`, `AMP` or `bf16` of its source means.
        compiled: whether the source compiled the model, or ran fused kernels throughout.
        clip_gradients: whether the norm of the gradients is clipped.
        parameters: as published or as the source's own code counts; None if unknown.
        units: what a throughput in the source's unit counts in one sample, such as tokens.
        assumed: what the source does not say, or what differs from it.
    """

    build: Callable[[int, int], Built]
    size: int = 0
    optimizer: str = "adamw-fused"
    half: str = "amp-fp16"
    compiled: bool = False
    clip_gradients: bool = False
    parameters: int | None = None
    units: float = 1.0
    assumed: str = ""


Definitions = Mapping[str, Definition]


def meta_tokens(*shape: int) -> Tensor:
    """Whole numbers of this shape, such as tokens or labels, on the meta device."""
    return torch.zeros(*shape, dtype=torch.int64, device="meta")
