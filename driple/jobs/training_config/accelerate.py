"""Config files of Accelerate (YAML), as `accelerate config` writes them.

distributed_type FSDP, MULTI_GPU, DEEPSPEED with fsdp_config, deepspeed_config
-> scheme, precision (masters in fp32 with FSDP and DeepSpeed), offload
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import BOTH, TIME
from driple.jobs.training_config.deepspeed import zero_stage
from driple.jobs.training_config.fields import (
    Decisive,
    Format,
    NotModelledError,
    RefusedError,
    Rule,
    Values,
    words,
)
from driple.jobs.training_config.precision import set_precision
from driple.jobs.training_config.rules import (
    checkpointing,
    clipping,
    compile_mode,
    container,
    is_on,
    mixed_precision,
    offloaded,
    whole_number,
)
from driple.jobs.training_config.sharding import reshards, sharding_strategy

__all__ = ["ACCELERATE"]


def _distributed(value: Any, values: Values) -> Mapping[str, Any]:
    word = str(value).upper() if value is not False else "NO"
    if word == "FSDP":
        return {} if _strategies(values) else {"scheme": "fsdp"}
    if word == "DEEPSPEED":
        return {"engine": "deepspeed"}
    if word == "MULTI_GPU":
        return {"scheme": "ddp"}
    if word == "NO":
        return {}
    raise NotModelledError(BOTH, settled_by="scheme")


def _strategies(values: Values) -> list[str]:
    """Fields that state FSDP's strategy."""
    names = ("sharding_strategy", "reshard_after_forward")
    return [name for name in names if values.get(f"fsdp_config.fsdp_{name}") is not None]


def _with(rule: Rule, kind: str) -> Rule:
    """A rule that counts where the distributed type is this one, or none is stated."""

    def read(value: Any, values: Values) -> Mapping[str, Any]:
        if str(values.get("distributed_type", kind)).upper() != kind:
            return {}
        return rule(value, values)

    return read


def _both_parts(value: Any, values: Values) -> Mapping[str, Any]:
    """FSDP's offload: parameters, gradients and states."""
    said = offloaded("states")(value, values)
    return {**said, "offload_parameters": True} if said else {}


def _compiler(value: Any, _: Values) -> Mapping[str, Any]:
    word = str(value).lower()
    if word in ("no", "none", "false", "eager"):
        return {}
    if word == "inductor":
        return {"compiled": True}
    raise NotModelledError(TIME)


def _mode(value: Any, values: Values) -> Mapping[str, Any]:
    """Of a compiler that is there."""
    backend = values.get("dynamo_config.dynamo_backend", values.get("dynamo_backend", "no"))
    said = compile_mode(value, values)
    return said if _compiler(backend, values) else {}


def _size(degree: str) -> Rule:
    def read(value: Any, values: Values) -> Mapping[str, Any]:
        if isinstance(value, bool) or not isinstance(value, int):
            raise RefusedError("a whole number")
        return {} if value in (0, 1) else {degree: value}

    return read


def _derived(said: dict[str, Any], values: Values) -> None:
    replicate, shard = said.pop("replicate", None), said.pop("shard", None)
    if shard is not None:
        said["scheme"] = "fsdp" if replicate is None else "hsdp"
    if replicate is not None:
        said.setdefault("scheme", "ddp")
        said |= {"replicas": replicate} if shard is not None else {}
    if str(values.get("distributed_type", "")).upper() == "DEEPSPEED":
        said.setdefault("scheme", "zero2")  # Accelerate's own default of zero_stage
    set_precision(said, values)


