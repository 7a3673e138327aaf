"""MobileNet-v2 (Sandler et al., CVPR 2018): inverted residuals with linear bottlenecks."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["MobileNetV2"]

# Expansion of a block's channels, channels it gives, blocks, stride of the first (paper, table 2).
_STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
_STEM, _LAST = 32, 1280


class _Inverted(nn.Module):
    """Widen, filter each channel by itself, narrow again."""

    def __init__(self, channels: int, out: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = channels * expansion
        widen = [] if expansion == 1 else [*_conv(channels, width, 1), nn.ReLU6()]
        self.layers = nn.Sequential(
            *widen,
            *_conv(width, width, 3, stride, groups=width), nn.ReLU6(),
            *_conv(width, out, 1),
        )  # fmt: skip
        self.around = stride == 1 and channels == out

    def forward(self, images: Tensor) -> Tensor:
        """The block's output."""
        output: Tensor = self.layers(images)
        return output + images if self.around else output


class MobileNetV2(nn.Module):
    """Images [n, 3, side, side], side of at least 32, to logits [n, num_classes]."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_conv(3, _STEM, 3, 2), nn.ReLU6()]
        channels = _STEM
        for expansion, out, count, stride in _STAGES:
            for i in range(count):
                layers.append(_Inverted(channels, out, stride if i == 0 else 1, expansion))
                channels = out
        layers += [*_conv(channels, _LAST, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(_LAST, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits


def _conv(
    before: int, after: int, kernel: int, stride: int = 1, *, groups: int = 1
) -> list[nn.Module]:
    return [
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
    ]
