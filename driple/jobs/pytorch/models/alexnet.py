"""AlexNet in one column (Krizhevsky, 2014): five convolutions and three large products."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["AlexNet"]

_GRID = 6  # cells a side that the products see, whatever the size of the images


class AlexNet(nn.Module):
    """Images [n, 3, side, side], side of at least 63, to logits [n, num_classes]."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.AdaptiveAvgPool2d(_GRID), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Dropout(), nn.Linear(256 * _GRID**2, 4096), nn.ReLU(),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, num_classes),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits
