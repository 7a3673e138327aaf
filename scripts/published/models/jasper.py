"""Jasper 10x5 and QuartzNet 15x5 of NVIDIA's DeepLearningExamples: speech to letters, with CTC.

64 filters x frames -> blocks of masked convolutions with dense residuals -> letters
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["JASPER"]

_FILTERS, _LETTERS, _TEXT = 64, 29, 190
# Channels, window and dropout of the blocks; each has five layers.
Kind = tuple[int, int, float]
_JASPER = [(256, 11, 0.2), (384, 13, 0.2), (512, 17, 0.2), (640, 21, 0.3), (768, 25, 0.3)]
_QUARTZNET = [(256, 33, 0.0), (256, 39, 0.0), (512, 51, 0.0), (512, 63, 0.0), (512, 75, 0.0)]


class _Masked(nn.Conv1d):
    """A convolution of sequences whose padding is set to zero first."""

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        if lengths is not None:
            places = torch.arange(x.shape[2], device=x.device)
            mask = places.expand(x.shape[0], x.shape[2]) >= lengths.unsqueeze(1)
            x = x.masked_fill(mask.unsqueeze(1), 0)
        return super().forward(x)


def _layer(
    inner: int, outer: int, window: int, *, separable: bool, stride: int = 1, dilation: int = 1
) -> list[nn.Module]:
    padding = window // 2 * dilation
    norm = nn.BatchNorm1d(outer, eps=1e-3)
    if not separable:
        plain = _Masked(inner, outer, window, stride, padding, dilation, bias=False)
        return [plain, norm]
    deep = _Masked(inner, inner, window, stride, padding, dilation, groups=inner, bias=False)
    return [deep, _Masked(inner, outer, 1, bias=False), norm]


class _Block(nn.Module):
    def __init__(
        self, inner: Sequence[int], kind: Kind, *, repeat: int, separable: bool, stride: int = 1,
        dilation: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        outer, window, dropout = kind
        layers: list[nn.Module] = []
        width = inner[-1]
        for number in range(repeat):
            layers += _layer(
                width, outer, window, separable=separable, stride=stride, dilation=dilation
            )
            if number < repeat - 1:
                layers += [nn.ReLU(), nn.Dropout(dropout)]
            width = outer
        self.conv = nn.ModuleList(layers)
        residuals = inner if repeat > 1 else ()
        self.res = nn.ModuleList(
            nn.ModuleList(_layer(one, outer, 1, separable=False)) for one in residuals
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, known: list[Tensor], lengths: Tensor) -> Tensor:
        x = _through(self.conv, known[-1], lengths)
        for number, residual in enumerate(self.res):
            x = x + _through(residual, known[number], lengths)  # type: ignore[arg-type]
        output: Tensor = self.dropout(nn.functional.relu(x))
        return output


def _through(layers: nn.ModuleList, x: Tensor, lengths: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x, lengths) if isinstance(layer, _Masked) else layer(x)
    return x


class Jasper(nn.Module):
    """Filters [n, 64, frames] to logarithms of letters' chances [n, frames / 2, 29].

    Args:
        blocks: channels, window and dropout of the repeated blocks.
        each: how often a block is repeated.
        separable: whether convolutions are depthwise with a pointwise one behind.
        ends: channels, windows and dropout of the last two blocks.
    """

    def __init__(
        self, blocks: Sequence[Kind], each: int, *, separable: bool, ends: tuple[Kind, Kind]
    ) -> None:
        super().__init__()
        first = (256, *blocks[0][1:])
        self.first = _Block((_FILTERS,), first, repeat=1, separable=separable, stride=2)
        widths, self.layers = [256], nn.ModuleList()
        for kind in (one for one in blocks for _ in range(each)):
            inner = widths[-1:] if separable else widths
            self.layers.append(_Block(list(inner), kind, repeat=5, separable=separable))
            widths.append(kind[0])
        wide, last = ends
        self.wide = _Block(widths[-1:], wide, repeat=1, separable=separable, dilation=2)
        self.last = _Block((wide[0],), last, repeat=1, separable=False)
        self.dense = not separable
        self.letters = nn.Conv1d(last[0], _LETTERS, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Logarithms of the chances of letters."""
        known = [self.first([x], lengths)]
        for block in self.layers:
            x = block(known, lengths)
            known = [*known, x] if self.dense else [x]
        x = self.last([self.wide(known, lengths)], lengths)
        return nn.functional.log_softmax(self.letters(x).transpose(1, 2), dim=2)


def _built(
    batch_size: int, size: int, *, blocks: Sequence[Kind], each: int, separable: bool,
    ends: tuple[Kind, Kind],
) -> Built:  # fmt: skip
    with torch.device("meta"):
        model = Jasper(blocks, each, separable=separable, ends=ends)
        sound = torch.zeros(batch_size, _FILTERS, size)
    lengths, text = meta_tokens(batch_size), meta_tokens(batch_size, _TEXT)

    def loss(chances: Tensor) -> Tensor:
        losses = nn.functional.ctc_loss(
            chances.float().transpose(1, 0), text, lengths, lengths, _LETTERS - 1, "none"
        )
        return losses.mean()

    return Built(model=model, batch=(sound, lengths), loss=loss)


_SOUND = "LibriSpeech in buckets: 12.3 s on the mean, frames of 10 ms; NovoGrad as Adam"
JASPER: Mapping[str, Definition] = {
    "jasper": Definition(
        build=partial(
            _built, blocks=_JASPER, each=2, separable=False, ends=((896, 29, 0.4), (1024, 1, 0.4))
        ),
        size=1230, optimizer="adam", parameters=332_632_349,
        assumed=_SOUND,
    ),
    "quartznet": Definition(
        build=partial(
            _built, blocks=_QUARTZNET, each=3, separable=True, ends=((512, 87, 0.0), (1024, 1, 0.0))
        ),
        size=1230, optimizer="adam", parameters=18_924_381, assumed=_SOUND,
    ),
}  # fmt: skip
