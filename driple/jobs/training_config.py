"""Files of training arguments: what they say of batch, precision, optimizer and sharding.

    Accelerate, DeepSpeed, TRL, axolotl, torchtune (YAML or JSON), torchtitan (TOML)
    -> dotted keys -> TrainingConfig, and the keys that were not understood

A file is data: nothing that it names is imported or opened.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.files import wrap_os_error
from driple.plainyaml import MAX_YAML_BYTES, read_plain_yaml
from driple.remarks import Remark, remark
from driple.storedfiles import read_bytes

__all__ = ["TrainingConfig", "read_training_config"]

_MOST_LISTED = 12
_LONGEST_KEY = 60
# Of torchtitan, new and old: devices that share the parameters out, as with FSDP.
_SHARD_DEGREES = (
    "parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """What a file of training arguments says of a job; None where it says nothing.

    Attributes:
        file: its name; empty without a file.
        batch_size: samples per device in a forward pass.
        seq_len: tokens of a sample.
        precision: as `JobOptions.precision`.
        optimizer: as `JobOptions.optimizer`.
        grad_accumulation: forward and backward passes per update.
        activation_checkpointing: as `JobOptions.activation_checkpointing`.
        compiled: whether the model is compiled.
        sharding: scheme that it trains with: `ddp`, `fsdp`, `zero1` or `zero2`; empty if none.
        used: its keys that were understood.
        unused: its keys that were not.
        defaults: what its program does where the file says nothing.
    """

    file: str = ""
    batch_size: int | None = None
    seq_len: int | None = None
    precision: str | None = None
    optimizer: str | None = None
    grad_accumulation: int | None = None
    activation_checkpointing: str | None = None
    compiled: bool | None = None
    sharding: str = ""
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    defaults: tuple[Remark, ...] = ()

    @property
    def assumptions(self) -> tuple[Remark, ...]:
        """What it does not settle."""
        found = list(self.defaults)
        if self.sharding:
            found.append(remark("scheme_of_config", file=self.file, scheme=self.sharding))
        if self.unused:
            shown = tuple(key[:_LONGEST_KEY] for key in self.unused[:_MOST_LISTED])
            found.append(
                remark("fields_not_used", file=self.file, fields=shown, num_fields=len(self.unused))
            )
        return tuple(found)


class _RefusedError(Exception):
    """A value of a field cannot be; the message says what is needed."""


def read_training_config(file: Path) -> TrainingConfig:
    """Read a file of training arguments.

    Args:
        file: YAML or JSON of Accelerate, DeepSpeed, TRL, axolotl or torchtune, or TOML of
            torchtitan.

    Raises:
        ConfigError: it cannot be read, has none of the known fields, or one with a wrong value.
        MissingExtraError: YAML needs PyYAML.
    """
    with wrap_os_error(ConfigError, f"read {file}"):
        data = read_bytes(file, MAX_YAML_BYTES)
    values = dict(_flat(_parsed(data, file)))
    said: dict[str, Any] = {}
    used: list[str] = []
    for key, value in values.items():
        rule = _RULES.get(key)
        if rule is None or value is None:
            continue
        try:
            found = rule(value, values)
        except _RefusedError as refused:
            raise ConfigError(
                f"{file}: field {key} must be {refused}, got {str(value)[:40]!r}"
            ) from refused
        used.append(key)
        for name, one in found.items():
            if one is not None and said.setdefault(name, one) != one:
                raise ConfigError(
                    f"{file}: {key} contradicts another field ({name} is {said[name]} and {one}); "
                    "keep one"
                )
    if not used:
        raise ConfigError(
            f"{file} has no field of a training config that Driple knows, such as "
            "per_device_train_batch_size, micro_batch_size or mixed_precision; give a file of "
            "Accelerate, DeepSpeed, TRL, axolotl, torchtune or torchtitan"
        )
    unused = [key for key in values if key not in used and not _is_silent(key)]
    defaults = []
    mixed = "training.mixed_precision_param"
    shards = any(values.get(key) not in (None, 0, 1) for key in _SHARD_DEGREES)
    if "training.seq_len" in values and shards and mixed not in values:
        said.setdefault("precision", "amp-bf16")
        defaults.append(
            remark(
                "precision_of_program",
                file=file.name,
                field=mixed,
                precision="bfloat16",
                program="torchtitan",
            )
        )
    return TrainingConfig(
        file=file.name,
        used=tuple(used),
        unused=tuple(unused),
        defaults=tuple(defaults),
        **said,
    )


def _parsed(data: bytes, file: Path) -> Mapping[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no text, so no training config") from error
    if len(data) > MAX_YAML_BYTES:
        raise ConfigError(f"{file} has over {MAX_YAML_BYTES} bytes; keep only what you need")
    if file.suffix == ".toml":
        try:
            found: Any = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigError(f"{file} is no TOML: {' '.join(str(error).split())[:200]}") from error
    else:
        found = read_plain_yaml(text, str(file))
    if not text.strip():
        raise ConfigError(f"{file} is empty; give a file of training arguments")
    if not isinstance(found, Mapping):
        raise ConfigError(f"{file} holds {type(found).__name__}, and fields were expected")
    return found


def _flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every field; lists are values."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


_Values = Mapping[str, Any]
_Rule = Callable[[Any, _Values], Mapping[str, Any]]


def _whole(name: str) -> _Rule:
    def read(value: Any, _: _Values) -> Mapping[str, Any]:
        if value == "auto":
            return {}
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
            raise _RefusedError("a whole number of 1 or more")
        return {name: value}

    return read


def _is_on(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise _RefusedError("true or false")
    return words[value.lower()]


def _autocast(precision: str) -> _Rule:
    """A switch such as `bf16: true`, which turns autocast on."""

    def read(value: Any, values: _Values) -> Mapping[str, Any]:
        if value in ("auto", "full"):  # axolotl: what the device has; without autocast
            return {"precision": precision if value == "auto" else precision[4:]}
        return {"precision": precision} if _is_on(value) else {}

    return read


def _enabled(precision: str) -> _Rule:
    """`bf16.enabled` of DeepSpeed; `auto` leaves it to the trainer's own field."""
    switch = _autocast(precision)

    def read(value: Any, values: _Values) -> Mapping[str, Any]:
        return {} if value == "auto" else switch(value, values)

    return read


