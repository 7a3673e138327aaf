"""U-Nets: nnU-Net of DeepLearningExamples (MONAI's DynUNet), MLPerf's 3-D U-Net, U-Net, V-Net.

image -> blocks of two convolutions, halved in size each time -> the same upwards, joined
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["UNETS"]


def _parts(rank: int) -> tuple[Any, Any, Any]:
    """Convolution, transposed convolution and instance norm for images of this rank."""
    if rank == 2:
        return nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d
    return nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d


class _Pair(nn.Module):
    """Two convolutions, each with instance norm and leaky ReLU."""

    def __init__(self, rank: int, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        convolution, _, norm = _parts(rank)
        self.conv1 = convolution(inner, outer, 3, stride, 1, bias=False)
        self.conv2 = convolution(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = norm(outer, affine=True), norm(outer, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.leaky_relu(self.norm1(self.conv1(x)), 0.01)
        return nn.functional.leaky_relu(self.norm2(self.conv2(x)), 0.01)


class DynUnet(nn.Module):
    """Images [n, channels, ...] to classes [n, classes, ...].

    Args:
        rank: 2 or 3 dimensions of space.
        channels: of an image.
        classes: of a pixel.
        widths: channels of each level; the size is halved from one to the next.
    """

    def __init__(self, rank: int, channels: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        convolution, transposed, _ = _parts(rank)
        inner = (channels, *widths[:-1])
        self.down = nn.ModuleList(
            _Pair(rank, one, other, 1 if level == 0 else 2)
            for level, (one, other) in enumerate(zip(inner, widths, strict=True))
        )
        backwards = list(widths)[::-1]
        steps = list(itertools.pairwise(backwards))
        self.transposed = nn.ModuleList(transposed(one, other, 2, 2) for one, other in steps)
        self.up = nn.ModuleList(_Pair(rank, 2 * other, other, 1) for _, other in steps)
        self.output = convolution(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Classes of each pixel."""
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        kept.pop()
        for larger, block in zip(self.transposed, self.up, strict=True):
            x = block(torch.cat((larger(x), kept.pop()), dim=1))
        classes: Tensor = self.output(x)
        return classes


