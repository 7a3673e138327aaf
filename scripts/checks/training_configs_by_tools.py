"""What the tools' own parsers make of the public training configs of the tests.

    tests/data/training_configs/public/* --parsers of the tools--> by_tools.json

    python -m scripts.checks.training_configs_by_tools [NAME ...]

The tools need each other's packages in unlike versions, so that each is asked where it is installed
(torch for CPUs, `pip install --no-deps`); the entries of those that are not here stay as they are:

    axolotl 0.19 and trl, deepspeed, accelerate beside it; LLaMA-Factory 0.9.5 with transformers 5.6
    (newer ones lack `warmup_ratio`); torchtune 0.6.1 with torchao 0.13; torchtitan 0.2.2
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import types
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest import mock

DATA = Path(__file__).parents[2] / "tests/data/training_configs"
_STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "fsdp"}


def accelerate_of(file: Path) -> dict[str, Any]:
    """By `accelerate.commands.config.config_args` and the FSDP plugin."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.utils import FullyShardedDataParallelPlugin

    config = load_config_from_file(str(file))
    if str(config.distributed_type).endswith("DEEPSPEED"):
        scheme = _STAGES[config.deepspeed_config["zero_stage"]]
        return {"scheme": scheme, "precision": f"{config.mixed_precision}-mixed"}
    given = config.fsdp_config
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=given["fsdp_version"],
        reshard_after_forward=given["fsdp_reshard_after_forward"],
        activation_checkpointing=given["fsdp_activation_checkpointing"],
        mixed_precision_policy=config.mixed_precision,
    )
    policy = plugin.mixed_precision_policy
    return {
        "scheme": "fsdp" if plugin.reshard_after_forward else "zero2",
        "precision": f"{_short(policy.param_dtype)}-mixed",
        "activation_checkpointing": "full" if plugin.activation_checkpointing else "none",
    }


def _short(dtype: object) -> str:
    return {"torch.bfloat16": "bf16", "torch.float16": "fp16"}.get(str(dtype), str(dtype))


def deepspeed_of(file: Path) -> dict[str, Any]:
    """By `deepspeed.runtime.config.DeepSpeedConfig`."""
    from deepspeed.runtime.config import DeepSpeedConfig

    config = DeepSpeedConfig(json.loads(file.read_text()))
    half = "bf16" if config.bfloat16_config.enabled else "fp16"
    zero = config.zero_config
    return {
        "scheme": _STAGES[int(zero.stage)],
        "precision": f"{half}-mixed",
        "batch_size": config.train_micro_batch_size_per_gpu,
        "grad_accumulation": config.gradient_accumulation_steps,
        "clip_gradients": config.gradient_clipping > 0,
        "bucket_elements": zero.reduce_bucket_size * (2 if zero.overlap_comm else 1),
    }


def trl_of(file: Path) -> dict[str, Any]:
    """By `trl.TrlParser` with the arguments of `trl sft`."""
    import yaml
    from transformers import HfArgumentParser
    from trl.scripts.utils import ScriptArguments
    from trl.trainer.model_config import ModelConfig
    from trl.trainer.sft_config import SFTConfig

    values = {**yaml.safe_load(file.read_text()), "output_dir": "unused", "use_cpu": True}
    parser = HfArgumentParser((SFTConfig, ScriptArguments, ModelConfig))
    training, _, model = parser.parse_dict(values)
    half = "bf16" if training.bf16 else "fp16" if training.fp16 else ""
    return {
        "scheme": "",
        "precision": f"amp-{half}" if half and model.dtype in (None, "float32") else half,
        "batch_size": training.per_device_train_batch_size,
        "seq_len": training.max_length,
        "grad_accumulation": training.gradient_accumulation_steps,
        "activation_checkpointing": "full" if training.gradient_checkpointing else "none",
        "clip_gradients": training.max_grad_norm > 0,
        "optimizer": _OPTIMIZERS[str(getattr(training.optim, "value", training.optim))],
        "lora": None,
        # `chunked_nll` is another name of it, "without materializing the full logits"
        "fused_loss": training.loss_type in ("nll", "chunked_nll"),
    }


def torchtitan_of(file: Path) -> dict[str, Any]:
    """By `torchtitan.config.ConfigManager` of the last release that reads TOML."""
    from torchtitan.config import ConfigManager

    config = ConfigManager().parse_args(["--job.config_file", str(file)])
    parallel, training = config.parallelism, config.training
    shards = parallel.data_parallel_shard_degree != 1
    half = {"bfloat16": "bf16"}[training.mixed_precision_param]
    return {
        "scheme": "fsdp" if shards else "ddp",
        "precision": f"{half}-mixed" if shards else f"amp-{half}",
        "batch_size": training.local_batch_size,
        "seq_len": training.seq_len,
        "activation_checkpointing": config.activation_checkpoint.mode,
        "clip_gradients": training.max_norm > 0,
        "optimizer": config.optimizer.name.lower()
        + ("-fused" if config.optimizer.implementation == "fused" else ""),
        "lora": None,
    }