def _tf32(value: Any, values: _Values) -> Mapping[str, Any]:
    halves = (values.get("bf16"), values.get("fp16"))
    if not _is_on(value) or any(half not in (None, False, "false", "no") for half in halves):
        return {}
    return {"precision": "tf32"}


_MIXED = {
    "no": None, "fp32": None, "float32": None, "bf16": "amp-bf16", "bfloat16": "amp-bf16",
    "fp16": "amp-fp16", "float16": "amp-fp16",
}  # fmt: skip
_WHOLE_MODEL = {
    "fp32": "fp32", "float32": "fp32", "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16",
    "float16": "fp16",
}  # fmt: skip


def _named(name: str, table: Mapping[str, str | None]) -> _Rule:
    def read(value: Any, _: _Values) -> Mapping[str, Any]:
        word = "no" if value is False else str(value).lower()
        if word not in table:
            raise _RefusedError(f"one of {', '.join(table)}")
        return {name: table[word]}

    return read


def _checkpointing(value: Any, _: _Values) -> Mapping[str, Any]:
    if value in ("unsloth", "offload", "offload_disk", "legacy"):  # axolotl
        return {"activation_checkpointing": "full"}
    return {"activation_checkpointing": "full" if _is_on(value) else None}


def _switch(name: str) -> _Rule:
    def read(value: Any, _: _Values) -> Mapping[str, Any]:
        return {name: True} if _is_on(value) else {}

    return read


def _optimizer(value: Any, values: _Values) -> Mapping[str, Any]:
    """`adamw_torch_fused`, `AdamW`, `torch.optim.AdamW`, `bitsandbytes.optim.PagedAdamW8bit`."""
    word = str(value).rpartition(".")[2].lower().replace("-", "_")
    fused = (
        "fused" in word
        or values.get("optimizer.fused") is True
        or values.get("optimizer.implementation") == "fused"
    )
    if "adam" in word and "8bit" in word:
        return {"optimizer": "adam8bit"}
    for name in ("adamw", "adafactor", "adam", "lion", "rmsprop", "adagrad", "sgd"):
        if name in word:
            can_fuse = name in ("adamw", "adam", "adagrad", "sgd")
            return {"optimizer": f"{name}-fused" if fused and can_fuse else name}
    raise _RefusedError("an optimizer that Driple knows, such as adamw_torch, adafactor or sgd")


