"""Functions that a profile's processes find by their names."""

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

__all__ = ["build_dataset", "build_model", "mean_square"]


def build_model() -> nn.Module:
    return nn.Linear(4, 2)


def build_dataset() -> Dataset[tuple[Tensor, ...]]:
    return TensorDataset(torch.zeros(64, 4), torch.ones(64, 2))


def mean_square(outputs: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.mse_loss(outputs, labels)