def _dice(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy, and how little predicted and labelled regions overlap."""
    entropy = nn.functional.cross_entropy(logits, labels)
    chances = torch.softmax(logits, 1)
    wanted = torch.zeros_like(chances).scatter_(1, labels.unsqueeze(1), 1.0)
    places = [0, *range(2, logits.dim())]
    both = (chances * wanted).sum(places)[1:]
    share = (2 * both + 1e-5) / (chances.sum(places)[1:] + wanted.sum(places)[1:] + 1e-5)
    return entropy + (1 - share).mean()


def _dynamic(
    batch_size: int, size: int, *, rank: int, channels: int, classes: int, widths: Sequence[int]
) -> Built:
    sides = (size, size * 5 // 6) if rank == 2 else (size,) * 3
    with torch.device("meta"):
        model = DynUnet(rank, channels, classes, widths)
        images = torch.zeros(batch_size, channels, *sides)
    labels = meta_tokens(batch_size, *sides)
    return Built(model=model, batch=images, loss=lambda logits: _dice(logits.float(), labels))


class _Valid(nn.Module):
    """Two convolutions with ReLU."""

    def __init__(self, inner: int, middle: int, outer: int, padding: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, middle, 3, padding=padding)
        self.conv2 = nn.Conv2d(middle, outer, 3, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.conv2(nn.functional.relu(self.conv1(x))))


class Unet(nn.Module):
    """The U-Net of Ronneberger et al. (2015), in the two forms of DeepLearningExamples.

    Args:
        widths: channels of each level.
        padding: of the convolutions: 0 or 1.
        window: of the transposed convolutions.
        narrow: whether upwards the second convolution halves the channels, not the transposed one.
    """

    def __init__(self, widths: Sequence[int], *, padding: int, window: int, narrow: bool) -> None:
        super().__init__()
        inner = (1, *widths[:-1])
        self.down = nn.ModuleList(
            _Valid(one, other, other, padding) for one, other in zip(inner, widths, strict=True)
        )
        backwards = list(widths)[::-1]
        steps = list(itertools.pairwise(backwards))
        more = (window - 2 + 1) // 2
        inputs_of = [one // 2 if narrow else other for one, other in steps]
        given = [steps[0][0], *(one // 2 if narrow else one for one, _ in steps[1:])]
        self.transposed = nn.ModuleList(
            nn.ConvTranspose2d(one, other, window, 2, padding=more, output_padding=window - 2)
            for one, other in zip(given, inputs_of, strict=True)
        )
        last = len(steps) - 1
        self.up = nn.ModuleList(
            _Valid(new + old, old, old // 2 if narrow and number < last else old, padding)
            for number, (new, (_, old)) in enumerate(zip(inputs_of, steps, strict=True))
        )
        self.output = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Classes of each pixel that is left."""
        kept = []
        for number, block in enumerate(self.down):
            x = block(x)
            kept.append(x)
            if number < len(self.down) - 1:
                x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.dropout(x, 0.5, self.training)
        kept.pop()
        for larger, block in zip(self.transposed, self.up, strict=True):
            x = nn.functional.relu(larger(x))
            other = kept.pop()
            cut = (other.shape[-1] - x.shape[-1]) // 2
            other = other[:, :, cut : cut + x.shape[-2], cut : cut + x.shape[-1]]
            x = block(torch.cat((x, other), dim=1))
        classes: Tensor = self.output(x)
        return classes


def _plain(
    batch_size: int, size: int, *, widths: Sequence[int], padding: int, window: int, narrow: bool
) -> Built:
    with torch.device("meta"):
        model = Unet(widths, padding=padding, window=window, narrow=narrow)
        images = torch.zeros(batch_size, 1, size, size)

    def loss(logits: Tensor) -> Tensor:
        labels = meta_tokens(logits.shape[0], *logits.shape[2:])
        return _dice(logits.float(), labels)

    return Built(model=model, batch=images, loss=loss)


class Vnet(nn.Module):
    """V-Net (Milletari et al., 2016) of DeepLearningExamples: [n, 1, ...] to [n, 3, ...]."""

    def __init__(self) -> None:
        super().__init__()
        self.start = self._normed(nn.Conv3d(1, 16, 3, padding=1), 16)
        widths = (16, 32, 64, 128)
        self.halved = nn.ModuleList(
            self._normed(nn.Conv3d(one, 2 * one, 2, 2), 2 * one) for one in widths[:-1]
        )
        self.down = nn.ModuleList(self._block(one) for one in widths[1:])
        self.doubled = nn.ModuleList(
            self._normed(nn.ConvTranspose3d(one, other, 2, 2), other)
            for one, other in ((128, 64), (128, 32), (64, 16))
        )
        self.up = nn.ModuleList(self._block(2 * one) for one in (64, 32))
        self.last = nn.Sequential(self._normed(nn.Conv3d(32, 32, 3, padding=1), 32))
        self.output = nn.Conv3d(32, 3, 1)

    @staticmethod
    def _normed(layer: nn.Module, width: int) -> nn.Sequential:
        return nn.Sequential(layer, nn.BatchNorm3d(width), nn.ReLU(inplace=True))

    def _block(self, width: int) -> nn.Sequential:
        layers = [self._normed(nn.Conv3d(width, width, 3, padding=1), width) for _ in range(3)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Classes of each voxel."""
        x = self.start(x) + x
        kept = [x]
        for smaller, block in zip(self.halved, self.down, strict=True):
            x = smaller(x)
            x = block(x) + x
            kept.append(x)
        kept.pop()
        for number, larger in enumerate(self.doubled):
            x = torch.cat((larger(x), kept.pop()), dim=1)
            x = (self.up[number] if number < len(self.up) else self.last)(x) + x
        classes: Tensor = self.output(x)
        return classes


def _vnet(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = Vnet()
        images = torch.zeros(batch_size, 1, size, size, size)
    labels = meta_tokens(batch_size, size, size, size)
    return Built(model=model, batch=images, loss=lambda logits: _dice(logits.float(), labels))


_FLAT, _SOLID = (32, 64, 128, 256, 512, 512), (32, 64, 128, 256, 320, 320)
UNETS: Mapping[str, Definition] = {
    "nnunet-2d": Definition(
        build=partial(_dynamic, rank=2, channels=4, classes=4, widths=_FLAT),
        size=192,
        optimizer="adam",
        assumed="images of 192 x 160 with 4 channels (task 01), no deep supervision",
    ),
    "nnunet-3d": Definition(
        build=partial(_dynamic, rank=3, channels=4, classes=4, widths=_SOLID),
        size=128,
        optimizer="adam",
        assumed="128^3 with 4 channels (task 01), no deep supervision; NDHWC in half precision",
    ),
    "unet3d": Definition(
        build=partial(_dynamic, rank=3, channels=1, classes=3, widths=_SOLID),
        size=128,
        optimizer="momentum",
        half="fp16",
        compiled=True,
        assumed="MLPerf's 3-D U-Net (KiTS19): fused instance norm and ReLU",
    ),
    "unet-medical": Definition(
        build=partial(_plain, widths=(64, 128, 256, 512, 1024), padding=0, window=3, narrow=False),
        size=572,
        optimizer="adam",
        compiled=True,
        assumed="TensorFlow with XLA: element-wise ops are fused",
    ),
    "unet-industrial": Definition(
        build=partial(_plain, widths=(32, 32, 64, 128, 256), padding=1, window=2, narrow=True),
        size=512,
        optimizer="rmsprop",
        compiled=True,
        assumed="tinyUNet, TensorFlow with XLA; two classes in place of one logit",
    ),
    "vnet": Definition(
        build=_vnet,
        size=32,
        optimizer="adam",
        compiled=True,
        assumed="hippocampus, 32^3, TensorFlow with XLA",
    ),
}
