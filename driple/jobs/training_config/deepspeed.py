"""Config files of DeepSpeed (JSON), as `deepspeed.runtime.config` reads them.

zero_optimization.stage 1, 2, 3 -> zero1, zero2, fsdp (ZeRO-3)
bf16.enabled -> bf16-mixed: the engine casts the model, and keeps masters and states in fp32
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from driple.jobs.training_config.config import BOTH, MEMORY, TIME, USUAL_REUSE_ELEMENTS, Changes
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
    container,
    is_on,
    offloaded,
    optimizer_named,
    whole_number,
)

__all__ = ["DEEPSPEED", "nested", "zero_stage"]

_STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "fsdp"}
# DeepSpeed's Adam is AdamW unless `adam_w_mode` is off; its kernel is fused, unlike `torch_adam`.
_FUSED = {"adam": "adamw-fused", "adamw": "adamw-fused", "lion": "lion", "lamb": "lamb",
          "adagrad": "adagrad"}  # fmt: skip


def zero_stage(value: Any, _: Values) -> Mapping[str, Any]:
    """A stage of ZeRO."""
    if value == "auto":
        raise NotModelledError(BOTH, settled_by="scheme")
    if isinstance(value, bool | list | dict) or value not in _STAGES:
        raise RefusedError("a ZeRO stage from 0 to 3")
    return {"scheme": _STAGES[value], "engine": "deepspeed"}


def _half(kind: str) -> Any:
    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if value == "auto":  # the trainer's own field decides
            return {}
        return {"half": kind} if is_on(value) else {}

    return read


def _optimizer(value: Any, values: Values) -> Mapping[str, Any]:
    word = str(value).lower()
    torch_adam = values.get("optimizer.params.torch_adam") is True
    if word in _FUSED and not torch_adam:
        name = _FUSED[word]
        if word == "adam" and values.get("optimizer.params.adam_w_mode") is False:
            name = "adam-fused"
        return {"optimizer": name}
    return optimizer_named(value, values)


def _reuse(value: Any, values: Values) -> Mapping[str, Any]:
    """Parameters that stay gathered: the smaller of the two counts."""
    names = ("stage3_max_live_parameters", "stage3_max_reuse_distance")
    counts = (values.get(f"{_ZERO}{name}", USUAL_REUSE_ELEMENTS) for name in names)
    return {"reuse_elements": min(map(_elements, counts))}


def _within(changes: Changes, *, least: float = 0, most: float = inf) -> Any:
    """A number of elements that changes nothing between two others."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if value != "auto" and not least <= _elements(value) <= most:
            raise NotModelledError(changes)
        return {}

    return read


def _elements(value: Any) -> int:
    """A number of elements, such as 5e8.

    Raises:
        RefusedError: it is none.
    """
    try:
        count = -1 if isinstance(value, bool) else int(float(value))
    except (TypeError, ValueError, OverflowError):
        count = -1
    if count < 0:
        raise RefusedError("a number of elements, such as 5e8")
    return count


def _derived(said: dict[str, Any], values: Values) -> None:
    said["engine"] = "deepspeed"
    said.setdefault("scheme", "ddp")
    set_precision(said, values)


