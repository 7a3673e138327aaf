# ruff: noqa: E402  # imports of a clone
"""WaveNet of presets/ljspeech_mixture.json of 2018-03-21; beside ./wavenet and ./deepvoice3."""

import json
import sys
from pathlib import Path

sys.path[:0] = ["wavenet", "deepvoice3"]

import torch
from wavenet_vocoder import WaveNet
from wavenet_vocoder.mixture import discretized_mix_logistic_loss

PRESET = json.loads(Path("wavenet/presets/ljspeech_mixture.json").read_text())
STEPS = PRESET["max_time_steps"] // PRESET["hop_size"] * PRESET["hop_size"]


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        names = (
            "out_channels",
            "layers",
            "stacks",
            "residual_channels",
            "gate_channels",
            "skip_out_channels",
            "kernel_size",
            "dropout",
            "cin_channels",
            "gin_channels",
            "weight_normalization",
            "upsample_conditional_features",
            "upsample_scales",
            "freq_axis_kernel_size",
        )
        self.net = WaveNet(scalar_input=True, **{name: PRESET[name] for name in names})

    def forward(self, audio, mels):
        """Loss of a batch."""
        outputs = self.net(audio, mels)
        losses = discretized_mix_logistic_loss(
            outputs[:, :, :-1],
            audio[:, 0, 1:].unsqueeze(-1),
            num_classes=65536,
            log_scale_min=PRESET["log_scale_min"],
            reduce=False,
        )
        return losses.mean()


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    audio = torch.zeros(PRESET["batch_size"], 1, STEPS)
    mels = torch.zeros(PRESET["batch_size"], PRESET["cin_channels"], STEPS // PRESET["hop_size"])
    return WithLoss(), {"audio": audio, "mels": mels}
