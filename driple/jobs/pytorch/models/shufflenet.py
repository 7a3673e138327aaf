"""ShuffleNet v2 at width 1 (Ma et al., ECCV 2018): half of the channels pass by, then are mixed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["ShuffleNetV2"]

# Blocks and channels of each stage (paper, table 5, 1x).
_STAGES = ((4, 116), (8, 232), (4, 464))
_STEM, _LAST = 24, 1024


class _Unit(nn.Module):
    """A unit that keeps the size (half passes by), or halves it (both branches compute)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        half = out // 2
        self.halves_size = stride == 2
        self.left = nn.Sequential(
            *(
                [*_depthwise(channels, stride), *_pointwise(channels, half)]
                if self.halves_size
                else []
            )
        )
        self.right = nn.Sequential(
            *_pointwise(channels if self.halves_size else half, half),
            *_depthwise(half, stride),
            *_pointwise(half, half),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Both branches, their channels taken in turn."""
        left, right = (images, images) if self.halves_size else images.chunk(2, dim=1)
        both = torch.stack([self.left(left), self.right(right)], dim=2)
        return both.flatten(1, 2)


class ShuffleNetV2(nn.Module):
    """Images [n, 3, side, side], side of at least 32, to logits [n, num_classes]."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(3, _STEM, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(_STEM),
            nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
        ]  # fmt: skip
        channels = _STEM
        for count, out in _STAGES:
            for i in range(count):
                layers.append(_Unit(channels, out, 2 if i == 0 else 1))
                channels = out
        layers += [*_pointwise(channels, _LAST), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(_LAST, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits


def _pointwise(before: int, after: int) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]


def _depthwise(channels: int, stride: int) -> list[nn.Module]:
    return [
        nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False),
        nn.BatchNorm2d(channels),
    ]
