"""SqueezeNet 1.0 (Iandola et al., 2016): few parameters, in fire modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["SqueezeNet"]


class _Fire(nn.Module):
    """Squeeze to few channels, then expand by windows of 1 x 1 and 3 x 3."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(channels, squeezed, 1), nn.ReLU())
        self.small = nn.Conv2d(squeezed, expanded, 1)
        self.large = nn.Conv2d(squeezed, expanded, 3, padding=1)
        self.activation = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Both expansions, one after the other in the channels."""
        narrow = self.squeeze(images)
        output: Tensor = self.activation(torch.cat([self.small(narrow), self.large(narrow)], dim=1))
        return output


class SqueezeNet(nn.Module):
    """Images [n, 3, side, side], side of at least 32, to logits [n, num_classes]."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 7, stride=2), nn.ReLU(), _pool(),
            _Fire(96, 16, 64), _Fire(128, 16, 64), _Fire(128, 32, 128), _pool(),
            _Fire(256, 32, 128), _Fire(256, 48, 192), _Fire(384, 48, 192), _Fire(384, 64, 256),
            _pool(), _Fire(512, 64, 256),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Dropout(), nn.Conv2d(512, num_classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits


def _pool() -> nn.Module:
    return nn.MaxPool2d(3, 2, ceil_mode=True)
