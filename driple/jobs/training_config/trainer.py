"""Arguments of transformers' Trainer (`TrainingArguments`) as YAML or JSON.

bf16 -> autocast, and fp32 masters with FSDP or DeepSpeed; gradients are clipped by default
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import TIME
from driple.jobs.training_config.deepspeed import nested
from driple.jobs.training_config.fields import Decisive, Format, Values, words
from driple.jobs.training_config.precision import set_precision
from driple.jobs.training_config.rules import (
    LIGER,
    autocast,
    checkpointing,
    clipping,
    compile_mode,
    container,
    liger,
    offloaded,
    optimizer_named,
    switch,
    tf32,
    whole_number,
)
from driple.jobs.training_config.sharding import fsdp_switch, reshards, sharding_strategy

__all__ = ["BESIDE", "DECISIVE", "HARMLESS", "READ", "TRAINER"]

_DEEPSPEED = nested("deepspeed.")


def _both_parts(value: Any, values: Values) -> Mapping[str, Any]:
    """FSDP's offload: parameters, gradients and states."""
    said = offloaded("states")(value, values)
    return {**said, "offload_parameters": True} if said else {}


def _inside(name: str, rule: Any) -> dict[str, Any]:
    """A field of `fsdp_config`, with and without its prefix."""

    def read(value: Any, values: Values) -> Mapping[str, Any]:
        return rule(value, values) if values.get("fsdp") not in (None, False, "", "false") else {}

    return {f"fsdp_config.{name}": read, f"fsdp_config.fsdp_{name}": read}