def axolotl_of(file: Path) -> dict[str, Any]:
    """By axolotl's schema, `resolve_dtype`, `prepare_optim_env` and its loader of models."""
    import axolotl.utils.config as configs
    import yaml
    from axolotl.loaders.model import ModelLoader
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.trainer import prepare_optim_env

    device = {"bf16": True, "fp8": False, "tf32": True, "n_gpu": 8, "compute_capability": "sm_80"}
    given = DictDefault(yaml.safe_load(file.read_text()))
    config = configs.validate_config(given, device, {"torch_version": version("torch")})
    with mock.patch.object(configs, "is_torch_bf16_gpu_available", lambda: True):
        configs.resolve_dtype(config)
    with mock.patch.dict(os.environ):
        prepare_optim_env(config)
        autocasts = os.environ["ACCELERATE_MIXED_PRECISION"] != "no"
        shards = os.environ.get("ACCELERATE_USE_FSDP") == "true"
    loader = ModelLoader.__new__(ModelLoader)
    loader.cfg, loader.model_config, loader.model_kwargs = config, types.SimpleNamespace(), {}
    loader._set_quantization_config()
    half = _short(config.torch_dtype)
    whole = not config.adapter and not shards
    return {
        "scheme": "fsdp" if shards else "",
        "precision": half if whole or not autocasts else f"amp-{half}",
        "batch_size": config.micro_batch_size,
        "seq_len": config.sequence_len,
        "grad_accumulation": config.gradient_accumulation_steps,
        "activation_checkpointing": "full" if config.gradient_checkpointing else "none",
        "optimizer": _OPTIMIZERS[str(config.optimizer)],
        "lora": _adapters(config.lora_r, config.lora_alpha, "all-linear", rest=half)
        if config.adapter and config.lora_target_linear
        else None,
        "weights": _weights(loader.model_kwargs.get("quantization_config")),
    }


def _adapters(rank: int, alpha: float, targets: str, **types_: str) -> str:
    """Adapters as `--lora` takes them."""
    parts = {"r": rank, "alpha": f"{alpha:g}", "targets": targets, **types_}
    return ",".join(f"{name}={value}" for name, value in parts.items())


def _weights(quantized: Any) -> str | None:
    """`--weights` of a configuration of bitsandbytes."""
    if quantized is None:
        return None
    if not quantized.load_in_4bit:
        return "int8"
    double = "-double" if quantized.bnb_4bit_use_double_quant else ""
    return f"{quantized.bnb_4bit_quant_type}{double}"


def torchtune_of(file: Path) -> dict[str, Any]:
    """By its parser of recipes' arguments; the optimizer and the model's layers are made."""
    import torch
    from omegaconf import OmegaConf
    from torchtune import config as configs
    from torchtune import training
    from torchtune.config._parse import TuneRecipeArgumentParser
    from torchtune.modules.peft import get_lora_module_names

    parsed, _ = TuneRecipeArgumentParser().parse_known_args(["--config", str(file)])
    config = OmegaConf.create(vars(parsed))
    configs.validate(OmegaConf.create({"optimizer": config.optimizer}))
    optimizer = configs.instantiate(config.optimizer, [torch.nn.Parameter(torch.zeros(2))])
    with mock.patch("torchtune.training.precision.verify_bf16_support", lambda: True):
        half = _short(training.get_dtype(config.dtype, torch.device("cpu")))
    stated = {
        "precision": half,
        "batch_size": config.batch_size,
        "grad_accumulation": config.gradient_accumulation_steps,
        "activation_checkpointing": "full" if config.enable_activation_checkpointing else "none",
        "clip_gradients": config.clip_grad_norm is not None,
        "optimizer": _OPTIMIZERS[type(optimizer).__name__]
        + ("-fused" if optimizer.defaults.get("fused") else ""),
        "lora": None,
    }
    model = config.model
    if "lora_rank" in model:
        names = get_lora_module_names(
            list(model.lora_attn_modules), model.apply_lora_to_mlp, model.apply_lora_to_output
        )
        targets = "+".join(_TORCHTUNE_NAMES.get(name, name) for name in names)
        stated["lora"] = _adapters(model.lora_rank, model.lora_alpha, targets, dtype=half)
        stated["weights"] = _torchtune_weights(model)
    return stated


