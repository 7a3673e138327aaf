"""ResNet (He et al., CVPR 2016), and what the micro characterization takes out of it (section VI).

Without residuals the branches that add a block's input are left out, with the layers on them;
without batch normalisation the network has two fewer gradients for each convolution.
"""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["RESNET_DEPTHS", "ResNet"]

# Blocks of each stage, and whether they are bottlenecks of three convolutions.
RESNET_DEPTHS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}
_EXPANSION = 4
_STEM = 64


class _Block(nn.Module):
    """Two convolutions, or three with a narrow one in the middle, and a way around them."""

    def __init__(
        self,
        channels: int,
        width: int,
        stride: int,
        *,
        bottleneck: bool,
        residual: bool,
        norm: bool,
    ) -> None:
        super().__init__()
        out = width * _EXPANSION if bottleneck else width
        if bottleneck:
            shapes = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        else:
            shapes = [(channels, width, 3, stride), (width, out, 3, 1)]
        layers: list[nn.Module] = []
        for before, after, kernel, step in shapes:
            layers += [*_conv(before, after, kernel, step, norm=norm), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.residual = residual
        same = stride == 1 and channels == out
        self.shortcut = (
            nn.Sequential()
            if same or not residual
            else nn.Sequential(*_conv(channels, out, 1, stride, norm=norm))
        )
        self.activation = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """The block's output."""
        output: Tensor = self.layers(images)
        if self.residual:
            output = output + self.shortcut(images)
        result: Tensor = self.activation(output)
        return result


class ResNet(nn.Module):
    """Images [n, 3, side, side], side of at least 32, to logits [n, num_classes].

    Args:
        depth: 18, 34, 50, 101 or 152 layers with weights.
        num_classes: outputs.
        residual: add a block's input to its output.
        norm: batch normalisation after every convolution.
    """

    def __init__(
        self, depth: int = 18, num_classes: int = 1000, *, residual: bool = True, norm: bool = True
    ) -> None:
        super().__init__()
        counts, bottleneck = RESNET_DEPTHS[depth]
        layers = [*_conv(3, _STEM, 7, 2, norm=norm), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
        channels = _STEM
        for stage, count in enumerate(counts):
            width = _STEM * 2**stage
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                layers.append(
                    _Block(channels, width, stride, bottleneck=bottleneck, residual=residual,
                           norm=norm)
                )  # fmt: skip
                channels = width * _EXPANSION if bottleneck else width
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.features(images))
        return logits


def _conv(before: int, after: int, kernel: int, stride: int, *, norm: bool) -> list[nn.Module]:
    """A convolution that keeps the size but for its stride, and its normalisation."""
    layers: list[nn.Module] = [
        nn.Conv2d(before, after, kernel, stride=stride, padding=kernel // 2, bias=False)
    ]
    return [*layers, nn.BatchNorm2d(after)] if norm else layers
