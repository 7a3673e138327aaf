"""Loss, optimizer and learning rate of a `TrainConfig`.

(scaled prediction, scaled target) -> loss      epoch, validation losses so far -> learning rate
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import Parameter, functional

from driple.training.config import TrainConfig

__all__ = ["RateSchedule", "loss_of", "make_optimizer", "set_rate"]

PLATEAU_FACTOR = 0.5
GROWN_RATE_SHARE = 0.1  # of the learning rate, when all layers take part


def loss_of(
    config: TrainConfig, predicted: Tensor, target: Tensor, scale: npt.NDArray[np.float64]
) -> Tensor:
    """Mean loss over graphs and targets; a scalar.

    Args:
        config: kind of the loss.
        predicted: shape [..., 12], scaled.
        target: likewise.
        scale: shape [12], deviation of each target's logarithms, for `smape`.
    """
    if config.loss == "huber":
        return functional.huber_loss(predicted, target, delta=config.huber_delta)
    if config.loss == "smape":
        # |a - b| / ((a + b) / 2) = 2 tanh(|log a - log b| / 2)
        logs = (predicted - target) * torch.from_numpy(scale).to(predicted.dtype)
        return 2 * torch.tanh(logs.abs() / 2).mean()
    return functional.mse_loss(predicted, target)


def make_optimizer(
    config: TrainConfig, parameters: Iterable[Parameter], shared: Collection[Parameter] = ()
) -> torch.optim.Optimizer:
    """The optimizer, at the configured learning rate.

    Args:
        config: kind and rates.
        parameters: all weights that are trained.
        shared: those of layers that are repeated; `set_rate` gives them their share of the rate.
    """
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    if (config.shared_rate_share == 1 and not config.growth_epochs) or not shared:
        return kind(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    repeated = {id(parameter) for parameter in shared}
    groups: list[dict[str, Any]] = [
        {"params": []},
        {"params": [], "rate_share": config.shared_rate_share},
    ]
    for parameter in parameters:
        groups[id(parameter) in repeated]["params"].append(parameter)
    return kind(groups, lr=config.learning_rate, weight_decay=config.weight_decay)


def set_rate(optimizer: torch.optim.Optimizer, rate: float, *, shared: bool = True) -> None:
    """Set the learning rate, of which repeated layers take their share, or nothing."""
    for group in optimizer.param_groups:
        share = group.get("rate_share")
        group["lr"] = rate if share is None else rate * share * shared


class RateSchedule:
    """Learning rate of each epoch; its state follows from the validation losses alone."""

    def __init__(self, config: TrainConfig, val_losses: Iterable[float] = ()) -> None:
        """Start, or continue after the epochs with these validation losses."""
        self._config = config
        self._share = 1.0
        self._best = math.inf
        self._waited = 0
        for val_loss in val_losses:
            self.observe(val_loss)

    def observe(self, val_loss: float) -> None:
        """Record the validation loss after an epoch."""
        self._waited += 1
        if val_loss < self._best:
            self._best, self._waited = val_loss, 0
        if self._config.schedule == "plateau" and self._waited >= self._config.plateau_epochs:
            self._share *= PLATEAU_FACTOR
            self._waited = 0

    def rate(self, epoch: int) -> float:
        """Learning rate of an epoch, counted from 1.

        When all layers take part, warm-up and cosine begin again, at a tenth of the rate.
        """
        config = self._config
        growth = config.growth_epochs
        most, epochs = config.learning_rate, config.max_epochs - growth
        if epoch <= growth:
            epochs = growth
        elif growth:
            most, epoch = GROWN_RATE_SHARE * most, epoch - growth
        if epoch <= config.warmup_epochs:
            return most * epoch / (config.warmup_epochs + 1)
        share = self._share
        if config.schedule == "cosine":
            whole = max(1, epochs - config.warmup_epochs)
            done = (epoch - 1 - config.warmup_epochs) / whole
            least = config.final_rate_share
            share = least + (1 - least) * (1 + math.cos(math.pi * done)) / 2
        return most * max(share, config.final_rate_share)