_ZERO = "zero_optimization."
_OFFLOAD = f"{_ZERO}offload"
DEEPSPEED = Format(
    name="DeepSpeed",
    read={
        "train_batch_size": whole_number("global_batch"),
        "train_micro_batch_size_per_gpu": whole_number("batch_size"),
        "gradient_accumulation_steps": whole_number("grad_accumulation"),
        "gradient_clipping": clipping,
        "optimizer.type": _optimizer,
        "bf16.enabled": _half("bf16"),
        "bfloat16.enabled": _half("bf16"),
        "fp16.enabled": _half("fp16"),
        "zero_optimization.stage": zero_stage,
        f"{_OFFLOAD}_optimizer.device": offloaded("states"),
        f"{_OFFLOAD}_param.device": offloaded("parameters"),
        "zero_optimization.cpu_offload": offloaded("states"),
        "zero_optimization.cpu_offload_param": offloaded("parameters"),
        # The gather after an update fills the parameters in place: its size changes the number of
        # calls alone. A prefetch of up to two blocks of a language model is what FSDP's is here,
        # and parameters of up to a million elements are small beside a block.
        f"{_ZERO}allgather_bucket_size": _within(TIME, least=1e8),
        f"{_ZERO}stage3_prefetch_bucket_size": _within(BOTH, most=5e8),
        f"{_ZERO}stage3_param_persistence_threshold": _within(BOTH, most=1e6),
        f"{_ZERO}stage3_max_live_parameters": _reuse,
        f"{_ZERO}stage3_max_reuse_distance": _reuse,
        "zero_optimization": container,
        f"{_OFFLOAD}_optimizer": container,
        f"{_OFFLOAD}_param": container,
    },
    beside=words(
        """
        optimizer.params.torch_adam optimizer.params.adam_w_mode zero_optimization.overlap_comm
        zero_optimization.reduce_bucket_size
        """
    ),
    harmless=words(
        """
        steps_per_print dump_state wall_clock_breakdown memory_breakdown scheduler.* tensorboard*
        wandb* comet* csv_monitor* flops_profiler* comms_logger* nebula* checkpoint* timers*
        optimizer.params optimizer.params.lr optimizer.params.betas optimizer.params.eps
        optimizer.params.weight_decay optimizer.params.bias_correction optimizer.params.momentum
        optimizer.params.warmup* optimizer.params.total_num_steps optimizer.legacy_fusion
        zero_allow_untested_optimizer dataloader_drop_last prescale_gradients
        gradient_predivide_factor gradient_allreduce_op eigenvalue* datastates* monitor_config*
        fp16.loss_scale fp16.loss_scale_window fp16.hysteresis fp16.consecutive_hysteresis
        fp16.min_loss_scale fp16.initial_scale_power bf16.check_grad_overflow
        use_data_before_expert_parallelism zero_optimization.load_from_fp32_weights
        zero_optimization.elastic_checkpoint zero_optimization.legacy_stage1
        zero_optimization.ignore_unused_parameters zero_optimization.override_module_apply
        zero_optimization.pipeline_loading_checkpoint zero_optimization.log_trace_cache_warnings
        zero_optimization.enable_sanity_checks zero_optimization.round_robin_gradients
        zero_optimization.stage3_gather_16bit_weights_on_model_save
        zero_optimization.stage3_gather_fp16_weights_on_model_save
        zero_optimization.gather_16bit_weights_on_model_save
        zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory
        zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path
        zero_optimization.offload_optimizer.fast_init
        zero_optimization.offload_optimizer.buffer_count
        zero_optimization.offload_optimizer.buffer_size
        zero_optimization.offload_optimizer.pipeline_read
        zero_optimization.offload_optimizer.pipeline_write
        zero_optimization.offload_optimizer.pipeline
        zero_optimization.offload_optimizer.cpuadam_cores_perc
        zero_optimization.cpu_offload_use_pin_memory zero_optimization.leaf_module*
        zero_optimization.save_muon_momentum_buffer_in_memory zero_optimization.sub_group_size
        zero_optimization.offload_param.buffer_count zero_optimization.offload_param.buffer_size
        zero_optimization.offload_param.max_in_cpu activation_checkpointing.profile
        activation_checkpointing.synchronize_checkpoint_boundary aio* autotuning*
        """
    ),
    decisive={
        "zero_optimization.stage3_model_persistence_threshold": Decisive(off=("sys.maxsize",)),
        "zero_optimization.stage3_module_granularity_threshold": Decisive(),
        "zero_optimization.stage3_use_all_reduce_for_fetch_params": Decisive(changes=TIME),
        "zero_optimization.stage3_allgather_sequential": Decisive(changes=TIME),
        "zero_optimization.contiguous_gradients": Decisive(off=(True,)),
        "zero_optimization.reduce_scatter": Decisive(off=(True,)),
        "zero_optimization.allgather_partitions": Decisive(off=(True,)),
        "zero_optimization.use_multi_rank_bucket_allreduce": Decisive(off=(True,)),
        "zero_optimization.memory_efficient_linear": Decisive(off=(True,)),
        "zero_optimization.zenflow*": Decisive(),
        "zero_optimization.zero_hpz_partition_size": Decisive(off=(1,)),
        "zero_optimization.zero_quantized_*": Decisive(),
        "zero_optimization.zeropp_loco_param*": Decisive(),
        "zero_optimization.mics_shard_size": Decisive(off=(-1,)),
        "zero_optimization.mics_hierarchical_params_gather": Decisive(changes=TIME),
        "zero_optimization.offload_optimizer.ratio": Decisive(off=(1, 1.0)),
        "zero_optimization.offload_optimizer.super_offload": Decisive(),
        "zero_force_ds_cpu_optimizer": Decisive(changes=TIME, off=(True,)),
        "fp16.auto_cast": Decisive(),
        "fp16.fp16_master_weights_and_grads": Decisive(changes=MEMORY),
        "bf16.bf16_master_weights_and_grads": Decisive(changes=MEMORY),
        "bf16.bf16_optimizer_states": Decisive(changes=MEMORY),
        "bf16.immediate_grad_update": Decisive(off=(True, False)),
        "amp*": Decisive(settled_by="precision"),
        "torch_autocast*": Decisive(settled_by="precision"),
        "data_types*": Decisive(),
        "communication_data_type": Decisive(off=("auto",)),
        "seq_parallel_communication_data_type": Decisive(off=("fp32",)),
        "activation_checkpointing.partition_activations": Decisive(),
        "activation_checkpointing.cpu_checkpointing": Decisive(),
        "activation_checkpointing.contiguous_memory_optimization": Decisive(),
        "activation_checkpointing.number_checkpoints": Decisive(off=(None,)),
        "sparse_attention*": Decisive(),
        "sparse_gradients": Decisive(),
        "disable_allgather": Decisive(changes=TIME),
        "progressive_layer_drop*": Decisive(),
        "curriculum_learning*": Decisive(),
        "data_efficiency*": Decisive(),
        "compression_training*": Decisive(),
        "quantize_training*": Decisive(),
        "elasticity*": Decisive(),
        "hybrid_engine*": Decisive(),
        "compile*": Decisive(),
        "graph_harvesting": Decisive(changes=TIME),
        "pipeline*": Decisive(),
        "tensor_parallel*": Decisive(),
        "expert_parallel*": Decisive(),
        "sequence_parallel_size": Decisive(off=(1,)),
        "optimizer.params.freeze_step": Decisive(changes=TIME),
    },
    derived=_derived,
)


def nested(prefix: str) -> tuple[dict[str, Any], frozenset[str], frozenset[str], dict[str, Any]]:
    """DeepSpeed's lists inside another tool's file: read, beside, harmless and decisive fields.

    Args:
        prefix: of the fields there, such as `deepspeed.`.
    """

    def inside(rule: Any) -> Any:
        def read(value: Any, values: Values) -> Mapping[str, Any]:
            own = {
                key.removeprefix(prefix): one
                for key, one in values.items()
                if key.startswith(prefix)
            }
            return {**rule(value, own), "engine": "deepspeed"}

        return read

    return (
        {f"{prefix}{key}": inside(rule) for key, rule in DEEPSPEED.read.items()},
        frozenset(f"{prefix}{key}" for key in DEEPSPEED.beside),
        frozenset(f"{prefix}{key}" for key in DEEPSPEED.harmless),
        {f"{prefix}{key}": one for key, one in DEEPSPEED.decisive.items()},
    )
