"""Configs of TRL's trainers: `SFTConfig` and its like, with `ModelConfig` and `ScriptArguments`.

Supervised fine-tuning has a model. Trainers with a reference model, pairs of answers or generation
(DPO, GRPO, ...) do not: their fields are decisive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.adapters import ADAPTER, adapter_of, keep_adapters
from driple.jobs.training_config.config import BOTH, TIME
from driple.jobs.training_config.fields import (
    Decisive,
    Format,
    NotModelledError,
    Values,
    words,
)
from driple.jobs.training_config.precision import set_precision
from driple.jobs.training_config.rules import dtype_of_model, is_on, whole_number
from driple.jobs.training_config.trainer import BESIDE, DECISIVE, HARMLESS, READ

__all__ = ["TRL"]


def _peft(value: Any, values: Values) -> Mapping[str, Any]:
    if not is_on(value):
        return {}
    return adapter_of(
        rank=values.get("lora_r", 16),
        alpha=values.get("lora_alpha", 32),
        targets=values.get("lora_target_modules"),
        four_bits=values.get("load_in_4bit") is True,
        eight_bits=values.get("load_in_8bit") is True,
        double=values.get("use_bnb_nested_quant") is True,
        plain=not any(
            values.get(name)
            for name in ("use_dora", "lora_modules_to_save", "lora_target_parameters")
        ),
    )


def _quantised(value: Any, values: Values) -> Mapping[str, Any]:
    """Weights of 4 or 8 bits are for adapters."""
    if not is_on(value) or values.get("use_peft") is True:
        return {}
    raise NotModelledError(BOTH, settled_by="weights")


def _loss(value: Any, _: Values) -> Mapping[str, Any]:
    """The usual loss (`nll`) makes logits of a few tokens at a time."""
    if value in ("nll", "chunked_nll"):
        return {"fused_loss": True}
    raise NotModelledError


def _derived(said: dict[str, Any], values: Values) -> None:
    if "half" not in said and "whole" not in said and "bf16" not in values:
        said["half"] = "bf16"  # TRL's default unless fp16 is on
    # A model is loaded in fp32 unless `dtype` says otherwise; adapters of a quantized model are
    # cast to bf16 (`SFTTrainer.__init__`).
    in_half = said.get("weights") is not None and said.get("half") == "bf16"
    keep_adapters(said, dtype="bf16" if in_half else "fp32", rest=said.get("whole") or "fp32")
    set_precision(said, values)


TRL = Format(
    name="TRL",
    read={
        **READ,
        "max_length": whole_number("seq_len", none=(None,)),
        "max_seq_length": whole_number("seq_len", none=(None,)),
        "dtype": dtype_of_model,
        "torch_dtype": dtype_of_model,
        "loss_type": _loss,
        "use_peft": _peft,
        "load_in_4bit": _quantised,
        "load_in_8bit": _quantised,
    },
    beside=BESIDE
    | ADAPTER
    | words("packing packing_strategy padding_free use_dora use_bnb_nested_quant"),
    harmless=HARMLESS
    | words(
        """
        model_name_or_path model_revision model_code_revision trust_remote_code chat_template*
        dataset_* datasets* streaming test_split_size ignore_bias_buffers lora_dropout
        lora_task_type use_rslora eval_packing shuffle_dataset truncation_mode eos_token pad_token
        pad_to_multiple_of completion_only_loss assistant_only_loss disable_dropout
        bnb_4bit_quant_type preprocessing_num_workers dataset_mixer* dataset_splits dataset_configs
        tokenizer_name_or_path auto_insert_empty_system_msg dataset_mixture* text_column
        use_fast_tokenizer system_prompt padding_side benchmarks callbacks overwrite_hub_revision
        push_to_hub_revision wandb_* max_prompt_length
        """
    ),
    decisive={
        **DECISIVE,
        "attn_implementation": Decisive(
            off=(
                "flash_attention_2",
                "flash_attention_3",
                "sdpa",
                "kernels-community/flash-attn",
                "kernels-community/flash-attn2",
                "kernels-community/flash-attn3",
                "kernels-community/vllm-flash-attn3",
            )
        ),
        "use_flash_attention_2": Decisive(off=(True,)),
        "bnb_4bit_quant_storage": Decisive(off=("uint8", "bfloat16")),
        "activation_offloading": Decisive(),
        "model_init_kwargs*": Decisive(),
        "router_aux_loss_coef": Decisive(off=(0.0, 0.001)),
        # of trainers with a reference model, pairs or generation
        **dict.fromkeys(
            words(
                """
                beta loss_weights ld_alpha f_divergence_type f_alpha_divergence_coef label_smoothing
                use_weighting discopop_tau precompute_ref_log_probs precompute_ref_batch_size
                sync_ref_model ref_model_mixup_alpha ref_model_sync_steps desirable_weight
                undesirable_weight center_rewards_coefficient num_generations num_generations_eval
                max_completion_length ds3_gather_for_generation generation_batch_size
                steps_per_generation temperature top_p top_k min_p generation_kwargs
                generation_kwargs.* repetition_penalty cache_implementation use_vllm vllm_*
                num_iterations delta epsilon epsilon_high sapo_temperature_neg sapo_temperature_pos
                vespo_* importance_sampling_level reward_weights multi_objective_aggregation
                scale_rewards mask_truncated_completions top_entropy_quantile entropy_*
                use_adaptive_entropy max_tool_calling_iterations off_policy_mask_threshold
                use_bias_correction_kl log_completions log_multimodal num_completions_to_print
                log_unique_prompts log_completions_hub_repo use_transformers_*
                transformers_continuous_batching_config* cast_lm_head_to_fp32 normalize_advantages
                reward_clip_range reward_funcs reward_model* rpo_alpha simpo_gamma
                """
            ),
            Decisive(),
        ),
        "generation_num_beams": Decisive(changes=TIME),
    },
    usual={
        "batch_size": 8,
        "seq_len": 1024,
        "optimizer": "adamw-fused",
        "clip_gradients": True,
        "activation_checkpointing": "full",
        "grad_accumulation": 1,
        "fused_loss": True,
    },
    derived=_derived,
)
