"""Inception v3 (Szegedy et al., 2016) and v4 (Szegedy et al., 2017), without the auxiliary head.

Like tf_cnn_benchmarks, normalisations have no factor, and v3 has no dropout.
A module is a few towers side by side; a tower is a list of convolutions (filters, kernel size).
Below 299 pixels the stem pads its images and v3 leaves out one pooling, so that small images do not
vanish.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["inception3", "inception4"]

Tensor = Any
Size = int | tuple[int, int]
Layer = tuple[int, Size]

_PUBLISHED_SIZE = 299
_ROW, _COLUMN = (1, 7), (7, 1)


def inception3(net: Net, images: Tensor, data: DataSet) -> Tensor:
    """Logits of Inception v3; shape [batch, classes]."""
    large = data.image_size >= _PUBLISHED_SIZE
    edge = "VALID" if large else "SAME"
    x = _tower(net, images, (32, 3), stride=2, padding=edge)
    x = _tower(net, x, (32, 3), padding=edge)
    x = _tower(net, x, (64, 3))
    x = net.max_pool(x, 3, 2, edge)
    x = _tower(net, x, (80, 1), (192, 3), padding=edge)
    x = net.max_pool(x, 3, 2, edge) if large else x
    for pooled in (32, 64, 64):
        x = _grid35(net, x, pooled)
    x = _reduce35(net, x, edge)
    for filters in (128, 160, 160, 192):
        x = _grid17(net, x, filters)
    x = _reduce17(net, x, edge)
    x = _grid8(net, x, net.avg_pool)
    x = _grid8(net, x, net.max_pool)
    return net.dense(net.average_to_vector(x), data.num_classes)


def _tower(net: Net, x: Tensor, *layers: Layer, stride: int = 1, padding: str = "SAME") -> Tensor:
    """Convolutions one after another; the last has the stride, and all have the padding."""
    for i, (filters, size) in enumerate(layers):
        last = i == len(layers) - 1
        x = net.conv_bn_relu(
            x,
            net.channels(filters),
            size,
            stride=stride if last else 1,
            padding=padding,
            scale=False,
        )
    return x


def _reduced(net: Net, x: Tensor, before: tuple[Layer, ...], last: Layer, edge: str) -> Tensor:
    """A tower whose last convolution halves the image."""
    return _tower(net, _tower(net, x, *before), last, stride=2, padding=edge)


def _grid35(net: Net, x: Tensor, pooled: int) -> Tensor:
    tower = partial(_tower, net)
    return net.concat(
        [
            tower(x, (64, 1)),
            tower(x, (48, 1), (64, 5)),
            tower(x, (64, 1), (96, 3), (96, 3)),
            tower(net.avg_pool(x, 3, 1), (pooled, 1)),
        ]
    )


def _reduce35(net: Net, x: Tensor, edge: str) -> Tensor:
    return net.concat(
        [
            _reduced(net, x, (), (384, 3), edge),
            _reduced(net, x, ((64, 1), (96, 3)), (96, 3), edge),
            net.max_pool(x, 3, 2, edge),
        ]
    )


def _grid17(net: Net, x: Tensor, n: int) -> Tensor:
    tower = partial(_tower, net)
    return net.concat(
        [
            tower(x, (192, 1)),
            tower(x, (n, 1), (n, _ROW), (192, _COLUMN)),
            tower(x, (n, 1), (n, _COLUMN), (n, _ROW), (n, _COLUMN), (192, _ROW)),
            tower(net.avg_pool(x, 3, 1), (192, 1)),
        ]
    )


def _reduce17(net: Net, x: Tensor, edge: str) -> Tensor:
    return net.concat(
        [
            _reduced(net, x, ((192, 1),), (320, 3), edge),
            _reduced(net, x, ((192, 1), (192, _ROW), (192, _COLUMN)), (192, 3), edge),
            net.max_pool(x, 3, 2, edge),
        ]
    )


def _grid8(net: Net, x: Tensor, pool: Any) -> Tensor:
    tower = partial(_tower, net)
    narrow = tower(x, (384, 1))
    wide = tower(x, (448, 1), (384, 3))
    return net.concat(
        [
            tower(x, (320, 1)),
            *_forked(net, narrow, 384),
            *_forked(net, wide, 384),
            tower(pool(x, 3, 1), (192, 1)),
        ]
    )


def _forked(net: Net, x: Tensor, filters: int) -> list[Tensor]:
    """A 1x3 and a 3x1 convolution of the same tensor."""
    return [_tower(net, x, (filters, (1, 3))), _tower(net, x, (filters, (3, 1)))]


def inception4(net: Net, images: Tensor, data: DataSet) -> Tensor:
    """Logits of Inception v4; shape [batch, classes]."""
    edge = "VALID" if data.image_size >= _PUBLISHED_SIZE else "SAME"
    x = _stem4(net, images, edge)
    for _ in range(4):
        x = _grid35_v4(net, x)
    x = net.concat(
        [
            net.max_pool(x, 3, 2, edge),
            _reduced(net, x, (), (384, 3), edge),
            _reduced(net, x, ((192, 1), (224, 3)), (256, 3), edge),
        ]
    )
    for _ in range(7):
        x = _grid17_v4(net, x)
    x = net.concat(
        [
            net.max_pool(x, 3, 2, edge),
            _reduced(net, x, ((192, 1),), (192, 3), edge),
            _reduced(net, x, ((256, 1), (256, _ROW), (320, _COLUMN)), (320, 3), edge),
        ]
    )
    for _ in range(3):
        x = _grid8_v4(net, x)
    return net.dense(net.dropout(net.global_pool(x), 0.2), data.num_classes)


def _stem4(net: Net, images: Tensor, edge: str) -> Tensor:
    x = _tower(net, images, (32, 3), stride=2, padding=edge)
    x = _tower(net, x, (32, 3), padding=edge)
    x = _tower(net, x, (64, 3))
    x = net.concat([net.max_pool(x, 3, 2, edge), _reduced(net, x, (), (96, 3), edge)])
    short = _tower(net, _tower(net, x, (64, 1)), (96, 3), padding=edge)
    long = _tower(net, x, (64, 1), (64, _COLUMN), (64, _ROW))
    x = net.concat([short, _tower(net, long, (96, 3), padding=edge)])
    return net.concat([_reduced(net, x, (), (192, 3), edge), net.max_pool(x, 3, 2, edge)])


def _grid35_v4(net: Net, x: Tensor) -> Tensor:
    tower = partial(_tower, net)
    return net.concat(
        [
            tower(net.avg_pool(x, 3, 1), (96, 1)),
            tower(x, (96, 1)),
            tower(x, (64, 1), (96, 3)),
            tower(x, (64, 1), (96, 3), (96, 3)),
        ]
    )


def _grid17_v4(net: Net, x: Tensor) -> Tensor:
    tower = partial(_tower, net)
    return net.concat(
        [
            tower(net.avg_pool(x, 3, 1), (128, 1)),
            tower(x, (384, 1)),
            tower(x, (192, 1), (224, _ROW), (256, _COLUMN)),
            tower(x, (192, 1), (192, _ROW), (224, _COLUMN), (224, _ROW), (256, _COLUMN)),
        ]
    )


def _grid8_v4(net: Net, x: Tensor) -> Tensor:
    tower = partial(_tower, net)
    narrow = tower(x, (384, 1))
    wide = tower(x, (384, 1), (448, (1, 3)), (512, (3, 1)))
    return net.concat(
        [
            tower(net.avg_pool(x, 3, 1), (256, 1)),
            tower(x, (256, 1)),
            *_forked(net, narrow, 256),
            *_forked(net, wide, 256),
        ]
    )
