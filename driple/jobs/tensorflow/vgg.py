"""VGG 11, 16 and 19 (Simonyan and Zisserman, 2015, configurations A, D and E)."""

from __future__ import annotations

from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["vgg"]

_CONVS_PER_STAGE = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_FILTERS = (64, 128, 256, 512, 512)


def vgg(net: Net, images: Any, data: DataSet, *, depth: int) -> Any:
    """Logits of VGG; shape [batch, classes]."""
    x = images
    for num_convs, filters in zip(_CONVS_PER_STAGE[depth], _FILTERS, strict=True):
        for _ in range(num_convs):
            x = net.conv_relu(x, net.channels(filters), 3)
        x = net.max_pool(x, 2, 2, "VALID")
    x = net.flatten(x)
    for _ in range(2):
        x = net.dropout(net.dense(x, net.channels(4096), relu=True), 0.5)
    return net.dense(x, data.num_classes)
