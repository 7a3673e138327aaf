"""Lists the fields of each tool's training config, from a checkout of the tool.

    checkout --AST of its config classes--> tests/data/training_configs/fields/TOOL.json

    python -m scripts.checks.training_config_fields FOLDER

FOLDER holds git directories `owner+name/repo`. No tool is imported or executed.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

OUT = Path(__file__).parents[2] / "tests/data/training_configs/fields"


@dataclass(frozen=True)
class Source:
    """Where a tool states its fields.

    Attributes:
        repository: owner/name on GitHub.
        classes: file -> class -> prefix of its fields.
        names: further fields, which no class has.
        commit: branch, tag or commit that is read.
        inner: class of a field -> prefix; such a field stands for its own fields.
    """

    repository: str
    classes: Mapping[str, Mapping[str, str]]
    names: tuple[str, ...] = ()
    commit: str = "HEAD"
    inner: Mapping[str, str] = field(default_factory=dict)


_AXOLOTL = "src/axolotl/utils/schemas"
_ZERO = "zero_optimization."
SOURCES = {
    "deepspeed": Source(
        "deepspeedai/DeepSpeed",
        {
            "deepspeed/runtime/zero/config.py": {"DeepSpeedZeroConfig": _ZERO},
            "deepspeed/runtime/zero/offload_config.py": {
                "DeepSpeedZeroOffloadParamConfig": f"{_ZERO}offload_param.",
                "DeepSpeedZeroOffloadOptimizerConfig": f"{_ZERO}offload_optimizer.",
            },
            "deepspeed/runtime/precision_config.py": {
                "DeepSpeedBF16Config": "bf16.",
                "DeepSpeedFP16Config": "fp16.",
            },
        },
    ),
    "accelerate": Source(
        "huggingface/accelerate",
        {
            "src/accelerate/commands/config/config_args.py": {
                "BaseConfig": "",
                "ClusterConfig": "",
            }
        },
    ),
    "trl": Source(
        "huggingface/trl",
        {
            "trl/trainer/base_config.py": {"_BaseConfig": ""},
            "trl/trainer/sft_config.py": {"SFTConfig": ""},
            "trl/trainer/dpo_config.py": {"DPOConfig": ""},
            "trl/trainer/kto_config.py": {"KTOConfig": ""},
            "trl/trainer/reward_config.py": {"RewardConfig": ""},
            "trl/trainer/grpo_config.py": {"GRPOConfig": ""},
            "trl/trainer/rloo_config.py": {"RLOOConfig": ""},
            "trl/trainer/model_config.py": {"ModelConfig": ""},
            "trl/scripts/utils.py": {"ScriptArguments": "", "DatasetMixtureConfig": ""},
        },
    ),
    "llama_factory": Source(
        "hiyouga/LLaMA-Factory",
        {
            f"src/llamafactory/hparams/{name}_args.py": {"*": ""}
            for name in ("data", "finetuning", "generating", "model", "training")
        },
    ),
    "axolotl": Source(
        "axolotl-ai-cloud/axolotl",
        {
            f"{_AXOLOTL}/config.py": {"AxolotlInputConfig": ""},
            f"{_AXOLOTL}/deprecated.py": {"*": ""},
            f"{_AXOLOTL}/fsdp.py": {"FSDPConfig": "fsdp_config."},
            f"{_AXOLOTL}/integrations.py": {"*": ""},
            f"{_AXOLOTL}/model.py": {"ModelInputConfig": "", "ModelOutputConfig": ""},
            f"{_AXOLOTL}/multimodal.py": {"MultiModalConfig": ""},
            f"{_AXOLOTL}/peft.py": {"LoraConfig": "", "ReLoRAConfig": ""},
            f"{_AXOLOTL}/training.py": {"HyperparametersConfig": "", "JaggedLRConfig": ""},
            "src/axolotl/integrations/liger/args.py": {"LigerArgs": ""},
            "src/axolotl/integrations/cut_cross_entropy/args.py": {"CutCrossEntropyArgs": ""},
            "src/axolotl/integrations/spectrum/args.py": {"SpectrumArgs": ""},
        },
    ),
    "torchtitan": Source(
        "pytorch/torchtitan",
        {"torchtitan/config/job_config.py": {"JobConfig": ""}},
        commit="v0.2.2",
    ),
    "torchtune": Source("pytorch/torchtune", {}),
}
_DEEPSPEED_ROOT = "deepspeed/runtime/constants.py"
_ROOT_NAMES = (
    "TRAIN_BATCH_SIZE", "TRAIN_MICRO_BATCH_SIZE_PER_GPU", "GRADIENT_ACCUMULATION_STEPS",
    "GRADIENT_CLIPPING", "OPTIMIZER", "SCHEDULER", "BFLOAT16", "FP16", "AMP", "TORCH_AUTOCAST",
    "COMMUNICATION_DATA_TYPE", "SEQ_PARALLEL_COMMUNICATION_DATA_TYPE", "PRESCALE_GRADIENTS",
    "GRADIENT_PREDIVIDE_FACTOR", "GRADIENT_ALLREDUCE_OP", "DISABLE_ALLGATHER", "SPARSE_ATTENTION",
    "SPARSE_GRADIENTS", "STEPS_PER_PRINT", "DUMP_STATE", "WALL_CLOCK_BREAKDOWN",
    "ZERO_ALLOW_UNTESTED_OPTIMIZER", "ZERO_FORCE_DS_CPU_OPTIMIZER", "MEMORY_BREAKDOWN",
    "EIGENVALUE", "PROGRESSIVE_LAYER_DROP", "CHECKPOINT", "DATA_TYPES", "DATALOADER_DROP_LAST",
    "GRAPH_HARVESTING", "USE_DATA_BEFORE_EXPERT_PARALLEL", "PIPELINE", "TENSOR_PARALLEL",
)  # fmt: skip


def main() -> None:
    """Write the list of each tool."""
    folder = Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    for tool, source in SOURCES.items():
        checkout = Checkout(folder / source.repository.replace("/", "+") / "repo", source.commit)
        names = set(source.names)
        for file, classes in source.classes.items():
            names |= set(_fields(ast.parse(checkout.text(file)), classes))
        names |= EXTRA.get(tool, lambda _: set())(checkout)
        value = {
            "tool": tool,
            "repository": source.repository,
            "commit": checkout.commit,
            "date": checkout.date,
            "fields": sorted(names),
        }
        (OUT / f"{tool}.json").write_text(json.dumps(value, indent=1) + "\n")
        print(f"{tool}: {len(names)} fields")


class Checkout:
    """A git directory at a commit."""

    def __init__(self, folder: Path, commit: str) -> None:
        self._folder = folder
        self.commit = commit  # for `_git`
        self.commit = self._git("rev-parse", f"{commit}^{{commit}}").strip()
        self.date = self._git("show", "-s", "--format=%cs", self.commit).strip()

    def text(self, file: str) -> str:
        """The text of a file."""
        return self._git("show", f"{self.commit}:{file}")

    def files(self, folder: str) -> list[str]:
        """Paths of the files in a folder."""
        return self._git("ls-tree", "-r", "--name-only", self.commit, folder).split()

    def _git(self, *words: str) -> str:
        asked = ["git", "--git-dir", str(self._folder), *words]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def _fields(tree: ast.Module, classes: Mapping[str, str]) -> Iterator[str]:
    """Annotated fields of these classes (`*`: of all); a field with a class here has its own."""
    here = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    asked = dict.fromkeys(here, classes["*"]) if "*" in classes else classes
    for name, prefix in asked.items():
        yield from _of_class(here[name], here, prefix)


def _of_class(node: ast.ClassDef, here: Mapping[str, ast.ClassDef], prefix: str) -> Iterator[str]:
    for line in node.body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        name = _alias(line) or line.target.id
        inner = here.get(ast.unparse(line.annotation))
        if name.startswith("_"):
            continue
        if inner is None or (not prefix and node.name not in ("JobConfig",)):
            yield prefix + name
        if inner is not None and (prefix or node.name == "JobConfig"):
            yield from _of_class(inner, here, f"{prefix}{name}.")


def _alias(line: ast.AnnAssign) -> str:
    """Name of a pydantic field in the file, where that is another; empty if it is not."""
    if isinstance(line.value, ast.Call):
        for keyword in line.value.keywords:
            if keyword.arg == "alias" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return ""


def _deepspeed(checkout: Checkout) -> set[str]:
    """Fields of the root, which are constants."""
    tree = ast.parse(checkout.text(_DEEPSPEED_ROOT))
    values = {
        line.targets[0].id: str(line.value.value)
        for line in tree.body
        if isinstance(line, ast.Assign)
        and isinstance(line.targets[0], ast.Name)
        and isinstance(line.value, ast.Constant)
    }
    names = {values.get(name, name.lower()) for name in _ROOT_NAMES}
    names -= {"optimizer", "scheduler", "bf16", "fp16"}
    return names | {
        "optimizer.type", "optimizer.params", "optimizer.legacy_fusion", "scheduler.type",
        "scheduler.params", "activation_checkpointing.partition_activations",
        "activation_checkpointing.contiguous_memory_optimization",
        "activation_checkpointing.cpu_checkpointing", "activation_checkpointing.number_checkpoints",
        "activation_checkpointing.synchronize_checkpoint_boundary",
        "activation_checkpointing.profile", "aio", "flops_profiler", "tensorboard", "wandb",
        "csv_monitor", "comet", "elasticity", "autotuning", "curriculum_learning",
        "data_efficiency", "compression_training", "hybrid_engine", "comms_logger", "nebula",
        "compile", "expert_parallel", "timers", "sequence_parallel_size",
    }  # fmt: skip


def _accelerate(checkout: Checkout) -> set[str]:
    """Fields of the inner mappings: those that the questions of `accelerate config` set, and the
    arguments of `accelerate launch` that they are passed on as.
    """
    names = set()
    asks = ast.parse(checkout.text("src/accelerate/commands/config/cluster.py"))
    for node in ast.walk(asks):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            inner, key = node.value.id, node.slice
            if inner.endswith("_config") and isinstance(key, ast.Constant):
                names.add(f"{inner}.{key.value!s}")
    launch = ast.parse(checkout.text("src/accelerate/commands/launch.py"))
    flags = [
        str(one.value)
        for one in ast.walk(launch)
        if isinstance(one, ast.Constant) and str(one.value).startswith("--")
    ]
    for inner in ("fsdp", "deepspeed", "megatron_lm", "parallelism_config", "dynamo"):
        for flag in flags:
            if flag.startswith(f"--{inner}_"):
                prefix = inner if inner.endswith("_config") else f"{inner}_config"
                names.add(f"{prefix}.{flag.removeprefix('--')}")
    return names


def _torchtune(checkout: Checkout) -> set[str]:
    """Keys of the shipped configs, and those that recipes look up."""
    names: set[str] = set()
    for file in checkout.files("recipes/configs"):
        if file.endswith(".yaml"):
            names |= set(_flat(yaml.safe_load(checkout.text(file)) or {}))
    for file in checkout.files("recipes"):
        if "finetune" in file and file.endswith(".py"):
            for node in ast.walk(ast.parse(checkout.text(file))):
                if (
                    isinstance(node, ast.Call)
                    and ast.unparse(node.func) in ("cfg.get", "self._cfg.get")
                    and isinstance(node.args[0], ast.Constant)
                ):
                    names.add(str(node.args[0].value))
    return names - {"dataset_val", "lr_scheduler", "profiler", "tensor_parallel_plan", "quantizer"}


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


EXTRA = {"deepspeed": _deepspeed, "accelerate": _accelerate, "torchtune": _torchtune}

if __name__ == "__main__":
    main()