def _torchtune_weights(model: Any) -> str | None:
    """`--weights` of the smallest layer that the builder of a model makes."""
    import torch
    from torchtune.config._utils import _get_component_from_path
    from torchtune.modules.peft import LoRALinear

    builder = _get_component_from_path(model._component_)
    if not getattr(builder, "keywords", {}).get("quantize_base"):
        return None
    layer = LoRALinear(256, 256, rank=4, alpha=8, quantize_base=True)
    double = layer.weight.quantized_scalers.dtype == torch.int8
    return "nf4-double" if double else "nf4"


def llama_factory_of(file: Path) -> dict[str, Any]:
    """By `llamafactory.hparams.get_train_args`; one process in place of a launcher's several."""
    import yaml

    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": "29517", "FORCE_TORCHRUN": "1"}  # fmt: skip
    from llamafactory.hparams import get_train_args

    values = {**yaml.safe_load(file.read_text()), "output_dir": "unused", "use_cpu": True}
    folder = Path.cwd()
    os.chdir(file.parent)  # where the DeepSpeed config is looked for
    try:
        model, data, training, tuning, _ = get_train_args(values)
    finally:
        os.chdir(folder)
    half = _short(model.compute_dtype)
    stage = _zero_stage(training)
    is_lora = tuning.finetuning_type == "lora"
    targets = "all-linear" if tuning.lora_target == ["all"] else "+".join(tuning.lora_target)
    return {
        "scheme": "" if stage is None else _STAGES[stage],
        "precision": f"{half}-mixed" if stage is not None else f"amp-{half}",
        "batch_size": training.per_device_train_batch_size,
        "seq_len": data.cutoff_len,
        "grad_accumulation": training.gradient_accumulation_steps,
        "activation_checkpointing": "none" if model.disable_gradient_checkpointing else "full",
        "clip_gradients": training.max_grad_norm > 0,
        "optimizer": _OPTIMIZERS[str(getattr(training.optim, "value", training.optim))],
        "lora": _adapters(tuning.lora_rank, tuning.lora_alpha, targets, rest=half)
        if is_lora
        else None,
    }


def _zero_stage(training: Any) -> int | None:
    """ZeRO's stage of a trainer's arguments; None without DeepSpeed."""
    engine = getattr(training, "hf_deepspeed_config", None)
    return None if engine is None else int(engine.get_value("zero_optimization.stage"))


_OPTIMIZERS = {
    "adamw_torch_fused": "adamw-fused", "adamw_torch": "adamw", "paged_adamw_8bit": "adam8bit",
    "AdamW": "adamw",
}  # fmt: skip
_TORCHTUNE_NAMES = {"output_proj": "o_proj", "w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}

# Parser of each config, and the packages whose versions the record states.
PARSERS: dict[str, tuple[Callable[[Path], dict[str, Any]], tuple[str, ...]]] = {
    "accelerate_zero3.yaml": (accelerate_of, ("accelerate",)),
    "accelerate_fsdp2.yaml": (accelerate_of, ("accelerate",)),
    "deepspeed_zero2.json": (deepspeed_of, ("deepspeed",)),
    "trl_sft.yaml": (trl_of, ("trl", "transformers")),
    "axolotl_fft.yaml": (axolotl_of, ("axolotl",)),
    "axolotl_qlora_fsdp.yaml": (axolotl_of, ("axolotl",)),
    "torchtune_full.yaml": (torchtune_of, ("torchtune", "torchao")),
    "torchtune_qlora.yaml": (torchtune_of, ("torchtune", "torchao")),
    "torchtitan_8b.toml": (torchtitan_of, ("torchtitan",)),
    "llama_factory_full.yaml": (llama_factory_of, ("llamafactory", "transformers")),
    "llama_factory_lora.yaml": (llama_factory_of, ("llamafactory", "transformers")),
}


def main() -> None:
    """Write what the tools that are here make of the configs; the other entries stay."""
    path = DATA / "by_tools.json"
    record: dict[str, Any] = json.loads(path.read_text())
    for name in sys.argv[1:] or PARSERS:
        parse, packages = PARSERS[name]
        try:
            stated = parse(DATA / "public" / name)
            versions = {package: version(package) for package in packages}
        except (ImportError, PackageNotFoundError) as error:
            print(f"{name}: as it was, {error}")
            continue
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        record[name] = {"date": today, "versions": versions, "states": stated}
        print(name, json.dumps(stated))
    path.write_text(json.dumps({name: record[name] for name in PARSERS if name in record},
                               indent=1) + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
