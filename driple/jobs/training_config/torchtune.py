"""Configs of torchtune's recipes (YAML): components by their dotted names.

`dtype: bf16` is the whole model, without masters; recipes on several devices use FSDP 2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.adapters import adapter_of, keep_adapters
from driple.jobs.training_config.config import MEMORY, TIME
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
    dtype_of_model,
    is_on,
    offloaded,
    optimizer_named,
    switch,
    whole_number,
)
from driple.jobs.training_config.sharding import KEPT_GATHERED

__all__ = ["TORCHTUNE"]

# Fields that only recipes on several devices have: these share parameters out by FSDP 2.
_DISTRIBUTED = words(
    """
    fsdp_cpu_offload fsdp_reshard_after_forward custom_sharded_layers data_parallel_shard_dim
    data_parallel_replicate_dim tensor_parallel_dim context_parallel_dim fsdp.cpu_offload
    """
)
# Losses that take hidden states in place of logits, or logits in chunks. They keep logarithms of
# probabilities in fp32 for the backward pass, so that they are no `fused_loss`.
_FUSED_LOSSES = ("linear", "chunked")


def _model(value: Any, values: Values) -> Mapping[str, Any]:
    builder = str(value).rpartition(".")[2]
    four_bits = builder.startswith("qlora_") or values.get("model.quantize_base") is True
    if not builder.startswith(("lora_", "qlora_")):
        return {}
    given = values.get("model.lora_attn_modules")
    targets = given if isinstance(given, list) else []
    plain = not any(
        values.get(f"model.{name}")
        for name in ("use_dora", "decoder_trainable", "encoder_trainable", "fusion_trainable")
    )
    return adapter_of(
        rank=values.get("model.lora_rank", 8),
        alpha=values.get("model.lora_alpha", 16),
        targets=[
            *("o_proj" if one == "output_proj" else one for one in targets),
            *(("gate_proj", "up_proj", "down_proj")
              if values.get("model.apply_lora_to_mlp") else ()),
            *(("lm_head",) if values.get("model.apply_lora_to_output") else ()),
        ],
        four_bits=four_bits,
        eight_bits=False,
        plain=plain,
    )  # fmt: skip


def _loss(value: Any, _: Values) -> Mapping[str, Any]:
    name = str(value).rpartition(".")[2].lower()
    if "crossentropy" in name and not any(one in name for one in _FUSED_LOSSES):
        return {}
    raise NotModelledError(MEMORY, settled_by="fused_loss")


def _degree(name: str) -> Any:
    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if value in (None, "None", 1):
            return {}
        if isinstance(value, bool) or not isinstance(value, int) or value < -1 or not value:
            raise RefusedError("a number of devices, or -1")
        return {name: value}

    return read


def _both_parts(value: Any, values: Values) -> Mapping[str, Any]:
    said = offloaded("states")(value, values)
    return {**said, "offload_parameters": True} if said else {}


def _reshards(value: Any, _: Values) -> Mapping[str, Any]:
    return {} if is_on(value) else KEPT_GATHERED


def _derived(said: dict[str, Any], values: Values) -> None:
    replicate, shard = said.pop("replicate", None), said.pop("shard", None)
    if _DISTRIBUTED & set(values):
        said.setdefault("scheme", "hsdp" if replicate not in (None, 1) else "fsdp")
    if replicate not in (None, 1) and isinstance(replicate, int):
        said["replicas"] = replicate
    if shard == 1:
        said["scheme"] = "ddp"
    keep_adapters(said, dtype=said.get("whole") or "fp32")  # the whole model is made in `dtype`
    set_precision(said, values)


TORCHTUNE = Format(
    name="torchtune",
    read={
        "batch_size": whole_number("batch_size"),
        "gradient_accumulation_steps": whole_number("grad_accumulation"),
        "tokenizer.max_seq_len": whole_number("seq_len", none=(None, "None")),
        "dtype": dtype_of_model,
        "optimizer._component_": optimizer_named,
        "optimizer": optimizer_named,
        "compile": switch("compiled"),
        "enable_activation_checkpointing": checkpointing,
        "clip_grad_norm": clipping,
        "fsdp_cpu_offload": _both_parts,
        "fsdp.cpu_offload": _both_parts,
        "fsdp_reshard_after_forward": _reshards,
        "data_parallel_replicate_dim": _degree("replicate"),
        "data_parallel_shard_dim": _degree("shard"),
        "model._component_": _model,
        "loss._component_": _loss,
        "loss": _loss,
        "optimizer_in_bwd": switch("updates_in_backward"),
    },
    beside=words(
        """
        optimizer.fused model.lora_rank model.lora_alpha model.lora_attn_modules
        model.apply_lora_to_mlp model.apply_lora_to_output model.quantize_base model.use_dora
        dataset.packed custom_sharded_layers model.decoder_trainable model.encoder_trainable
        model.fusion_trainable
        """
    ),
    harmless=words(
        """
        batch_size_val checkpointer.* resume_from_checkpoint save_* enable_async_checkpointing
        collate_fn cudnn_deterministic_mode dataloader.* dataset.* dataset_val.* datasets epochs
        log_* lr_scheduler.* max_steps_per_epoch metric_logger.* name num_steps output_dir
        profiler.* profile_memory optimizer.lr optimizer.weight_decay optimizer.betas optimizer.eps
        run_val_every_n_steps seed shuffle tokenizer.* model.lora_dropout base_model_path debug_*
        low_cpu_ram use_distributed_state_dict prompt.* tasks limit apply_chat_template
        enable_kv_cache stop_token_ids loss.ignore_index memory_efficient_fsdp_wrap
        enable_expandable_segments model.attn_dropout quantizer._component_ quantizer.groupsize
        activation_offloading_use_streams
        """
    ),
    decisive={
        "device": Decisive(off=("cuda",)),
        "ac_mode": Decisive(),
        "ac_option": Decisive(),
        "enable_activation_offloading": Decisive(),
        "tensor_parallel_dim": Decisive(off=(1,), settled_by="scheme"),
        "tensor_parallel_plan*": Decisive(settled_by="scheme"),
        "context_parallel_dim": Decisive(off=(1,), settled_by="scheme"),
        "context_parallel_rotate_method": Decisive(changes=TIME, off=("allgather",)),
        "enable_fp8_training": Decisive(settled_by="precision"),
        "fp8_recipe_name": Decisive(settled_by="precision"),
        "fake_quant_after_n_steps": Decisive(),
        "resize_token_embeddings": Decisive(),
        "use_flex": Decisive(changes=TIME),
        "layer_dropout*": Decisive(),
        "early_exit_loss*": Decisive(),
        "model.*": Decisive(),
        "loss.*": Decisive(),
        "max_seq_length": Decisive(settled_by="seq_len"),
        # of recipes with a second model, generation or reinforcement learning
        **dict.fromkeys(
            words(
                """
                forward_batch_size gamma grpo_samples inference.* kd_loss.* kd_ratio kl_coeff lmbda
                max_generated_tokens max_new_tokens min_response_length orchestration.*
                penalise_no_eos policy_model.* postprocessing.* ppo_* ref_* reward_* teacher_*
                temperature top_k training.* value_* whiten_rewards
                """
            ),
            Decisive(),
        ),
    },
    usual={"clip_gradients": False, "activation_checkpointing": "none", "grad_accumulation": 1},
    derived=_derived,
)