_DP = "parallelism_config.parallelism_config_dp"
ACCELERATE = Format(
    name="Accelerate",
    read={
        "distributed_type": _distributed,
        "mixed_precision": mixed_precision,
        "fp16": lambda value, _: {"half": "fp16"} if is_on(value) else {},
        "fsdp_config": container,
        "fsdp_config.fsdp_sharding_strategy": _with(sharding_strategy, "FSDP"),
        "fsdp_config.fsdp_reshard_after_forward": _with(reshards, "FSDP"),
        "fsdp_config.fsdp_offload_params": _with(_both_parts, "FSDP"),
        "fsdp_config.fsdp_activation_checkpointing": _with(checkpointing, "FSDP"),
        "deepspeed_config": container,
        "deepspeed_config.zero_stage": _with(zero_stage, "DEEPSPEED"),
        "deepspeed_config.gradient_accumulation_steps": whole_number("grad_accumulation"),
        "deepspeed_config.gradient_clipping": clipping,
        "deepspeed_config.offload_optimizer_device": offloaded("states"),
        "deepspeed_config.offload_param_device": offloaded("parameters"),
        "deepspeed_config.train_micro_batch_size_per_gpu": whole_number("batch_size"),
        "dynamo_config": container,
        "dynamo_config.dynamo_backend": _compiler,
        "dynamo_backend": _compiler,
        "dynamo_config.dynamo_mode": _mode,
        "parallelism_config": container,
        f"{_DP}_replicate_size": _size("replicate"),
        f"{_DP}_shard_size": _size("shard"),
    },
    harmless=words(
        """
        compute_environment debug use_cpu_threads command_file commands enable_cpu_affinity gpu_ids
        machine_rank main_process_ip main_process_port main_training_function mpirun_config*
        num_machines num_processes rdzv_backend rdzv_conf* same_network downcast_bf16 tpu_*
        deepspeed_config.deepspeed_hostfile deepspeed_config.deepspeed_multinode_launcher
        deepspeed_config.deepspeed_inclusion_filter deepspeed_config.deepspeed_exclusion_filter
        deepspeed_config.offload_optimizer_nvme_path deepspeed_config.offload_param_nvme_path
        deepspeed_config.zero3_init_flag deepspeed_config.zero3_save_16bit_model
        deepspeed_config.deepspeed_moe_layer_cls_names fsdp_config.fsdp_state_dict_type
        fsdp_config.fsdp_cpu_ram_efficient_loading fsdp_config.fsdp_sync_module_states
        fsdp_config.fsdp_transformer_layer_cls_to_wrap fsdp_config.fsdp_use_orig_params
        fsdp_config.fsdp_version fsdp_config.fsdp_backward_prefetch_policy
        parallelism_config.parallelism_config_cp_* parallelism_config.parallelism_config_sp_*
        """
    ),
    decisive={
        "use_cpu": Decisive(),
        "deepspeed_config.deepspeed_config_file": Decisive(),  # a path, see `read`
        "fsdp_config.fsdp_auto_wrap_policy": Decisive(off=("TRANSFORMER_BASED_WRAP",)),
        "fsdp_config.fsdp_min_num_params": Decisive(),
        "fsdp_config.fsdp_backward_prefetch": Decisive(
            changes=TIME, off=("BACKWARD_PRE", "NO_PREFETCH")
        ),
        "fsdp_config.fsdp_forward_prefetch": Decisive(changes=TIME, off=(True,)),
        "fsdp_config.fsdp_ignored_modules": Decisive(),
        "fp8_config*": Decisive(settled_by="precision"),
        "megatron_lm_config*": Decisive(),
        "dynamo_config.dynamo_use_dynamic": Decisive(changes=TIME),
        "dynamo_config.dynamo_use_fullgraph": Decisive(changes=TIME),
        "dynamo_config.dynamo_use_regional_compilation": Decisive(changes=TIME),
        "parallelism_config.parallelism_config_cp_size": Decisive(off=(1,), settled_by="scheme"),
        "parallelism_config.parallelism_config_sp_size": Decisive(off=(1,), settled_by="scheme"),
        "parallelism_config.parallelism_config_tp_size": Decisive(off=(1,), settled_by="scheme"),
        "ipex_config*": Decisive(),
    },
    derived=_derived,
)
