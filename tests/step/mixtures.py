"""Small models of transformers whose steps are counted by hand."""

from __future__ import annotations

from functools import cache

import pytest

from driple.graph.opgraph import OpGraph

LAYERS, WIDTH, HEADS, WORDS = 2, 64, 4, 128
EXPERTS, CHOSEN, INNER = 8, 2, 32
SAMPLES, TOKENS = 2, 16
TYPE_BYTES = 2  # bf16


@cache
def mixture(passes: int = 1, checkpointing: str = "none") -> OpGraph:
    """Qwen3 of 2 layers, each with 8 experts of which a token takes 2, in bfloat16."""
    return _step(
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        passes,
        checkpointing,
        num_experts=EXPERTS,
        num_experts_per_tok=CHOSEN,
        moe_intermediate_size=INNER,
        decoder_sparse_step=1,
    )


@cache
def shared_mixture() -> OpGraph:
    """DeepSeek-V3 of 2 layers, the second with 8 experts and one that all tokens share."""
    return _step(
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        1,
        "none",
        n_routed_experts=EXPERTS,
        num_experts_per_tok=CHOSEN,
        moe_intermediate_size=INNER,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=1,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=16,
    )


LATENT, ROTARY, PLAIN, VALUES = 16, 8, 8, 16
"""Ranks of queries and of keys and values; columns of a head with and without rotation."""


@cache
def latent() -> OpGraph:
    """DeepSeek-V3 of 2 layers without experts: latent attention alone."""
    return _step(
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        1,
        "none",
        first_k_dense_replace=LAYERS,
        q_lora_rank=LATENT,
        kv_lora_rank=LATENT,
        qk_rope_head_dim=ROTARY,
        qk_nope_head_dim=PLAIN,
        v_head_dim=VALUES,
    )


@cache
def dense(passes: int = 1) -> OpGraph:
    """Qwen3 of 2 layers without experts."""
    return _step("Qwen3Config", "Qwen3ForCausalLM", passes, "none")


def _step(config: str, head: str, passes: int, checkpointing: str, **more: int) -> OpGraph:
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    sizes = {
        "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": WORDS,
    }  # fmt: skip
    if "Deepseek" not in config:
        sizes["head_dim"] = WIDTH // HEADS
    known = getattr(transformers, config)(
        **sizes, **more, bos_token_id=0, eos_token_id=0, pad_token_id=0, use_cache=False,
        tie_word_embeddings=False,
    )  # fmt: skip
    known._attn_implementation = "sdpa"
    tokens = torch.zeros(SAMPLES, TOKENS, dtype=torch.int64)
    return job_of_module(
        getattr(transformers, head)(known),
        {"input_ids": tokens, "labels": tokens},
        precision="bf16",
        optimizer="adamw",
        grad_accumulation=passes,
        activation_checkpointing=checkpointing,
    ).graph