READ: Mapping[str, Any] = {
    "per_device_train_batch_size": whole_number("batch_size"),
    "per_gpu_train_batch_size": whole_number("batch_size"),
    "gradient_accumulation_steps": whole_number("grad_accumulation"),
    "optim": optimizer_named,
    "bf16": autocast("bf16"),
    "fp16": autocast("fp16"),
    "tf32": tf32,
    "gradient_checkpointing": checkpointing,
    "activation_checkpointing": checkpointing,
    "max_grad_norm": clipping,
    "torch_compile": switch("compiled"),
    "torch_compile_mode": compile_mode,
    "use_liger_kernel": liger,
    "use_liger": liger,
    "fsdp": fsdp_switch,
    "fsdp_config": container,
    **_inside("activation_checkpointing", checkpointing),
    **_inside("sharding_strategy", sharding_strategy),
    **_inside("reshard_after_forward", reshards),
    **_inside("offload_params", _both_parts),
    **_DEEPSPEED[0],
}
BESIDE = _DEEPSPEED[1] | frozenset(LIGER)
HARMLESS = (
    words(
        """
    output_dir overwrite_output_dir num_train_epochs max_steps learning_rate lr_scheduler_type
    lr_scheduler_kwargs* warmup_steps warmup_ratio weight_decay adam_beta1 adam_beta2 adam_epsilon
    average_tokens_across_devices bf16_full_eval fp16_full_eval use_cache logging_* log_* log_level*
    disable_tqdm report_to run_name project trackio_* eval_* evaluation_strategy evaluate_during_*
    per_device_eval_batch_size per_gpu_eval_batch_size prediction_loss_only include_* save_*
    batch_eval_metrics enable_jit_checkpoint push_to_hub* hub_* load_best_model_at_end
    metric_for_best_model greater_is_better ignore_data_skip restore_callback_states_from_checkpoint
    seed data_seed dataloader_* remove_unused_columns label_names train_sampling_strategy
    group_by_length length_column_name ddp_broadcast_buffers ddp_static_graph ddp_timeout
    ddp_timeout_seconds debug skip_memory_metrics do_train do_eval do_predict past_index
    resume_from_checkpoint local_rank neftune_noise_alpha
    liger_kernel_config liger_kernel_config.rope
    gradient_checkpointing_kwargs.use_reentrant activation_checkpointing_kwargs.use_reentrant
    logging_dir fp16_opt_level fp16_backend half_precision_backend use_mps_device
    predict_with_generate generation_* mp_parameters tpu_* include_inputs_for_metrics
    dispatch_batches save_safetensors accelerator_config accelerator_config.even_batches
    accelerator_config.dispatch_batches accelerator_config.use_seedable_sampler
    accelerator_config.non_blocking accelerator_config.gradient_accumulation_kwargs*
    fsdp_transformer_layer_cls_to_wrap fsdp_config.transformer_layer_cls_to_wrap
    fsdp_config.fsdp_transformer_layer_cls_to_wrap fsdp_config.state_dict_type
    fsdp_config.fsdp_state_dict_type fsdp_config.use_orig_params fsdp_config.fsdp_use_orig_params
    fsdp_config.sync_module_states fsdp_config.fsdp_sync_module_states
    fsdp_config.cpu_ram_efficient_loading fsdp_config.fsdp_cpu_ram_efficient_loading
    fsdp_config.limit_all_gathers fsdp_config.fsdp_limit_all_gathers fsdp_config.fsdp_version
    fsdp_config.version gradient_checkpointing_kwargs activation_checkpointing_kwargs
    """
    )
    | _DEEPSPEED[2]
)
DECISIVE: Mapping[str, Decisive] = {
    "deepspeed": Decisive(),  # a path: read beside the file, if it is there
    "optim_args": Decisive(),
    "optim_target_modules": Decisive(),
    "label_smoothing_factor": Decisive(off=(0.0,)),
    "gradient_checkpointing_kwargs.*": Decisive(),
    "activation_checkpointing_kwargs.*": Decisive(),
    "torch_compile_backend": Decisive(changes=TIME, off=("inductor",)),
    "torchdynamo": Decisive(changes=TIME),
    "liger_kernel_config*": Decisive(),
    "torch_empty_cache_steps": Decisive(),
    "auto_find_batch_size": Decisive(settled_by="batch_size"),
    "full_determinism": Decisive(changes=TIME),
    "use_cpu": Decisive(),
    "no_cuda": Decisive(),
    "use_ipex": Decisive(),
    "accelerator_config.split_batches": Decisive(),
    "parallelism_config*": Decisive(settled_by="scheme"),
    "ddp_find_unused_parameters": Decisive(changes=TIME, off=(False,)),
    "ddp_bucket_cap_mb": Decisive(off=(25,)),
    "ddp_backend": Decisive(changes=TIME, off=("nccl",)),
    "sharded_ddp": Decisive(),
    "fsdp_min_num_params": Decisive(),
    "fsdp_config.min_num_params": Decisive(),
    "fsdp_config.fsdp_min_num_params": Decisive(),
    "fsdp_config.auto_wrap_policy": Decisive(off=("TRANSFORMER_BASED_WRAP",)),
    "fsdp_config.fsdp_auto_wrap_policy": Decisive(off=("TRANSFORMER_BASED_WRAP",)),
    "fsdp_config.backward_prefetch": Decisive(
        changes=TIME, off=("backward_pre", "BACKWARD_PRE", "no_prefetch", "NO_PREFETCH")
    ),
    "fsdp_config.fsdp_backward_prefetch": Decisive(
        changes=TIME, off=("backward_pre", "BACKWARD_PRE", "no_prefetch", "NO_PREFETCH")
    ),
    "fsdp_config.forward_prefetch": Decisive(changes=TIME, off=(True,)),
    "fsdp_config.fsdp_forward_prefetch": Decisive(changes=TIME, off=(True,)),
    "fsdp_config.mixed_precision_policy": Decisive(settled_by="precision"),
    "fsdp_config.xla*": Decisive(),
    **_DEEPSPEED[3],
}


def _derived(said: dict[str, Any], values: Values) -> None:
    set_precision(said, values)


TRAINER = Format(
    name="Trainer",
    read=READ,
    beside=BESIDE,
    harmless=HARMLESS,
    decisive=DECISIVE,
    usual={
        "batch_size": 8,
        "optimizer": "adamw-fused",
        "clip_gradients": True,
        "activation_checkpointing": "none",
        "grad_accumulation": 1,
    },
    derived=_derived,
)
