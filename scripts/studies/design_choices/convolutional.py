"""Convolutional networks in place of the inspector's fully connected layers (paper, appendix A).

    readout [B, R], joined by the context -> one channel of a line -> AlexNet or VGG16 -> [B, 12]

The paper names the networks and their activations, and no sizes. Here each has the layers of its
original on lines in place of pictures, a quarter of the channels, and fully connected layers as
wide as the inspector's, so that it has no more than some hundred thousand weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from driple.inspector.batch import GroupBatch
from driple.inspector.config import InspectorConfig
from driple.inspector.model import Inspector
from driple.trace.targets import NUM_TARGETS

Network = Literal["AlexNet", "VGG16"]
Activation = Literal["relu", "sigmoid"]

ACTIVATIONS: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}
# Channels and width of kernel of each convolution, by what lies between two poolings.
ALEXNET = (((16, 11),), ((48, 5),), ((96, 3), (64, 3), (64, 3)))
VGG16 = tuple(((channels, 3),) * times for channels, times in
              ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)))  # fmt: skip
FIRST_STRIDE = {"AlexNet": 4, "VGG16": 1}
POOLING = {"AlexNet": 3, "VGG16": 2}


class ConvolutionalInspector(Inspector):
    """An inspector whose head is a convolutional network.

    Args:
        config: structure; `mlp_layers` is not used.
        num_groups: M.
        network: which one.
        activation: after each of its layers but the last.
    """

    def __init__(
        self, config: InspectorConfig, num_groups: int, network: Network, activation: Activation
    ) -> None:
        super().__init__(config, num_groups)
        self.mlp = nn.ModuleList()
        length = config.readout_width + config.num_context
        convolutions = nn.Sequential(*_convolutions(network, ACTIVATIONS[activation]), nn.Flatten())
        with torch.no_grad():
            width = convolutions(torch.zeros(1, 1, length)).shape[1]
        self.cnn = nn.Sequential(
            convolutions,
            nn.Linear(width, config.hidden),
            ACTIVATIONS[activation](),
            nn.Linear(config.hidden, config.hidden),
            ACTIVATIONS[activation](),
            nn.Linear(config.hidden, NUM_TARGETS),
        )
        for layer in self.cnn.modules():
            if isinstance(layer, nn.Conv1d):  # as torchvision begins: deep stacks fade otherwise
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def head(self, read: Tensor, batch: GroupBatch) -> Tensor:
        """Context and convolutional network: [B, readout width] to [B, 12]."""
        out: Tensor = self.cnn(torch.cat([read, batch.context], dim=1).unsqueeze(1))
        return out


def _convolutions(network: Network, activation: type[nn.Module]) -> Iterator[nn.Module]:
    """The layers between the line of one channel and the fully connected ones."""
    channels, stride = 1, FIRST_STRIDE[network]
    for block in ALEXNET if network == "AlexNet" else VGG16:
        for next_channels, kernel in block:
            yield nn.Conv1d(channels, next_channels, kernel, stride=stride, padding=kernel // 2)
            yield activation()
            channels, stride = next_channels, 1
        yield nn.MaxPool1d(POOLING[network], stride=2)
