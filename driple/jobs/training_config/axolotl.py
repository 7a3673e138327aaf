"""Configs of axolotl (YAML), as its pydantic schemas read them.

`bf16: true` loads the model in bfloat16 (`resolve_dtype`), which autocast then leaves as it is;
with FSDP and DeepSpeed masters are in fp32. Embeddings and norms have the same type where adapters
are trained (`_configure_embedding_dtypes`), adapters fp32 (`peft_autocast_adapter_dtype`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.adapters import ADAPTER, adapter_of, keep_adapters
from driple.jobs.training_config.config import BOTH, TIME
from driple.jobs.training_config.deepspeed import nested
from driple.jobs.training_config.fields import (
    Decisive,
    Format,
    NotModelledError,
    RefusedError,
    Values,
    words,
)
from driple.jobs.training_config.precision import set_precision
from driple.jobs.training_config.rules import (
    checkpointing,
    clipping,
    compile_mode,
    container,
    ignored,
    is_on,
    offloaded,
    optimizer_named,
    switch,
    tf32,
    whole_number,
)
from driple.jobs.training_config.sharding import fsdp_switch, reshards, sharding_strategy

__all__ = ["AXOLOTL"]

_DEEPSPEED = nested("deepspeed.")
_LIGER, _CUT = "LigerPlugin", "CutCrossEntropyPlugin"


def _half(kind: str) -> Any:
    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if value == "full":  # the model alone, without autocast
            return {"whole": kind}
        return {"half": kind, "whole": kind} if value == "auto" or is_on(value) else {}

    return read


def _loaded(value: Any, _: Values) -> Mapping[str, Any]:
    """`float16: true` loads the model so, and switches no autocast on, unlike `bfloat16`."""
    return {"whole": "fp16"} if is_on(value) else {}


def _adapter(value: Any, values: Values) -> Mapping[str, Any]:
    word = str(value).lower()
    if word in ("", "none"):
        return {}
    if word not in ("lora", "qlora"):
        raise NotModelledError(BOTH, settled_by="lora")
    linear = values.get("lora_target_linear") is True
    plain = not any(
        values.get(name)
        for name in ("peft_use_dora", "lora_modules_to_save", "lora_target_parameters",
                     "lora_rank_pattern", "peft_layers_to_transform")
    )  # fmt: skip
    return adapter_of(
        rank=values.get("lora_r", 8),
        alpha=values.get("lora_alpha", 16),
        targets="all-linear" if linear else values.get("lora_target_modules"),
        four_bits=values.get("load_in_4bit") is True or word == "qlora",
        eight_bits=values.get("load_in_8bit") is True,
        plain=plain,
    )


def _quantised(value: Any, values: Values) -> Mapping[str, Any]:
    """Weights of 4 or 8 bits belong to an adapter."""
    if not is_on(value) or values.get("adapter") in ("lora", "qlora"):
        return {}
    raise NotModelledError(BOTH, settled_by="weights")


def _both_parts(value: Any, values: Values) -> Mapping[str, Any]:
    said = offloaded("states")(value, values)
    return {**said, "offload_parameters": True} if said else {}


def _mode(value: Any, values: Values) -> Mapping[str, Any]:
    """Of a compiler that is switched on."""
    said = compile_mode(value, values)
    return {} if values.get("torch_compile") in (None, False) else said


def _degree(name: str) -> Any:
    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise RefusedError("a whole number of 1 or more")
        return {} if value == 1 else {name: value}

    return read


def _has(values: Values, plugin: str) -> bool:
    """Whether a plugin is named, without which its fields are not read."""
    names = values.get("plugins")
    return isinstance(names, list) and any(str(name).endswith(plugin) for name in names)


def _plugins(value: Any, values: Values) -> Mapping[str, Any]:
    """Plugins by name; the one of cut cross entropy is on unless its field is off."""
    names = [str(name).rpartition(".")[2] for name in value] if isinstance(value, list) else [value]
    if not set(names) <= {_LIGER, _CUT, "SwanLabPlugin"}:
        raise NotModelledError
    is_cut = _CUT in names and values.get("cut_cross_entropy") is not False
    return {"fused_loss": True} if is_cut else {}


def _fused_loss(value: Any, values: Values) -> Mapping[str, Any]:
    return {"fused_loss": True} if is_on(value) and _has(values, _LIGER) else {}


def _fused_kernels(value: Any, values: Values) -> Mapping[str, Any]:
    """Liger's norms and gated activations, which have a model together."""
    if not is_on(value) or not _has(values, _LIGER):
        return {}
    gate = values.get("liger_glu_activation") or values.get("liger_swiglu")
    if not (gate and values.get("liger_rms_norm")):
        raise NotModelledError
    return {"fused_kernels": True}


