"""What the tools' own parsers make of the public training configs of the tests.

    tests/data/training_configs/public/* --parsers of the tools--> by_tools.json

    PYTHONPATH=FOLDER python -m scripts.checks.training_configs_by_tools [TORCHTITAN]

FOLDER has accelerate, deepspeed and trl beside this environment's torch and transformers;
TORCHTITAN is a git directory of torchtitan, whose dataclasses are read at v0.2.2. A parser that
cannot be imported is left out of the record.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tomllib
import types
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
    half = "bf16" if config.bfloat16_enabled else "fp16"
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
        "optimizer": {"adamw_torch_fused": "adamw-fused", "adamw_torch": "adamw"}[
            str(getattr(training.optim, "value", training.optim))
        ],
    }


def torchtitan_of(file: Path) -> dict[str, Any]:
    """By the dataclasses of `torchtitan.config.job_config`, whose defaults the file changes."""
    checkout = sys.argv[1]
    asked = ["git", "--git-dir", checkout, "show", "v0.2.2:torchtitan/config/job_config.py"]
    text = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    logging_ = types.ModuleType("torchtitan.tools.logging")
    logging_.logger = None  # type: ignore[attr-defined]  # of its module, which needs more
    for name in ("torchtitan", "torchtitan.tools"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[logging_.__name__] = logging_
    module = types.ModuleType("job_config")
    sys.modules["job_config"] = module
    exec(compile(text, "job_config.py", "exec"), module.__dict__)  # noqa: S102  # a checkout
    config = module.JobConfig()
    for section, values in tomllib.loads(file.read_text()).items():
        for name, value in values.items():
            if not isinstance(value, dict):
                setattr(getattr(config, section), name, value)
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
    }


PARSERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "accelerate_zero3.yaml": accelerate_of,
    "accelerate_fsdp2.yaml": accelerate_of,
    "deepspeed_zero2.json": deepspeed_of,
    "trl_sft.yaml": trl_of,
    "torchtitan_8b.toml": torchtitan_of,
}
_PACKAGES = ("accelerate", "deepspeed", "transformers", "trl")


def main() -> None:
    """Write the record."""
    configs = {}
    for name, parse in PARSERS.items():
        try:
            configs[name] = parse(DATA / "public" / name)
        except ImportError as error:
            print(f"{name}: left out, {error}")
    record = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "versions": {package: version(package) for package in _PACKAGES},
        "configs": configs,
    }
    (DATA / "by_tools.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(configs, indent=1))


if __name__ == "__main__":
    main()
