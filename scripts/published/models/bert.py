"""BERT (Devlin et al., 2019) of transformers, with the attention that each source ran.

    answers (SQuAD), or masked words and the next sentence (pre-training)

DeepLearningExamples, LiBai, Megatron and FlagPerf take attention apart into products and a
softmax; MLPerf's BERT runs it in one kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["BERT"]

_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072}  # fmt: skip
_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
          "intermediate_size": 4096}  # fmt: skip
_VOCABULARY = 30_528  # DeepLearningExamples fills it up to a multiple of 8
_MASKED = 0.15625  # 20 words of 128, 80 of 512


class MaskedWords(nn.Module):
    """BERT with both heads of its pre-training; logits of masked words alone.

    Args:
        values: of transformers' config.
        attention: implementation of attention, as transformers names it.
        dense: whether logits are made of all words, as Megatron and LiBai do.
    """

    def __init__(self, values: Mapping[str, Any], attention: str, *, dense: bool) -> None:
        super().__init__()
        from transformers import BertConfig, BertForPreTraining

        config = BertConfig(**values)
        config._attn_implementation = attention
        self.bert = BertForPreTraining(config)
        self.dense = dense

    def forward(self, tokens: Tensor, places: Tensor, words: Tensor, next_one: Tensor) -> Tensor:
        """The loss; `places` [masked words] count over the whole batch."""
        mask = torch.ones_like(tokens)
        outputs = self.bert.bert(
            tokens, attention_mask=mask, token_type_ids=torch.zeros_like(tokens)
        )
        hidden = outputs[0].flatten(0, 1)
        hidden = hidden if self.dense else hidden.index_select(0, places)
        scores, relation = self.bert.cls(hidden, outputs[1])
        entropy = nn.functional.cross_entropy
        return entropy(scores.float(), words) + entropy(relation.float(), next_one)


def _pretraining(
    values: Mapping[str, Any], attention: str, dense: bool, batch_size: int, size: int
) -> Built:
    with torch.device("meta"):
        model = MaskedWords(
            {**values, "max_position_embeddings": max(512, size)}, attention, dense=dense
        )
    masked = batch_size * (size if dense else round(size * _MASKED))
    batch = (
        meta_tokens(batch_size, size), meta_tokens(masked), meta_tokens(masked),
        meta_tokens(batch_size),
    )  # fmt: skip
    return Built(model=model.train(), batch=batch, loss=None)


def _answers(values: Mapping[str, Any], attention: str, batch_size: int, size: int) -> Built:
    from transformers import BertConfig, BertForQuestionAnswering

    config = BertConfig(**values)
    config._attn_implementation = attention
    with torch.device("meta"):
        model = BertForQuestionAnswering(config)
    tokens, place = meta_tokens(batch_size, size), meta_tokens(batch_size)
    batch = {
        "input_ids": tokens, "attention_mask": tokens, "token_type_ids": tokens,
        "start_positions": place, "end_positions": place,
    }  # fmt: skip
    return Built(model=model.train(), batch=batch, loss=None)


def _squad(values: Mapping[str, Any], parameters: int) -> Definition:
    return Definition(
        build=partial(_answers, {**values, "vocab_size": _VOCABULARY}, "eager"),
        size=384,
        optimizer="adam-fused",
        half="fp16",
        clip_gradients=True,
        parameters=parameters,
        assumed="apex O2: weights in half precision; its optimizer keeps a copy in single, which "
        "the update here does not read",
    )


_NEUSIGHT = Definition(
    build=partial(_pretraining, {**_LARGE, "vocab_size": 30_522}, "eager", True),
    size=512,
    optimizer="adamw",
    half="fp32",
    parameters=336_226_108,
    assumed="both heads, logits of all words, as NeuSight's list of ops says",
)


def _pretrained(values: Mapping[str, Any], size: int, **more: Any) -> Definition:
    attention, dense = more.pop("attention", "eager"), more.pop("dense", False)
    vocabulary = more.pop("vocabulary", _VOCABULARY)
    return Definition(
        build=partial(_pretraining, {**values, "vocab_size": vocabulary}, attention, dense),
        size=size,
        optimizer="adamw-fused",
        clip_gradients=True,
        assumed="LAMB as AdamW with clipping; 20 of 128 words are masked",
        **more,
    )


BERT: Mapping[str, Definition] = {
    "neusight-bert-large": _NEUSIGHT,
    "bert-base-squad": _squad(_BASE, 108_893_186 + 6 * 768),
    "bert-large-squad": _squad(_LARGE, 334_094_338 + 6 * 1024),
    "bert-base-pretrain": _pretrained(_BASE, 128, half="amp-fp16"),
    "bert-large-pretrain": _pretrained(_LARGE, 128, half="amp-fp16"),
    "bert-large-mlperf": _pretrained(_LARGE, 232, half="fp16", attention="sdpa", compiled=True),
    "libai-bert": _pretrained(_LARGE, 512, half="fp16", dense=True, compiled=True,
                              vocabulary=30_592),
}  # fmt: skip
