"""Forward FLOPs by equations 20 and 21 of Zeng et al., of models that the zoo lacks.

published layers of VGG (configurations B and C) and ResNet (18 and 34) -> FLOPs of one image
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.fits.zeng_formulas import convolution_flops, dense_flops, forward_flops

__all__ = ["LAYERS"]

_CLASSES = 1000


def _conv(channels: int, window: int, outer: int, size: int) -> float:
    return float(convolution_flops(channels, (window, window), outer, (size, size)))


def _vgg(stages: Sequence[Sequence[tuple[int, int]]]) -> list[float]:
    """Convolutions by stage as (window, channels); the image is halved after each stage."""
    flops, channels, size = [], 3, 224
    for stage in stages:
        for window, outer in stage:
            flops.append(_conv(channels, window, outer, size))
            channels = outer
        size //= 2
    dense = [(channels * size * size, 4096), (4096, 4096), (4096, _CLASSES)]
    return flops + [float(dense_flops(one, other)) for one, other in dense]


def _resnet(blocks: Sequence[int]) -> list[float]:
    """Blocks of two 3 x 3 convolutions; a 1 x 1 convolution where the channels change."""
    flops, channels = [_conv(3, 7, 64, 112)], 64
    for stage, count in enumerate(blocks):
        outer, size = 64 * 2**stage, 56 // 2**stage
        for _ in range(count):
            if channels != outer:
                flops.append(_conv(channels, 1, outer, size))
            flops += [_conv(channels, 3, outer, size), _conv(outer, 3, outer, size)]
            channels = outer
    return [*flops, float(dense_flops(channels, _CLASSES))]


def _stages(windows: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Stages of VGG with these windows in each of the last three."""
    first = [[(3, 64)] * 2, [(3, 128)] * 2]
    return first + [[(window, made) for window in windows] for made in (256, 512, 512)]


LAYERS = {
    "vgg13": float(forward_flops(_vgg(_stages((3, 3))))),
    "vgg16c": float(forward_flops(_vgg(_stages((3, 3, 1))))),
    "resnet18": float(forward_flops(_resnet((2, 2, 2, 2)))),
    "resnet34": float(forward_flops(_resnet((3, 4, 6, 3)))),
}
