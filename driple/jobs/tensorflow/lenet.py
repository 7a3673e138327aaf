"""LeNet-5 in the form of tf_cnn_benchmarks (LeCun et al., 1998)."""

from __future__ import annotations

from typing import Any

from driple.jobs.tensorflow.nn import Net
from driple.jobs.workload import DataSet

__all__ = ["lenet"]


def lenet(net: Net, images: Any, data: DataSet) -> Any:
    """Logits of LeNet; shape [batch, classes]."""
    c = net.channels
    x = net.max_pool(net.conv_relu(images, c(32), 5), 2, 2, "VALID")
    x = net.max_pool(net.conv_relu(x, c(64), 5), 2, 2, "VALID")
    x = net.dense(net.flatten(x), c(512), relu=True)
    return net.dense(x, data.num_classes)
