"""Transformer-XL of NVIDIA's DeepLearningExamples, for WikiText-103 (Dai et al., 2019).

    words + memory of the last segment -> attention with relative positions -> softmax of all words

Sequence first, norms behind the residual. Lambda's logs state `adaptive=False`, so that each word
has a score for each of the 267,735 words, in place of the paper's adaptive softmax.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["TRANSFORMER_XL"]

_VOCABULARY = 267_735
Pair = tuple[Tensor, Tensor]


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, dropatt: float) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.qkv_net = nn.Linear(width, 3 * width, bias=False)
        self.r_net = nn.Linear(width, width, bias=False)
        self.o_net = nn.Linear(width, width, bias=False)
        self.drop, self.dropatt = nn.Dropout(dropout), nn.Dropout(dropatt)
        self.layer_norm = nn.LayerNorm(width)

    def forward(
        self, x: Tensor, places: Tensor, memory: Tensor, mask: Tensor, biases: Pair
    ) -> Tensor:
        length, batch, width = x.shape
        query, key, value = self.qkv_net(torch.cat([memory, x], 0)).chunk(3, dim=-1)
        query = query[-length:].view(length, batch, self.heads, self.each)
        key, value = (one.view(-1, batch, self.heads, self.each) for one in (key, value))
        relative = self.r_net(places).view(places.shape[0], self.heads, self.each)
        content = torch.einsum("ibnd,jbnd->bnij", query + biases[0], key)
        position = _shifted(torch.einsum("ibnd,jnd->bnij", query + biases[1], relative))
        scores = (content + position) * self.each**-0.5
        scores = scores.masked_fill_(mask[None, None], -float("inf"))
        chances = self.dropatt(nn.functional.softmax(scores, dim=3))
        mixed = torch.einsum("bnij,jbnd->ibnd", chances, value).contiguous()
        output: Tensor = self.layer_norm(
            x + self.drop(self.o_net(mixed.view(length, batch, width)))
        )
        return output


def _shifted(scores: Tensor) -> Tensor:
    """Scores by distance, moved so that they stand by place."""
    batch, heads, length, keys = scores.shape
    padded = torch.cat([scores.new_zeros(batch, heads, length, 1), scores], dim=3)
    return padded.view(batch, heads, keys + 1, length)[:, :, 1:].reshape(scores.shape)


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int, dropout: float, dropatt: float) -> None:
        super().__init__()
        self.dec_attn = _Attention(width, heads, dropout, dropatt)
        self.core = nn.Sequential(
            nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(inner, width), nn.Dropout(dropout),
        )  # fmt: skip
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, *rest: Any) -> Tensor:
        x = self.dec_attn(x, *rest)
        output: Tensor = self.layer_norm(x + self.core(x))
        return output


class TransformerXl(nn.Module):
    """Words [length, n] and memory [layers, length, n, width] to the mean loss of the next words.

    Args:
        layers: how many.
        width: of the model.
        heads: of attention.
        inner: width of the inner layer.
        dropout: share of activations, and of attention, that is dropped.
    """

    inv_freq: Tensor

    def __init__(
        self, layers: int, width: int, heads: int, inner: int, dropout: tuple[float, float]
    ) -> None:
        super().__init__()
        self.width = width
        self.word_emb = nn.Embedding(_VOCABULARY, width)
        self.register_buffer("inv_freq", torch.empty(width // 2))
        self.r_w_bias = nn.Parameter(torch.empty(heads, width // heads))
        self.r_r_bias = nn.Parameter(torch.empty(heads, width // heads))
        self.layers = nn.ModuleList(_Layer(width, heads, inner, *dropout) for _ in range(layers))
        self.drop = nn.Dropout(dropout[0])
        self.bias = nn.Parameter(torch.empty(_VOCABULARY))

    def forward(self, words: Tensor, memory: Tensor, target: Tensor) -> Tensor:
        """The mean loss."""
        length = words.shape[0]
        x = self.word_emb(words).mul_(self.width**0.5)
        keys = length + memory.shape[1]
        mask = torch.triu(x.new_ones(length, keys), diagonal=1 + memory.shape[1]).bool()
        places = torch.arange(keys - 1, -1, -1.0, device=x.device, dtype=x.dtype)
        angles = torch.outer(places, self.inv_freq)
        relative = self.drop(torch.cat([angles.sin(), angles.cos()], dim=-1)[:, None, :])
        x, kept = self.drop(x), []
        for number, layer in enumerate(self.layers):
            kept.append(x.detach())
            x = layer(x, relative, memory[number], mask, (self.r_w_bias, self.r_r_bias))
        with torch.no_grad():
            torch.stack(kept)  # the next segment's memory
        hidden = self.drop(x).flatten(0, 1)
        chances = nn.functional.log_softmax(
            nn.functional.linear(hidden, self.word_emb.weight, self.bias), dim=-1
        )
        losses = -chances.gather(1, target.flatten()[:, None]).squeeze(1)
        return losses.float().mean()


def _built(sizes: tuple[int, int, int, int], dropout: tuple[float, float], batch_size: int,
           size: int) -> Built:  # fmt: skip
    layers, width, _, _ = sizes
    with torch.device("meta"):
        model = TransformerXl(*sizes, dropout)
        memory = torch.zeros(layers, size, batch_size, width)
    words = meta_tokens(size, batch_size)
    return Built(model=model, batch=(words, memory, words), loss=None)


def _definition(
    sizes: tuple[int, int, int, int],
    dropout: tuple[float, float],
    size: int,
    parameters: int | None,
) -> Definition:
    return Definition(
        build=partial(_built, sizes, dropout),
        size=size,
        optimizer="adam",
        half="fp16",
        clip_gradients=True,
        parameters=parameters,
        units=size,
        assumed="LAMB (fused by TorchScript) as Adam",
    )


TRANSFORMER_XL: Mapping[str, Definition] = {
    "transformerxl-base": _definition((16, 512, 8, 2048), (0.1, 0.0), 192, 191_948_759),
    "transformerxl-large": _definition((18, 1024, 16, 4096), (0.2, 0.2), 256, 519_963_095),
}
