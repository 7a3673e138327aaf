"""Configs of LLaMA-Factory: its own arguments beside those of transformers' Trainer.

Adapters are its default (`finetuning_type: lora`), and so is activation checkpointing. Parameters
that are trained are kept in fp32 unless `pure_bf16` is on (`model/adapter.py`, init_adapter).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.adapters import adapter_of, keep_adapters
from driple.jobs.training_config.config import BOTH
from driple.jobs.training_config.fields import (
    Decisive,
    Format,
    NotModelledError,
    RefusedError,
    Values,
    words,
)
from driple.jobs.training_config.precision import set_precision
from driple.jobs.training_config.rules import ignored, is_on, liger, whole_number
from driple.jobs.training_config.trainer import BESIDE, DECISIVE, HARMLESS, READ

__all__ = ["LLAMA_FACTORY"]


def _finetuning(value: Any, values: Values) -> Mapping[str, Any]:
    if str(value) == "full":
        return {}
    if str(value) != "lora":
        raise NotModelledError(BOTH)
    rank = values.get("lora_rank", 8)
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise RefusedError("used with a lora_rank that is a whole number")
    bits = values.get("quantization_bit")
    plain = not any(
        values.get(name)
        for name in ("use_dora", "additional_target", "pissa_init", "quantization_method_other")
    )
    if bits not in (None, 4, 8):
        raise NotModelledError(BOTH, settled_by="weights")
    return adapter_of(
        rank=rank,
        alpha=values.get("lora_alpha") or 2 * rank,
        targets=values.get("lora_target", "all"),
        four_bits=bits == 4,
        eight_bits=bits == 8,
        double=values.get("double_quantization") is not False,
        plain=plain,
    )


def _stage(value: Any, _: Values) -> Mapping[str, Any]:
    if str(value) in ("sft", "pt"):
        return {}
    raise NotModelledError(BOTH)


def _recomputes(value: Any, _: Values) -> Mapping[str, Any]:
    return {"activation_checkpointing": "none" if is_on(value) else "full"}


def _pure(value: Any, _: Values) -> Mapping[str, Any]:
    return {"whole": "bf16"} if is_on(value) else {}


def _derived(said: dict[str, Any], values: Values) -> None:
    if "finetuning_type" not in values:
        said |= _finetuning("lora", values)
    keep_adapters(said, rest=said.get("whole") or said.get("half"))
    set_precision(said, values)


LLAMA_FACTORY = Format(
    name="LLaMA-Factory",
    read={
        **{key: rule for key, rule in READ.items() if "activation_checkpointing" not in key},
        "gradient_checkpointing": ignored,  # its own switch decides, see patcher.py
        "cutoff_len": whole_number("seq_len"),
        "finetuning_type": _finetuning,
        "stage": _stage,
        "disable_gradient_checkpointing": _recomputes,
        "pure_bf16": _pure,
        "enable_liger_kernel": liger,
    },
    beside=BESIDE
    | words(
        """
        lora_rank lora_alpha lora_target additional_target use_dora pissa_init quantization_bit
        double_quantization packing neat_packing
        """
    ),
    harmless=HARMLESS
    | words(
        """
        activation_checkpointing fsdp_config.activation_checkpointing
        fsdp_config.fsdp_activation_checkpointing
        model_name_or_path adapter_name_or_path adapter_folder cache_dir use_fast_tokenizer
        resize_vocab split_special_tokens add_tokens add_special_tokens new_special_tokens_config
        init_special_tokens model_revision low_cpu_mem_usage use_reentrant_gc infer_* offload_folder
        use_kv_cache hf_hub_token ms_hub_token om_hub_token print_param_status trust_remote_code
        template dataset eval_dataset dataset_dir media_dir train_on_prompt mask_history streaming
        buffer_size mix_strategy interleave_probs overwrite_cache preprocessing_* max_samples
        ignore_pad_token_for_loss val_size tool_format default_system enable_thinking
        preserve_thinking tokenized_path data_shared_file_system do_sample temperature top_p top_k
        num_beams max_length max_new_tokens repetition_penalty length_penalty skip_special_tokens
        export_* vllm_* sglang_* ray_* master_addr master_port enable_torch_profiler profiler_*
        profile_modules swanlab_* use_swanlab plot_loss compute_accuracy disable_shuffling
        early_stopping_steps lora_dropout loraplus_lr_ratio loraplus_lr_embedding use_rslora
        pissa_iter pissa_convert create_new_adapter galore_* apollo_* badam_* eaft_alpha asft_alpha
        module_dropout oft_* freeze_trainable_* freeze_extra_modules pref_* dpo_label_smoothing
        kto_chosen_weight kto_rejected_weight simpo_gamma ppo_* ref_model* reward_model* ld_alpha
        train_from_scratch moe_aux_loss_coef crop_to_patches image_do_pan_and_scan
        video_* audio_sampling_rate use_audio_in_video kt_* quantization_device_map compute_dtype
        device_map model_max_length block_diag_attn hyper_parallel_args hyper_parallel_cp_size
        megatron_bridge_args resume_from_checkpoint
        """
    ),
    decisive={
        **DECISIVE,
        "rope_scaling": Decisive(changes=("time",)),
        "flash_attn": Decisive(off=("auto", "fa2", "fa3", "sdpa", "kernels-community/flash-attn3")),
        "shift_attn": Decisive(),
        "mixture_of_depths": Decisive(),
        "use_unsloth": Decisive(),
        "use_unsloth_gc": Decisive(),
        "upcast_layernorm": Decisive(),
        "upcast_lmhead_output": Decisive(),
        "use_v1_kernels": Decisive(),
        "quantization_method": Decisive(off=("bnb", "bitsandbytes", "BNB")),
        "quantization_type": Decisive(off=("nf4",)),
        "image_max_pixels": Decisive(off=(589824,)),
        "image_min_pixels": Decisive(off=(1024,)),
        "use_kt": Decisive(),
        "use_llama_pro": Decisive(),
        "use_adam_mini": Decisive(),
        "use_mca": Decisive(),
        "use_megatron_bridge": Decisive(),
        "use_hyper_parallel": Decisive(),
        "use_muon": Decisive(),
        "use_galore": Decisive(),
        "use_apollo": Decisive(),
        "use_badam": Decisive(),
        "use_dft_loss": Decisive(),
        "use_asft_loss": Decisive(),
        "use_eaft_loss": Decisive(),
        "freeze_vision_tower": Decisive(off=(True,)),
        "freeze_multi_modal_projector": Decisive(off=(True,)),
        "freeze_language_model": Decisive(),
        "fp8": Decisive(settled_by="precision"),
        "fp8_*": Decisive(off=("auto",), settled_by="precision"),
    },
    usual={
        "batch_size": 8,
        "seq_len": 2048,
        "optimizer": "adamw-fused",
        "clip_gradients": True,
        "activation_checkpointing": "full",
        "grad_accumulation": 1,
    },
    derived=_derived,
)
