"""Fused losses and kernels, and the types in which tools keep weights, masters and adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driple.graph.torch.lora import LoraAdapters
from driple.jobs.options import JobOptions
from driple.jobs.training_config import TrainingConfig, read_training_config

LIGER = ["axolotl.integrations.liger.LigerPlugin"]
CUT = ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]
AXOLOTL = {"base_model": "a", "micro_batch_size": 1, "bf16": "auto"}
FACTORY = {"stage": "sft", "finetuning_type": "full", "cutoff_len": 32, "bf16": True}
TRAINER = {"per_device_train_batch_size": 1, "optim": "adamw_torch", "bf16": True}
TRL = {"per_device_train_batch_size": 1, "max_length": 32, "dataset_name": "a"}
TUNE = {"batch_size": 1, "tokenizer": {"max_seq_len": 32}, "dtype": "bf16"}
GATES = {"liger_rms_norm": True, "liger_glu_activation": True}


def read(folder: Path, values: dict[str, Any]) -> TrainingConfig:
    file = folder / "a.json"
    file.write_text(json.dumps(values))
    return read_training_config(file)


@pytest.mark.parametrize(
    ("values", "loss", "kernels"),
    [
        ({**AXOLOTL, "plugins": LIGER, "liger_fused_linear_cross_entropy": True}, True, None),
        ({**AXOLOTL, "plugins": LIGER, **GATES}, None, True),
        ({**AXOLOTL, **GATES, "liger_fused_linear_cross_entropy": True}, None, None),
        ({**AXOLOTL, "plugins": CUT}, True, None),
        ({**AXOLOTL, "plugins": CUT, "cut_cross_entropy": False}, None, None),
        ({**AXOLOTL, "cut_cross_entropy": True}, None, None),
        ({**FACTORY, "enable_liger_kernel": True}, True, True),
        ({**FACTORY, "enable_liger_kernel": False}, None, None),
        ({**TRAINER, "use_liger_kernel": True}, True, True),
        ({**TRAINER, "use_liger_kernel": True,
          "liger_kernel_config": {"fused_linear_cross_entropy": False}}, False, True),
        ({**TRAINER, "use_liger_kernel": True,
          "liger_kernel_config": {"rms_norm": False, "swiglu": False}}, True, False),
        (TRAINER, None, None),
        (TRL, True, None),
        ({**TRL, "loss_type": "nll"}, True, None),
        ({**TRL, "use_liger_kernel": True}, True, True),
    ],
)  # fmt: skip
def test_a_fused_loss_and_kernels_are_those_of_the_tool(
    tmp_path: Path, values: dict[str, Any], loss: bool | None, kernels: bool | None
) -> None:
    """Axolotl reads a plugin's fields where the plugin is named; TRL's loss makes no logits."""
    config = read(tmp_path, values)
    assert (config.fused_loss, config.fused_kernels) == (loss, kernels)
    assert config.undecided == ()
    options = JobOptions(config=config).with_config()
    assert (options.fused_loss, options.fused_kernels) == (loss is True, kernels is True)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({**AXOLOTL, "plugins": LIGER, "liger_rms_norm": True}, "liger_rms_norm"),
        ({**AXOLOTL, "plugins": LIGER, "liger_cross_entropy": True}, "liger_cross_entropy"),
        ({**AXOLOTL, "plugins": ["axolotl.integrations.kd.KDPlugin"]}, "plugins"),
        ({**TRAINER, "use_liger_kernel": True, "liger_kernel_config": {"swiglu": False}},
         "use_liger_kernel"),
        ({**TRAINER, "use_liger_kernel": True, "liger_kernel_config": {"cross_entropy": True}},
         "use_liger_kernel"),
        ({**TRL, "loss_type": "dft"}, "loss_type"),
        ({**TUNE, "loss": {"_component_": "torchtune.modules.loss.LinearCrossEntropyLoss"}},
         "loss._component_"),
    ],
)  # fmt: skip
def test_other_losses_and_kernels_stay_open(
    tmp_path: Path, values: dict[str, Any], field: str
) -> None:
    assert [one.field for one in read(tmp_path, values).undecided] == [field]


ADAPTER = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_linear": True}
QLORA = {**ADAPTER, "adapter": "qlora", "load_in_4bit": True}
PEFT = {"use_peft": True, "lora_r": 8, "lora_alpha": 16, "lora_target_modules": "all-linear"}
FOUR, FSDP = {"load_in_4bit": True}, {"fsdp": "full_shard"}
LORA = {"finetuning_type": "lora", "lora_rank": 8}
TUNED = {"model": {"_component_": "torchtune.models.llama3.qlora_llama3_8b", "lora_rank": 8,
                   "lora_alpha": 16, "lora_attn_modules": ["q_proj"]}}  # fmt: skip
ZERO = {"deepspeed": {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}}}


@pytest.mark.parametrize(
    ("values", "precision", "alone"),
    [
        (AXOLOTL, "bf16", None),  # the model is loaded so, and autocast leaves it
        ({**AXOLOTL, "bf16": True}, "bf16", None),
        ({**AXOLOTL, "bf16": "full"}, "bf16", None),
        ({**AXOLOTL, **FSDP}, "bf16-mixed", "bf16"),
        ({**AXOLOTL, **ZERO}, "bf16-mixed", None),
        ({**AXOLOTL, "bf16": "full", **FSDP}, "bf16", None),  # no mixed precision
        ({**AXOLOTL, "bf16": False, "bfloat16": True, **FSDP}, "bf16-mixed", "bf16"),
        ({**AXOLOTL, **ADAPTER}, "amp-bf16", None),
        (FACTORY, "amp-bf16", None),  # trained parameters are cast to fp32
        ({**FACTORY, "pure_bf16": True}, "bf16", None),
        ({**FACTORY, "bf16": False, "pure_bf16": True}, "bf16", None),
        ({**FACTORY, **FSDP}, "bf16-mixed", "amp-bf16"),
        (TRL, "amp-bf16", None),  # loaded in fp32
        ({**TRL, "dtype": "bfloat16"}, "bf16", None),
        ({**TRL, "bf16": False}, "fp32", None),
        (TUNE, "bf16", None),
    ],
)
def test_precision_is_that_of_the_tool(
    tmp_path: Path, values: dict[str, Any], precision: str, alone: str | None
) -> None:
    config = read(tmp_path, values)
    assert (config.precision, config.precision_alone) == (precision, alone)


@pytest.mark.parametrize(
    ("values", "dtype", "rest", "weights"),
    [
        ({**AXOLOTL, **ADAPTER}, "fp32", "bf16", None),
        ({**AXOLOTL, **QLORA}, "fp32", "bf16", "nf4-double"),
        ({**AXOLOTL, **ADAPTER, "peft_autocast_adapter_dtype": False}, "bf16", "bf16", None),
        ({**AXOLOTL, "bf16": False, **ADAPTER}, "fp32", "fp32", None),
        ({**AXOLOTL, **QLORA, **ZERO}, "bf16", None, "nf4-double"),
        ({**FACTORY, **LORA}, "fp32", "bf16", None),
        ({**FACTORY, **LORA, "quantization_bit": 4}, "fp32", "bf16", "nf4-double"),
        ({**FACTORY, **LORA, "quantization_bit": 4, "double_quantization": False}, "fp32", "bf16",
         "nf4"),
        ({**TRL, **PEFT}, "fp32", "fp32", None),
        ({**TRL, **PEFT, "dtype": "bfloat16"}, "fp32", "bf16", None),
        ({**TRL, **PEFT, **FOUR}, "bf16", "fp32", "nf4"),
        ({**TRL, **PEFT, **FOUR, "use_bnb_nested_quant": True}, "bf16", "fp32", "nf4-double"),
        ({**TUNE, **TUNED}, "bf16", None, "nf4-double"),
        ({**TUNE, **TUNED, "dtype": "fp32"}, "fp32", None, "nf4-double"),
    ],
)  # fmt: skip
def test_adapters_and_frozen_parameters_have_the_types_of_the_tool(
    tmp_path: Path, values: dict[str, Any], dtype: str, rest: str | None, weights: str | None
) -> None:
    config = read(tmp_path, values)
    assert config.lora is not None
    assert (config.lora.dtype, config.lora.rest, config.weights) == (dtype, rest, weights)
    assert isinstance(config.lora, LoraAdapters)
