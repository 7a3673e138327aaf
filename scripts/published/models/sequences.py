"""Encoder-decoders: the big Transformer for translation, and BART, of DeepLearningExamples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["SEQUENCES"]

_PIECES = 33_712


class TransformerBig(nn.Module):
    """The big Transformer (Vaswani et al., 2017): source and target [n, length] to logits.

    Norms stand before the layers, attention is taken apart, embeddings are shared, as in fairseq.
    """

    def __init__(self, width: int = 1024, heads: int = 16, inner: int = 4096) -> None:
        super().__init__()
        from transformers import BartConfig, BartModel

        config = BartConfig(
            vocab_size=_PIECES, d_model=width, encoder_layers=6, decoder_layers=6,
            encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=inner,
            decoder_ffn_dim=inner, activation_function="relu", dropout=0.1, attention_dropout=0.1,
            activation_dropout=0.0, scale_embedding=True, use_cache=False,
        )  # fmt: skip
        config._attn_implementation = "eager"
        self.model = BartModel(config)
        self.width = width

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of the next pieces."""
        hidden = self.model(input_ids=source, decoder_input_ids=target)[0]
        return nn.functional.linear(hidden, self.model.shared.weight)


def _translation(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = TransformerBig()
    pieces = meta_tokens(batch_size, size)

    def loss(logits: Tensor) -> Tensor:
        chances = nn.functional.log_softmax(logits.float().flatten(0, 1), dim=-1)
        right = -chances.gather(1, pieces.flatten().unsqueeze(1)).sum()
        return 0.9 * right - 0.1 * chances.mean(dim=-1).sum()

    return Built(model=model.train(), batch=(pieces, pieces), loss=loss)


def _bart(target: int, batch_size: int, size: int) -> Built:
    from transformers import BartConfig, BartForConditionalGeneration

    config: Any = BartConfig(vocab_size=50_265, max_position_embeddings=1024, use_cache=False)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        model = BartForConditionalGeneration(config)
    wanted = meta_tokens(batch_size, target or size)
    batch = {
        "input_ids": meta_tokens(batch_size, size), "decoder_input_ids": wanted, "labels": wanted
    }  # fmt: skip
    return Built(model=model.train(), batch=batch, loss=None)


def _definition(target: int, size: int) -> Definition:
    return Definition(
        build=partial(_bart, target),
        size=size,
        optimizer="adamw-fused",
        half="amp-bf16",
        clip_gradients=True,
        parameters=406_291_456,
        assumed=f"{size} tokens read, {target or size} written; attention taken apart",
    )


SEQUENCES: Mapping[str, Definition] = {
    "transformer-big": Definition(
        build=_translation,
        size=32,
        optimizer="adam-fused",
        half="amp-fp16",
        units=32,
        assumed="a batch of tokens is sentences of 32 pieces on each side; norms behind the layers",
    ),
    "bart-large-cnn": _definition(142, 1024),
    "bart-large-xsum": _definition(60, 1024),
    "bart-large-pretrain": _definition(0, 128),
}
