"""Configs of torchtitan (TOML, its `JobConfig`, until they became Python).

FSDP 2 by default: parameters and states in fp32, products in bfloat16; degrees say who shares what
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import BOTH, TIME
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
    clipping,
    named,
    offloaded,
    optimizer_named,
    switch,
    whole_number,
)
from driple.jobs.training_config.sharding import KEPT_GATHERED

__all__ = ["TORCHTITAN"]

_TYPES = {"bfloat16": "bf16", "float32": None}


def _degree(name: str) -> Any:
    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if isinstance(value, bool) or not isinstance(value, int) or value == 0 or value < -1:
            raise RefusedError("a degree: a whole number of 1 or more, or -1")
        return {f"degree_{name}": value}

    return read


def _param(value: Any, _: Values) -> Mapping[str, Any]:
    if str(value) not in _TYPES:
        raise RefusedError(f"one of {', '.join(_TYPES)}")
    return {"half": _TYPES[value]} if _TYPES[value] else {}


def _dtype(value: Any, _: Values) -> Mapping[str, Any]:
    if str(value) not in _TYPES:
        raise RefusedError(f"one of {', '.join(_TYPES)}")
    return {"whole": _TYPES[value]} if _TYPES[value] else {}


def _optimizer(value: Any, values: Values) -> Mapping[str, Any]:
    """Fused is its default."""
    fused = values.get("optimizer.implementation", "fused")
    return optimizer_named(value, {**values, "optimizer.implementation": fused})


def _implementation(value: Any, _: Values) -> Mapping[str, Any]:
    """`optimizer.name` reads it."""
    if str(value) in {"fused", "foreach", "for-loop"}:
        return {}
    raise NotModelledError(BOTH, settled_by="optimizer")


def _both_parts(value: Any, values: Values) -> Mapping[str, Any]:
    said = offloaded("states")(value, values)
    return {**said, "offload_parameters": True} if said else {}


def _reshards(value: Any, _: Values) -> Mapping[str, Any]:
    if str(value) not in {"default", "always", "never"}:
        raise RefusedError("one of default, always, never")
    return KEPT_GATHERED if value == "never" else {}


def _global_batch(value: Any, values: Values) -> Mapping[str, Any]:
    return whole_number("global_batch", none=(-1,))(value, values)


_WORDS = {"tp": "tensor", "cp": "context", "ep": "expert", "pp": "pipeline"}


def _derived(said: dict[str, Any], values: Values) -> None:
    if "training.mixed_precision_param" not in values:
        said["half"] = "bf16"
    shard = said.pop("degree_shard", -1)
    replicate = said.pop("degree_replicate", 1)
    degrees = {word: said.pop(f"degree_{name}", 1) for word, name in _WORDS.items()}
    split = [f"{word}{degree}" for word, degree in degrees.items() if degree > 1]
    if split:
        if shard != 1 and replicate not in (1, -1):
            said["split_with_shards"] = True  # hsdp beside degrees
        said["scheme"] = "-".join(split if shard == 1 else (*split, "fsdp"))
    elif shard == 1:
        said["scheme"] = "ddp"
    elif replicate not in (1, -1):
        said |= {"scheme": "hsdp", "replicas": replicate}
    else:
        said.setdefault("scheme", "fsdp")
    set_precision(said, values)


TORCHTITAN = Format(
    name="torchtitan",
    read={
        "training.local_batch_size": whole_number("batch_size"),
        "training.batch_size": whole_number("batch_size"),
        "training.global_batch_size": _global_batch,
        "training.seq_len": whole_number("seq_len"),
        "training.mixed_precision_param": _param,
        "training.dtype": _dtype,
        "training.compile": switch("compiled"),
        "training.max_norm": clipping,
        "training.enable_cpu_offload": _both_parts,
        "training.data_parallel_shard_degree": _degree("shard"),
        "training.data_parallel_replicate_degree": _degree("replicate"),
        "training.tensor_parallel_degree": _degree("tensor"),
        "parallelism.data_parallel_shard_degree": _degree("shard"),
        "parallelism.data_parallel_replicate_degree": _degree("replicate"),
        "parallelism.tensor_parallel_degree": _degree("tensor"),
        "parallelism.context_parallel_degree": _degree("context"),
        "parallelism.expert_parallel_degree": _degree("expert"),
        "parallelism.pipeline_parallel_degree": _degree("pipeline"),
        "experimental.context_parallel_degree": _degree("context"),
        "experimental.pipeline_parallel_degree": _degree("pipeline"),
        "parallelism.fsdp_reshard_after_forward": _reshards,
        "activation_checkpoint.mode": named(
            "activation_checkpointing",
            {"none": "none", "full": "full", "selective": "selective"},
        ),
        "compile.enable": switch("compiled"),
        "optimizer.name": _optimizer,
        "optimizer.early_step_in_backward": switch("updates_in_backward"),
        "optimizer.implementation": _implementation,
    },
    harmless=words(
        """
        job.* profiling.* metrics.* checkpoint.* comm.* lr_scheduler.* validation.* debug.seed
        memory_estimation.* model.name model.flavor model.hf_assets_path model.tokenizer_path
        model.print_after_conversion model.norm_type optimizer.lr optimizer.beta1 optimizer.beta2
        optimizer.eps optimizer.weight_decay training.dataset training.dataset_path training.steps
        training.gc_freq training.gc_debug training.dataloader.* training.mixed_precision_reduce
        training.warmup_steps training.deterministic_warn_only training.seed
        activation_checkpoint.debug activation_checkpoint.determinism_check
        activation_checkpoint.preserve_rng_state activation_checkpoint.early_stop
        activation_checkpoint.visualize_memory_budget_pareto experimental.custom_args_module
        experimental.custom_import debug.deterministic_warn_only fault_tolerance.process_group*
        fault_tolerance.replica_id fault_tolerance.group_size fault_tolerance.min_replica_size
        parallelism.context_parallel_load_balancer parallelism.context_parallel_rotate_method
        parallelism.expert_parallel_comm_backend
        parallelism.pipeline_parallel_expert_parallel_overlap compile.components quantize.*
        """
    ),
    decisive={
        "model.converters": Decisive(settled_by="precision"),  # names what `quantize` configures
        "activation_checkpoint.selective_ac_option": Decisive(off=("op",)),
        "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns": Decisive(
            off=(["moe.router.gate"],)
        ),
        "activation_checkpoint.memory_budget": Decisive(off=(0.5,)),
        "compile.backend": Decisive(changes=TIME, off=("inductor",)),
        "debug.deterministic": Decisive(changes=TIME),
        "debug.moe_force_load_balance": Decisive(changes=TIME),
        "training.deterministic": Decisive(changes=TIME),
        "fault_tolerance.enable": Decisive(),
        "fault_tolerance.semi_sync_method": Decisive(changes=TIME),
        "float8.*": Decisive(settled_by="precision"),
        "mx.*": Decisive(settled_by="precision"),
        "parallelism.disable_loss_parallel": Decisive(),
        "parallelism.enable_async_tensor_parallel": Decisive(changes=TIME),
        "parallelism.enable_compiled_autograd": Decisive(changes=TIME),
        "parallelism.enable_sequence_parallel": Decisive(off=(True,)),
        "parallelism.module_fqns_per_model_part": Decisive(),
        "parallelism.pipeline_parallel_*": Decisive(off=("1F1B", 1)),
        "parallelism.expert_tensor_parallel_degree": Decisive(off=(1,)),
        "experimental.enable_async_tensor_parallel": Decisive(changes=TIME),
        "experimental.pipeline_parallel_*": Decisive(off=("1F1B", 1)),
        "training.fp8_linear": Decisive(settled_by="precision"),
    },
    usual={
        "batch_size": 8,
        "seq_len": 2048,
        "optimizer": "adamw-fused",
        "clip_gradients": True,
        "activation_checkpointing": "selective",
    },
    derived=_derived,
)
