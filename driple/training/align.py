"""First step of a transfer: linear alignment of every target to the new setting (ours).

    outputs of the pre-trained inspector, labels of the new setting, both scaled, [n, 12]
        -> a line for each target -> folded into the last fully connected layer

Settings differ mostly by factors. On a logarithmic scale a factor is an offset, which a few labels
determine well in closed form and gradient descent finds slowly. A ridge pulls each line towards the
identity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from driple.inspector.scaling import TargetScaler

__all__ = ["align_layer", "aligned_lines"]

FloatArray = npt.NDArray[np.float64]

# Strength of the ridge in labels: slopes differ little between settings, offsets more.
SLOPE_LABELS = 20.0
OFFSET_LABELS = 1.0


def aligned_lines(
    outputs: FloatArray, labels: FloatArray, old: TargetScaler, new: TargetScaler
) -> tuple[FloatArray, FloatArray]:
    """Slope and offset of each target, shape [12] each.

    Args:
        outputs: shape [n, 12], outputs of the inspector, on the scale of `old`.
        labels: shape [n, 12], on the scale of `new`.
        old: target scaler of the pre-trained inspector, of kind `log`.
        new: target scaler of the new setting, of kind `log`.
    """
    slopes, offsets = old.scale / new.scale, (old.offset - new.offset) / new.scale
    ridge = np.diag([SLOPE_LABELS, OFFSET_LABELS])
    lines = np.empty((len(slopes), 2))
    for i, unchanged in enumerate(np.stack([slopes, offsets], axis=1)):
        design = np.stack([outputs[:, i], np.ones(len(outputs))], axis=1)
        lines[i] = np.linalg.solve(
            design.T @ design + ridge, design.T @ labels[:, i] + ridge @ unchanged
        )
    return lines[:, 0], lines[:, 1]


def align_layer(layer: nn.Linear, slopes: FloatArray, offsets: FloatArray) -> None:
    """Change a linear layer to give slope * output + offset for each target."""
    with torch.no_grad():
        slope = torch.from_numpy(slopes).to(layer.weight.dtype)
        layer.weight.mul_(slope[:, None])
        layer.bias.mul_(slope).add_(torch.from_numpy(offsets).to(layer.bias.dtype))