def _sharding(value: Any, _: _Values) -> Mapping[str, Any]:
    words = {"FSDP": "fsdp", "MULTI_GPU": "ddp", "NO": None, "DEEPSPEED": None}
    return {"sharding": words.get(str(value).upper())}


def _zero_stage(value: Any, _: _Values) -> Mapping[str, Any]:
    stages = {0: "ddp", 1: "zero1", 2: "zero2", 3: "fsdp"}
    if value not in stages or isinstance(value, bool):
        raise _RefusedError("a ZeRO stage from 0 to 3")
    return {"sharding": stages[value]}


def _fsdp(value: Any, _: _Values) -> Mapping[str, Any]:
    return {"sharding": "fsdp"} if value else {}


def _shard_degree(value: Any, _: _Values) -> Mapping[str, Any]:
    return {"sharding": "fsdp" if value not in (0, 1) else None}


_RULES: Mapping[str, _Rule] = {
    # batch: Trainer and TRL, axolotl, torchtune, torchtitan (new and old), DeepSpeed
    "per_device_train_batch_size": _whole("batch_size"),
    "micro_batch_size": _whole("batch_size"),
    "batch_size": _whole("batch_size"),
    "training.local_batch_size": _whole("batch_size"),
    "training.batch_size": _whole("batch_size"),
    "train_micro_batch_size_per_gpu": _whole("batch_size"),
    "gradient_accumulation_steps": _whole("grad_accumulation"),
    "deepspeed_config.gradient_accumulation_steps": _whole("grad_accumulation"),
    # length
    "max_length": _whole("seq_len"),
    "max_seq_length": _whole("seq_len"),
    "sequence_len": _whole("seq_len"),
    "tokenizer.max_seq_len": _whole("seq_len"),
    "training.seq_len": _whole("seq_len"),
    # precision
    "mixed_precision": _named("precision", _MIXED),
    "training.mixed_precision_param": _named("precision", _MIXED),
    "bf16": _autocast("amp-bf16"),
    "fp16": _autocast("amp-fp16"),
    "bf16.enabled": _enabled("amp-bf16"),
    "fp16.enabled": _enabled("amp-fp16"),
    "tf32": _tf32,
    "dtype": _named("precision", _WHOLE_MODEL),
    # memory for time
    "gradient_checkpointing": _checkpointing,
    "enable_activation_checkpointing": _checkpointing,
    "fsdp_config.fsdp_activation_checkpointing": _checkpointing,
    "activation_checkpoint.mode": _named(
        "activation_checkpointing",
        {"none": None, "full": "full", "selective": "selective", "memory_budget": "selective"},
    ),
    # compilation
    "torch_compile": _switch("compiled"),
    "compile": _switch("compiled"),
    "compile.enable": _switch("compiled"),
    "training.compile": _switch("compiled"),
    # optimizer
    "optim": _optimizer,
    "optimizer": _optimizer,
    "optimizer._component_": _optimizer,
    "optimizer.name": _optimizer,
    "optimizer.type": _optimizer,
    # sharding
    "distributed_type": _sharding,
    "deepspeed_config.zero_stage": _zero_stage,
    "zero_optimization.stage": _zero_stage,
    "fsdp": _fsdp,
    **dict.fromkeys(_SHARD_DEGREES, _shard_degree),
}
_READ_WITH_OTHERS = ("optimizer.fused", "optimizer.implementation")
# They do not change what one step on one device computes.
_SILENT_WORDS = (
    "learning_rate", "lr", "seed", "log", "save", "eval", "output", "report_to", "warmup", "wandb",
    "checkpoint.", "metrics", "scheduler", "debug", "description", "dataset", "epochs", "max_steps",
    "machine_rank", "main_process", "rdzv", "hub", "tokenizer.path", "num_workers", "val_set_size",
    "weight_decay", "profiling", "comm.", "main_training_function",
)  # fmt: skip


def _is_silent(key: str) -> bool:
    """Whether a field cannot change a step's ops."""
    return key in _READ_WITH_OTHERS or any(word in key for word in _SILENT_WORDS)
