"""WaveGlow of NVIDIA's DeepLearningExamples (Prenger et al., 2018), with weight norm.

audio in groups of 8 samples -> 12 flows: an invertible 1x1 convolution, a WaveNet of 8 layers
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition

__all__ = ["WAVEGLOW"]

_MELS, _FLOWS, _GROUP, _EARLY_EVERY, _EARLY = 80, 12, 8, 4, 2
_LAYERS, _WIDTH = 8, 512
_HOP = 256


def _weighted(inner: int, outer: int, width: int = 1, dilation: int = 1) -> nn.Module:
    padding = (width * dilation - dilation) // 2
    layer = nn.Conv1d(inner, outer, width, dilation=dilation, padding=padding)
    weighted: nn.Module = nn.utils.parametrizations.weight_norm(layer)
    return weighted


class _WaveNet(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.start = _weighted(channels, _WIDTH)
        self.end = nn.Conv1d(_WIDTH, 2 * channels, 1)
        layers = range(_LAYERS)
        self.inner = nn.ModuleList(_weighted(_WIDTH, 2 * _WIDTH, 3, 2**one) for one in layers)
        self.cond = nn.ModuleList(_weighted(_MELS * _GROUP, 2 * _WIDTH) for _ in layers)
        self.skip = nn.ModuleList(
            _weighted(_WIDTH, _WIDTH * (2 if one < _LAYERS - 1 else 1)) for one in layers
        )

    def forward(self, audio: Tensor, mels: Tensor) -> Tensor:
        x, skipped = self.start(audio), None
        for number, (inner, cond, skip) in enumerate(
            zip(self.inner, self.cond, self.skip, strict=True)
        ):
            both = inner(x) + cond(mels)
            both = skip(torch.tanh(both[:, :_WIDTH]) * torch.sigmoid(both[:, _WIDTH:]))
            if number < _LAYERS - 1:
                x, both = both[:, :_WIDTH] + x, both[:, _WIDTH:]
            skipped = both if skipped is None else skipped + both
        last: Tensor = self.end(skipped)
        return last


class WaveGlow(nn.Module):
    """Frames [n, 80, length] and audio [n, samples] to noise, and the sums of its determinants."""

    def __init__(self) -> None:
        super().__init__()
        self.upsample = nn.ConvTranspose1d(_MELS, _MELS, 1024, stride=_HOP)
        self.mixed, self.nets = nn.ModuleList(), nn.ModuleList()
        channels = _GROUP
        for number in range(_FLOWS):
            if number % _EARLY_EVERY == 0 and number:
                channels -= _EARLY
            self.mixed.append(nn.Conv1d(channels, channels, 1, bias=False))
            self.nets.append(_WaveNet(channels // 2))

    def forward(self, mels: Tensor, audio: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Noise, logarithms of the scales, and of the determinants."""
        samples = audio.shape[0]
        mels = self.upsample(mels)[:, :, : audio.shape[1]]
        mels = mels.unfold(2, _GROUP, _GROUP).permute(0, 2, 1, 3).contiguous()
        mels = mels.view(samples, mels.shape[1], -1).permute(0, 2, 1)
        x = audio.unfold(1, _GROUP, _GROUP).permute(0, 2, 1)
        early, scales, determinants = [], [], []
        for number, (mixed, net) in enumerate(zip(self.mixed, self.nets, strict=True)):
            if number % _EARLY_EVERY == 0 and number:
                early.append(x[:, :_EARLY])
                x = x[:, _EARLY:]
            weight: Any = mixed.weight
            determinants.append(
                samples * x.shape[2] * torch.logdet(weight.squeeze().unsqueeze(0).float())[0]
            )
            x = mixed(x)
            half = x.shape[1] // 2
            scaled = net(x[:, :half], mels)
            scales.append(scaled[:, half:])
            x = torch.cat([x[:, :half], torch.exp(scales[-1]) * x[:, half:] + scaled[:, :half]], 1)
        return torch.cat([*early, x], 1), scales, determinants


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = WaveGlow()
        mels = torch.zeros(batch_size, _MELS, size // _HOP + 1)
        audio = torch.zeros(batch_size, size)

    def loss(outputs: tuple[Tensor, list[Tensor], list[Tensor]]) -> Tensor:
        noise, scales, determinants = outputs
        total = torch.sum(scales[0])
        for part in scales[1:]:
            total = total + torch.sum(part)
        whole = determinants[0]
        for part in determinants[1:]:
            whole = whole + part
        return (torch.sum(noise * noise) / 2 - total - whole) / noise.numel()

    return Built(model=model, batch=(mels, audio), loss=loss)


WAVEGLOW: Mapping[str, Definition] = {
    "waveglow": Definition(
        build=_built,
        size=8000,
        optimizer="adam",
        half="amp-fp16",
        clip_gradients=True,
        parameters=None,
        units=8000,
        assumed="segments of 8,000 samples, as lambda's and the README's scripts say",
    )
}
