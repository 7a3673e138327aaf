"""Decoders of transformers, from configs with the published sizes; no weights.

    sizes -> config -> AutoModelForCausalLM, attention by scaled_dot_product_attention

Jobs of a fine-tuning with adapters have a suffix, such as `llama2-7b+lora` (`lora.ADAPTERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any

import torch
from torch import nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["DECODERS", "decoder"]

_LLAMA_KEYS = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "vocab_size",
)  # fmt: skip


def _llama(*sizes: int, kind: str = "llama", **more: Any) -> dict[str, Any]:
    values = dict(zip(_LLAMA_KEYS, sizes, strict=True))
    return {"model_type": kind, "tie_word_embeddings": False, **values, **more}


def _gpt2(width: int, layers: int, heads: int, vocabulary: int, places: int, **more: Any) -> Any:
    return {
        "model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads,
        "vocab_size": vocabulary, "n_positions": places, **more,
    }  # fmt: skip


_NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
_ONE_GELU = {"hidden_act": "gelu_pytorch_tanh"}  # one kernel, as litgpt calls it
_CONFIGS: Mapping[str, tuple[dict[str, Any], int, int | None]] = {
    # name: config, usual tokens of a sample, parameters as published
    "llama2-7b": (_llama(4096, 11008, 32, 32, 32, 32000), 4096, 6_738_415_616),
    "llama2-13b": (_llama(5120, 13824, 40, 40, 40, 32000), 4096, 13_015_864_320),
    "llama2-34b": (_llama(8192, 22016, 48, 64, 8, 32000), 4096, 33_743_970_304),
    "llama2-70b": (_llama(8192, 28672, 80, 64, 8, 32000), 4096, 68_976_648_192),
    "llama3-8b": (_llama(4096, 14336, 32, 32, 8, 128256), 8192, 8_030_261_248),
    "llama3-70b": (_llama(8192, 28672, 80, 64, 8, 128256), 8192, 70_553_706_496),
    "llama3.1-8b": (_llama(4096, 14336, 32, 32, 8, 128256), 8192, 8_030_261_248),
    "llama3.1-70b": (_llama(8192, 28672, 80, 64, 8, 128256), 8192, 70_553_706_496),
    "llama3.1-405b": (_llama(16384, 53248, 126, 128, 8, 128256), 8192, 405_853_388_800),
    "llama3-70b-l12": (_llama(8192, 28672, 12, 64, 8, 128256), 4096, None),
    "llama3-405b-l4": (_llama(16384, 53248, 4, 128, 8, 128256), 4096, None),
    "mistral-7b": (_llama(4096, 14336, 32, 32, 8, 32000), 4096, 7_241_732_096),
    "mixtral-8x7b": (
        _llama(4096, 14336, 32, 32, 8, 32000, kind="mixtral", num_local_experts=8),
        4096, 46_702_792_704,
    ),
    "mixtral-8x22b": (
        _llama(6144, 16384, 56, 48, 8, 32768, kind="mixtral", num_local_experts=8),
        8192, 140_630_071_296,
    ),
    "grok1": (
        _llama(6144, 32768, 64, 48, 8, 131072, kind="mixtral", num_local_experts=8), 8192, None,
    ),
    "internlm-7b": (
        _llama(4096, 11008, 32, 32, 32, 103168, attention_bias=True), 2048, None
    ),
    "qwen-1.8b": (_llama(2048, 5504, 24, 16, 16, 151936, kind="qwen2"), 2048, 1_836_828_672),
    "qwen-7b": (_llama(4096, 11008, 32, 32, 32, 151936, kind="qwen2"), 2048, 7_721_324_544),
    "qwen-14b": (_llama(5120, 13696, 40, 40, 40, 152064, kind="qwen2"), 2048, 14_167_290_880),
    "qwen-72b": (_llama(8192, 24576, 80, 64, 64, 152064, kind="qwen2"), 2048, 72_287_920_128),
    "qwen2.5-7b": (_llama(3584, 18944, 28, 28, 4, 152064, kind="qwen2"), 4096, 7_615_616_512),
    "qwen2.5-32b": (_llama(5120, 27648, 64, 40, 8, 152064, kind="qwen2"), 4096, 32_763_876_352),
    "yi-6b": (_llama(4096, 11008, 32, 32, 4, 64000), 2048, 6_061_035_520),
    "yi-34b": (_llama(7168, 20480, 60, 56, 8, 64000), 2048, 34_388_917_248),
    "chatglm3-6b": (_llama(4096, 13696, 28, 32, 2, 65024, kind="qwen2"), 2048, 6_243_584_000),
    "baichuan2-7b": (_llama(4096, 11008, 32, 32, 32, 125696), 2048, 7_505_973_248),
    "baichuan2-13b": (_llama(5120, 13696, 40, 40, 40, 125696), 2048, 13_896_668_160),
    "aquila2-7b": (_llama(4096, 11008, 32, 32, 32, 100008), 2048, None),
    "tinyllama": (_llama(2048, 5632, 22, 32, 4, 32000), 2048, 1_100_048_384),
    "zephyr-7b": (_llama(4096, 14336, 32, 32, 8, 32000), 2048, 7_241_732_096),
    "santacoder": (
        {
            "model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16,
            "n_inner": 8192, "vocab_size": 49280, "n_positions": 2048, "multi_query": True,
        },
        2048, None,
    ),
    "granite-3.0-3b-a800m": (
        _llama(1536, 512, 32, 24, 8, 49155, kind="granitemoe", num_local_experts=40,
               num_experts_per_tok=8, tie_word_embeddings=True),
        2048, None,
    ),
    "moe-7b-1b-shared": (
        _llama(1536, 512, 40, 24, 8, 49160, kind="granitemoeshared", num_local_experts=62,
               num_experts_per_tok=6, shared_intermediate_size=1024, tie_word_embeddings=True),
        2048, None,
    ),
    "qwen3-30b-a3b": (
        _llama(2048, 6144, 48, 32, 4, 151936, kind="qwen3_moe", head_dim=128, num_experts=128,
               num_experts_per_tok=8, moe_intermediate_size=768),
        4096, 30_532_122_624,
    ),
    "qwen3-235b-a22b": (
        _llama(4096, 12288, 94, 64, 4, 151936, kind="qwen3_moe", head_dim=128, num_experts=128,
               num_experts_per_tok=8, moe_intermediate_size=1536),
        4096, 235_093_634_560,
    ),
    "gpt-oss-20b": (
        {"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32,
         "num_experts_per_tok": 4, "layer_types": ["full_attention"] * 24}, 4096,
        20_914_757_184,
    ),
    "gpt-oss-120b": (
        {"model_type": "gpt_oss", "num_hidden_layers": 36, "num_local_experts": 128,
         "num_experts_per_tok": 4, "layer_types": ["full_attention"] * 36}, 4096,
        116_829_156_672,
    ),
    "deepseek-v3": ({"model_type": "deepseek_v3"}, 4096, 671_026_404_352),
    "deepseek-v3-l4": (
        {"model_type": "deepseek_v3", "num_hidden_layers": 4, "first_k_dense_replace": 1},
        4096, None,
    ),
    "stablelm-3b": (
        {
            "model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 16,
            "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 50688,
            "max_position_embeddings": 4096, "rotary_pct": 0.25,
        },
        2048, None,
    ),
    "phi-1.5": (
        _llama(2048, 8192, 24, 32, 32, 51200, kind="phi", partial_rotary_factor=0.5, **_ONE_GELU),
        2048, 1_418_270_720,
    ),
    "phi-2": (
        _llama(2560, 10240, 32, 32, 32, 51200, kind="phi", partial_rotary_factor=0.4, **_ONE_GELU),
        2048, 2_779_683_840,
    ),
    "nemotron-8b": (_llama(4096, 16384, 32, 32, 32, 256000, kind="nemotron"), 4096, None),
    "nemotron-15b": (_llama(6144, 24576, 32, 48, 8, 256000, kind="nemotron"), 4096, None),
    "nemotron-22b": (_llama(6144, 24576, 40, 48, 48, 256000, kind="nemotron"), 4096, None),
    "nemotron-340b": (_llama(18432, 73728, 96, 96, 8, 256000, kind="nemotron"), 4096, None),
    "gpt3-5b": (_gpt2(4096, 24, 32, 51200, 2048, **_NO_DROPOUT), 2048, None),
    "gpt3-20b": (_gpt2(6144, 44, 48, 51200, 2048, **_NO_DROPOUT), 2048, None),
    "gpt3-175b": (_gpt2(12288, 96, 96, 51200, 2048, **_NO_DROPOUT), 2048, None),
    "gpt2-xl": (_gpt2(1600, 48, 25, 50257, 1024), 1024, 1_557_611_200),
    "libai-gpt2": (_gpt2(1024, 24, 16, 50304, 1024), 1024, 354_871_296),
    "cpm-2.6b": (_gpt2(2560, 32, 32, 30000, 1024), 1024, None),
    # NeuSight's labels: eager attention, as its lists of ops say.
    "neusight-gpt2-large": (_gpt2(1280, 36, 20, 50257, 1024), 1024, 774_030_080),
    "neusight-gpt3-xl": (_gpt2(3072, 24, 24, 50257, 2048), 2048, None),
    "neusight-gpt3-27b": (_gpt2(2560, 32, 32, 50257, 2048), 2048, None),
    "neusight-opt-13b": (
        {
            "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
            "num_attention_heads": 32, "vocab_size": 50272, "word_embed_proj_dim": 2048,
        },
        2048, 1_315_758_080,
    ),
}  # fmt: skip
# transformers refuses this attention for its learned sinks, which a kernel reads along.
_WITHOUT_SDPA = frozenset({"gpt_oss"})
_FUSED = {"mixtral-8x22b", "grok1", "gpt3-5b", "gpt3-20b", "gpt3-175b",
          "nemotron-8b", "nemotron-15b", "nemotron-22b", "nemotron-340b",
          "llama3-70b-l12", "llama3-405b-l4", "libai-gpt2", "deepseek-v3-l4"}  # fmt: skip


def decoder(config: Mapping[str, Any], attention: str = "sdpa") -> nn.Module:
    """A causal language model of transformers on the meta device.

    Args:
        config: values of its config, with `model_type`.
        attention: implementation of attention, as transformers names it.
    """
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    values = {key: value for key, value in config.items() if key != "model_type"}
    known = CONFIG_MAPPING[config["model_type"]](**values)
    known.use_cache = False
    with torch.device("meta"):
        make: Any = AutoModelForCausalLM.from_config
        plain = known.model_type in _WITHOUT_SDPA
        model: nn.Module = make(known, attn_implementation="eager" if plain else attention)
    if plain:
        model.config._attn_implementation = attention  # type: ignore[union-attr]
    return model.train()


def _even_size(config: Mapping[str, Any], size: int) -> int:
    """Tokens of a sample, rounded up so that each expert of a mixture gets as many of them."""
    experts = config.get("num_local_experts", config.get("num_experts", 1))
    each = config.get("num_experts_per_tok", 2)
    unit = experts // gcd(experts, each)
    return int(-(-size // unit) * unit)


def _built(config: Mapping[str, Any], attention: str, batch_size: int, size: int) -> Built:
    size = _even_size(config, size)
    longest = max((config.get("n_positions", 0), config.get("max_position_embeddings", 0), size))
    places = "n_positions" if config["model_type"] in {"gpt2", "gpt_bigcode"} else (
        "max_position_embeddings"
    )  # fmt: skip
    model = decoder({**config, places: longest}, attention)
    tokens = meta_tokens(batch_size, size)
    return Built(model=model, batch={"input_ids": tokens, "labels": tokens}, loss=None)


def _definition(name: str) -> Definition:
    config, size, parameters = _CONFIGS[name]
    eager = name.startswith("neusight")
    return Definition(
        build=partial(_built, config, "eager" if eager else "sdpa"),
        size=size,
        optimizer="adamw" if eager else "adamw-fused",
        half="bf16",
        compiled=name in _FUSED,
        clip_gradients=not eager,
        parameters=parameters,
        units=size,
        assumed="Megatron and Transformer Engine fuse norms, activations and additions: priced as "
        "compiled" if name in _FUSED else "whole sequences, experts share tokens evenly",
    )  # fmt: skip


DECODERS: Mapping[str, Definition] = {name: _definition(name) for name in _CONFIGS}


def adapted(definition: Definition, kind: str) -> Definition:
    """The definition with adapters of low rank on a frozen model (`lora.ADAPTERS`)."""
    from scripts.published.models.lora import with_adapters

    def build(batch_size: int, size: int) -> Built:
        built = definition.build(batch_size, size)
        return replace(built, model=with_adapters(built.model, kind))

    return replace(definition, build=build, parameters=None)