def _inside(name: str, rule: Any) -> dict[str, Any]:
    return {f"fsdp_config.{name}": rule, f"fsdp_config.fsdp_{name}": rule}


def _derived(said: dict[str, Any], values: Values) -> None:
    replicate, shard = said.pop("replicate", None), said.pop("shard", None)
    total = said.pop("device_batch", None)
    if total is not None and "grad_accumulation" not in said:
        said["grad_accumulation"] = max(total // said.get("batch_size", 1), 1)
    if values.get("fsdp_config") or any(key.startswith("fsdp_config.") for key in values):
        said.setdefault("scheme", "fsdp")
    if replicate is not None and (shard is not None or said.get("scheme") == "fsdp"):
        said |= {"scheme": "hsdp", "replicas": replicate}
    whole = said.get("whole")
    in_half = values.get("peft_autocast_adapter_dtype") is False
    keep_adapters(said, dtype=whole if in_half and whole else "fp32", rest=whole or "fp32")
    set_precision(said, values)


AXOLOTL = Format(
    name="axolotl",
    read={
        "micro_batch_size": whole_number("batch_size"),
        "batch_size": whole_number("device_batch"),
        "gradient_accumulation_steps": whole_number("grad_accumulation"),
        "sequence_len": whole_number("seq_len"),
        "bf16": _half("bf16"),
        "fp16": _half("fp16"),
        "bfloat16": _half("bf16"),
        "float16": _loaded,
        "tf32": tf32,
        "optimizer": optimizer_named,
        "gradient_checkpointing": checkpointing,
        "max_grad_norm": clipping,
        "torch_compile": switch("compiled"),
        "torch_compile_mode": _mode,
        "fsdp": fsdp_switch,
        "fsdp_config": container,
        **_inside("activation_checkpointing", checkpointing),
        **_inside("sharding_strategy", sharding_strategy),
        **_inside("reshard_after_forward", reshards),
        **_inside("offload_params", _both_parts),
        "dp_shard_size": _degree("shard"),
        "dp_replicate_size": _degree("replicate"),
        "adapter": _adapter,
        "plugins": _plugins,
        "cut_cross_entropy": ignored,
        "liger_fused_linear_cross_entropy": _fused_loss,
        **dict.fromkeys(words("liger_rms_norm liger_glu_activation liger_swiglu"), _fused_kernels),
        "load_in_4bit": _quantised,
        "load_in_8bit": _quantised,
        **_DEEPSPEED[0],
    },
    beside=_DEEPSPEED[1]
    | ADAPTER
    | words(
        """
        lora_target_linear lora_rank_pattern peft_use_dora peft_layers_to_transform sample_packing
        pad_to_sequence_len peft_autocast_adapter_dtype
        """
    ),
    harmless=_DEEPSPEED[2]
    | words(
        """
        strict resume_from_checkpoint auto_resume_from_checkpoints mean_resizing_embeddings
        dynamic_checkpoint* datasets test_datasets shuffle_* dataset_* skip_prepare_dataset
        num_dataset_shards_to_save pretraining_dataset dataloader_* accelerator_config
        remove_unused_columns push_dataset_to_hub hf_use_auth_token device device_map world_size
        local_rank ddp seed ddp_timeout ddp_broadcast_buffers do_causal_lm_eval eval_* do_bench_eval
        bench_* metric_for_best_model greater_is_better loss_watchdog_* gc_steps gc_collect_steps
        excess_length_strategy min_sample_len max_prompt_len sample_packing_* eval_sample_packing
        pad_to_multiple_of curriculum_sampling multipack_real_batches batch_flattening
        pretrain_multipack_* pretraining_sample_concatenation streaming
        streaming_multipack_buffer_size flash_attention sdp_attention flash_optimum
        qlora_sharded_model_loading fsdp_version fsdp_final_state_dict_type val_set_size
        heads_k_stride ring_attn_func special_tokens* tokens added_tokens_overrides* max_steps
        warmup_steps warmup_ratio evals_per_epoch save_* saves_per_epoch logging_steps
        early_stopping_patience load_best_model_at_end use_tensorboard profiler_*
        include_tokens_per_second include_tkps neftune_noise_alpha noisy_embedding_alpha
        low_cpu_mem_usage chat_template* eot_tokens default_system_message fix_untrained_tokens
        is_preprocess preprocess_iterable total_num_tokens total_supervised_tokens
        axolotl_config_path is_falcon_derived_model is_llama_derived_model is_mistral_derived_model
        is_qwen_derived_model generate_samples num_generation_samples generation_*
        evaluation_strategy dpo_generate_during_eval use_mlflow mlflow_* hf_mlflow_log_artifacts
        use_wandb wandb_* use_comet comet_* gradio_* use_ray ray_* resources_per_worker*
        use_otel_metrics otel_* use_trackio trackio_* base_model base_model_config
        base_model_ignore_patterns cls_model_config tokenizer_* processor_type processor_kwargs*
        trust_remote_code model_type model_revision revision_of_model output_dir hub_*
        role_boundaries image_size image_resize_algorithm lora_model_dir lora_dropout
        lora_fan_in_fan_out peft_use_rslora peft_init_lora_weights peft_ensure_weight_tying
        loraplus_* merge_lora merge_method lora_on_cpu relora_prune_* train_on_inputs
        group_by_length learning_rate embedding_lr* weight_decay lr_* adam_* cosine_* dion_*
        qgalore_* jagged_* num_epochs torchdistx_path eaft_alpha eaft_k
        chunked_cross_entropy_num_chunks tiled_mlp_num_shards tiled_mlp_use_original_mlp spectrum_*
        lisa_layers_attribute lisa_step_interval debug local_rank
        experimental_skip_move_to_device gradient_checkpointing_kwargs
        gradient_checkpointing_kwargs.use_reentrant flex_attn_compile_kwargs* scaling_softmax_*
        fp32_norm_classes fsdp_config.cpu_offload_pin_memory fsdp_config.cpu_ram_efficient_loading
        fsdp_config.fsdp_cpu_ram_efficient_loading fsdp_config.final_state_dict_type
        fsdp_config.fsdp_version fsdp_config.state_dict_type fsdp_config.fsdp_state_dict_type
        fsdp_config.sync_module_states fsdp_config.fsdp_sync_module_states
        fsdp_config.transformer_layer_cls_to_wrap fsdp_config.fsdp_transformer_layer_cls_to_wrap
        fsdp_config.use_orig_params fsdp_config.fsdp_use_orig_params fsdp_config.limit_all_gathers
        fsdp_config.fsdp_limit_all_gathers liger_use_token_scaling liger_rope liger_layer_norm
        vllm* float32 tokenizer
        """
    ),
    decisive={
        "deepspeed": Decisive(),  # a path: read beside the file, if it is there
        "trainer_cls": Decisive(),
        "rl": Decisive(),
        "rl_beta": Decisive(),
        "trl*": Decisive(),
        "ebft*": Decisive(),
        "qat*": Decisive(),
        "quantization*": Decisive(),
        "reward_model": Decisive(),
        "process_reward_model": Decisive(),
        "center_rewards_coefficient": Decisive(),
        "num_labels": Decisive(),
        "dpo_*": Decisive(),
        "precompute_ref_log_probs": Decisive(),
        "orpo_alpha": Decisive(),
        "rpo_alpha": Decisive(),
        "cpo_alpha": Decisive(),
        "simpo_gamma": Decisive(),
        "kto_*": Decisive(),
        "resize_token_embeddings_to_32x": Decisive(),
        "shrink_embeddings": Decisive(),
        "embeddings_skip_upcast": Decisive(),
        "reinit_weights": Decisive(off=(True,)),
        "ddp_bucket_cap_mb": Decisive(off=(25,)),
        "ddp_find_unused_parameters": Decisive(changes=TIME, off=(False,)),
        "torch_empty_cache_steps": Decisive(),
        "auto_find_batch_size": Decisive(settled_by="batch_size"),
        "fp8": Decisive(settled_by="precision"),
        "fp8_enable_fsdp_float8_all_gather": Decisive(),
        "gradient_checkpointing_kwargs.*": Decisive(),
        "selective_checkpointing*": Decisive(),
        "activation_offloading": Decisive(),
        "layer_offloading": Decisive(),
        "freeze_mm_modules": Decisive(),
        "unfrozen_parameters": Decisive(),
        "use_pose": Decisive(),
        "pose_*": Decisive(),
        "xformers_attention": Decisive(),
        "flex_attention": Decisive(),
        "flash_attn_cross_entropy": Decisive(),
        "flash_attn_fuse_mlp": Decisive(),
        "flash_attn_rms_norm": Decisive(),
        "flash_attn_d512": Decisive(changes=TIME),
        "sage_attention": Decisive(),
        "s2_attention": Decisive(),
        "eager_attention": Decisive(),
        "attn_implementation": Decisive(
            off=("flash_attention_2", "flash_attention_3", "sdpa", "flash_attention")
        ),
        "gemma4_hybrid_attn_impl": Decisive(),
        "large_head_attention": Decisive(),
        "sdpa_varlen": Decisive(changes=TIME),
        "fused_attn_kernel": Decisive(),
        "experts_implementation": Decisive(off=("eager",)),
        "quantize_moe_experts": Decisive(),
        "scaling_softmax": Decisive(),
        "lora_mlp_kernel": Decisive(),
        "lora_qkv_kernel": Decisive(),
        "lora_o_kernel": Decisive(),
        "lora_embedding_kernel": Decisive(),
        "chunked_cross_entropy": Decisive(),
        "use_eaft": Decisive(),
        "tiled_mlp": Decisive(),
        "llama4_linearized_experts": Decisive(),
        "deepcompile": Decisive(),
        "fp32_norms": Decisive(),
        "fsdp_config.auto_wrap_policy": Decisive(off=("TRANSFORMER_BASED_WRAP",)),
        "fsdp_config.fsdp_auto_wrap_policy": Decisive(off=("TRANSFORMER_BASED_WRAP",)),
        "fsdp_config.min_num_params": Decisive(),
        "fsdp_config.mixed_precision_policy": Decisive(off=("bf16",), settled_by="precision"),
        "fsdp_config.backward_prefetch": Decisive(changes=TIME, off=("BACKWARD_PRE",)),
        "fsdp_config.fsdp_backward_prefetch": Decisive(changes=TIME, off=("BACKWARD_PRE",)),
        "fsdp_config.forward_prefetch": Decisive(changes=TIME, off=(True,)),
        "fsdp_config.fsdp_forward_prefetch": Decisive(changes=TIME, off=(True,)),
        "sequence_parallel_degree": Decisive(off=(1,), settled_by="scheme"),
        "context_parallel_size": Decisive(off=(1,), settled_by="scheme"),
        "tensor_parallel_size": Decisive(off=(1,), settled_by="scheme"),
        "torch_compile_backend": Decisive(changes=TIME, off=("inductor",)),
        "torch_compile_options*": Decisive(changes=TIME),
        "max_memory*": Decisive(),
        "gpu_memory_limit": Decisive(),
        "rope_scaling*": Decisive(changes=TIME),
        "max_packed_sequence_len": Decisive(settled_by="seq_len"),
        "model_config*": Decisive(),
        "model_kwargs*": Decisive(),
        "overrides_of_model_config*": Decisive(),
        "overrides_of_model_kwargs*": Decisive(),
        "use_kernels": Decisive(),
        "model_quantization_config*": Decisive(),
        "use_onebitllms": Decisive(),
        "lora_alpha_pattern": Decisive(off=({},)),
        "peft*": Decisive(settled_by="lora"),
        "gptq": Decisive(),
        "bnb_config_kwargs*": Decisive(),
        "relora": Decisive(),
        "relora_steps": Decisive(),
        "relora_cpu_offload": Decisive(),
        "lisa_n_layers": Decisive(),
        "optim_args*": Decisive(),
        "optim_target_modules": Decisive(),
        "liger_*": Decisive(),
    },
    usual={
        "batch_size": 1,
        "seq_len": 512,
        "optimizer": "adamw-fused",
        "clip_gradients": True,
        "activation_checkpointing": "none",
        "grad_accumulation": 1,
    },
    derived=_derived,
)
