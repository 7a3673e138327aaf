"""VGG (Simonyan and Zisserman, ICLR 2015): few layers, and most gradients in three products."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["VGG", "VGG_DEPTHS"]

# Convolutions in each of the five blocks.
VGG_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS = (64, 128, 256, 512, 512)
_GRID = 7


class VGG(nn.Module):
    """Images [n, 3, side, side], side of at least 32, to logits [n, num_classes].

    Args:
        depth: 11, 13, 16 or 19 layers with weights.
        num_classes: outputs.
        norm: batch normalisation after every convolution; the original has none.
    """

    def __init__(self, depth: int = 11, num_classes: int = 1000, *, norm: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width, count in zip(_WIDTHS, VGG_DEPTHS[depth], strict=True):
            for _ in range(count):
                layers.append(nn.Conv2d(channels, width, 3, padding=1))
                layers += [nn.BatchNorm2d(width)] if norm else []
                layers.append(nn.ReLU())
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(_GRID), nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear(512 * _GRID**2, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, num_classes),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits
