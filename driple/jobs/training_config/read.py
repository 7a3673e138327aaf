"""Reads a file of training arguments by the tool that its fields belong to.

    YAML, JSON, TOML -> dotted keys -> the format that knows most of them -> TrainingConfig

A file is data: nothing that it names is imported. A DeepSpeed config that it names is read where
it lies below the file's own folder, or one of the few around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.files import wrap_os_error
from driple.jobs.training_config.accelerate import ACCELERATE
from driple.jobs.training_config.axolotl import AXOLOTL
from driple.jobs.training_config.config import BOTH, TrainingConfig, Undecided
from driple.jobs.training_config.deepspeed import DEEPSPEED
from driple.jobs.training_config.fields import Format, NotModelledError, RefusedError
from driple.jobs.training_config.llama_factory import LLAMA_FACTORY
from driple.jobs.training_config.torchtitan import TORCHTITAN
from driple.jobs.training_config.torchtune import TORCHTUNE
from driple.jobs.training_config.trainer import TRAINER
from driple.jobs.training_config.trl import TRL
from driple.plaintoml import read_plain_toml
from driple.plainyaml import MAX_YAML_BYTES, read_plain_yaml
from driple.storedfiles import read_bytes

__all__ = ["FORMATS", "read_training_config"]

# Of formats that know as many fields of a file, the first.
FORMATS: tuple[Format, ...] = (
    ACCELERATE, DEEPSPEED, TRAINER, TRL, AXOLOTL, TORCHTUNE, TORCHTITAN, LLAMA_FACTORY,
)  # fmt: skip
# Fields that hold the path of a DeepSpeed config, and where that config's own fields then are.
_LINKS = {"deepspeed": "deepspeed.", "deepspeed_config.deepspeed_config_file": "deepspeed."}
_MOST_FOLDERS = 4
_OFFLOADS = ("offload_states", "offload_parameters")
_LEFT = frozenset({*_OFFLOADS, "split_with_shards"})  # that rules say besides a config's fields


def read_training_config(file: Path) -> TrainingConfig:
    """Read a file of training arguments.

    Args:
        file: YAML or JSON of Accelerate, DeepSpeed, Trainer, TRL, axolotl, torchtune or
            LLaMA-Factory, or TOML of torchtitan.

    Raises:
        ConfigError: it cannot be read, has none of the known fields, or one with a wrong value.
        MissingExtraError: YAML needs PyYAML.
    """
    values = dict(_flat(_parsed(file)))
    tool = _tool_of(values, file)
    values, missing = _with_linked(values, file)
    return _Reading(tool, file, values, missing).config()


def _tool_of(values: Mapping[str, Any], file: Path) -> Format:
    """The format with the fewest unknown fields, and of these the one that reads most."""
    fitting = [
        tool
        for tool in FORMATS
        if any(key in tool.read for key in values) or (values and all(map(tool.knows, values)))
    ]
    if not fitting:
        raise ConfigError(
            f"{file} has no field of a training config that Driple knows, such as "
            "per_device_train_batch_size, micro_batch_size or mixed_precision; give a file of "
            f"{', '.join(tool.name for tool in FORMATS)}"
        )

    def rank(tool: Format) -> tuple[int, int]:
        return sum(not tool.knows(key) for key in values), -sum(key in tool.read for key in values)

    return min(fitting, key=rank)


def _with_linked(values: dict[str, Any], file: Path) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields with those of a DeepSpeed config that one of them names; fields without a file."""
    missing = set()
    for key, prefix in _LINKS.items():
        name = values.get(key)
        if not isinstance(name, str) or not name:
            continue
        path = _beside(file, name)
        if path is None:
            missing.add(key)
            continue
        own = {f"{prefix}{inner}": value for inner, value in _flat(_parsed(path))}
        values = {**{k: v for k, v in values.items() if k != key}, **own}
    return values, frozenset(missing)


def _beside(file: Path, name: str) -> Path | None:
    """The JSON file of this name below a config's folder, or one of those around it; or None.

    Tools look from where they are started, which is often the root of a checkout.
    """
    if Path(name).is_absolute() or ".." in Path(name).parts or not name.endswith(".json"):
        return None
    try:
        folders = file.resolve().parents[:_MOST_FOLDERS]
        return next((folder / name for folder in folders if (folder / name).is_file()), None)
    except (OSError, ValueError):
        return None


class _Reading:
    """One file that is read by the rules of its tool."""

    def __init__(
        self, tool: Format, file: Path, values: Mapping[str, Any], missing: frozenset[str]
    ) -> None:
        self._tool, self._file, self._values, self._missing = tool, file, values, missing
        self._said: dict[str, Any] = {}
        self._used: list[str] = []
        self._unknown: list[str] = []
        self._undecided: list[Undecided] = []

    def config(self) -> TrainingConfig:
        """All that the file says."""
        for key, value in self._values.items():
            self._read(key, value)
        try:
            self._tool.derived(self._said, self._values)
        except RefusedError as refused:
            raise ConfigError(f"{self._file}: {refused}; keep one of them") from refused
        except NotModelledError as error:
            self._leave(f"{self._tool.name}'s default", "", error)
        usual = self._usual()
        offload = tuple(name.removeprefix("offload_") for name in _OFFLOADS if self._said.get(name))
        if self._said.get("split_with_shards"):
            self._undecided.append(
                Undecided.of(
                    self._file.name, "data_parallel_shard_degree",
                    self._values.get("parallelism.data_parallel_shard_degree", -1), BOTH,
                    settled_by="scheme",
                )
            )  # fmt: skip
        said = {key: value for key, value in self._said.items() if key not in _LEFT}
        return TrainingConfig(
            file=self._file.name,
            tool=self._tool.name,
            offload=offload,
            used=tuple(self._used),
            unknown=tuple(self._unknown),
            undecided=tuple(self._undecided),
            usual=usual,
            **said,
        )

    def _usual(self) -> tuple[str, ...]:
        """Take the tool's own choice of what the file leaves open; what was taken, in words."""
        taken = []
        for name, value in self._tool.usual.items():
            if name == "grad_accumulation" and "global_batch" in self._said:
                continue
            if name not in self._said:
                self._said[name] = value
                taken.append(f"{name} {value}")
        return tuple(taken)

    def _read(self, key: str, value: Any) -> None:
        rule = self._tool.read.get(key)
        if rule is None:
            self._set_aside(key, value)
            return
        self._used.append(key)
        if value is None:
            return
        try:
            options = rule(value, self._values)
        except NotModelledError as error:
            self._leave(key, value, error)
            return
        except RefusedError as refused:
            raise ConfigError(
                f"{self._file}: field {key[:60]} must be {refused}, got {str(value)[:40]!r}"
            ) from refused
        for name, field_value in options.items():
            self._say(key, name, field_value)

    def _say(self, key: str, name: str, value: Any) -> None:
        known = self._said.get(name)
        if value is None:
            return
        if known is not None and known != value:
            if name == "activation_checkpointing" and "none" in (known, value):
                value = known if value == "none" else value  # either switch turns it on
            else:
                raise ConfigError(
                    f"{self._file}: {key} contradicts another field ({name} is {known} and "
                    f"{value}); keep one"
                )
        self._said[name] = value

    def _leave(self, key: str, value: Any, error: NotModelledError) -> None:
        self._undecided.append(
            Undecided.of(self._file.name, key, value, error.changes, settled_by=error.settled_by)
        )

    def _set_aside(self, key: str, value: Any) -> None:
        """A field without a rule: harmless, decisive, or unknown."""
        entry = self._tool.decisive_entry(key)
        if key in self._missing:
            self._undecided.append(
                Undecided.of(self._file.name, key, value, BOTH, reason="no_file")
            )
        elif entry is not None:
            if not entry.is_off(value):
                self._undecided.append(
                    Undecided.of(
                        self._file.name, key, value, entry.changes, settled_by=entry.settled_by
                    )
                )
        elif not self._tool.knows(key):
            self._unknown.append(key)
            if value is not None:
                self._undecided.append(
                    Undecided.of(self._file.name, key, value, BOTH, reason="not_known")
                )


def _parsed(file: Path) -> Mapping[str, Any]:
    with wrap_os_error(ConfigError, f"read {file}"):
        data = read_bytes(file, MAX_YAML_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no text, so no training config") from error
    if len(data) > MAX_YAML_BYTES:
        raise ConfigError(f"{file} has over {MAX_YAML_BYTES} bytes; keep only what you need")
    if file.suffix == ".toml":
        try:
            fields: Any = read_plain_toml(text)
        except ValueError as error:
            raise ConfigError(f"{file} is no TOML: {error}") from error
    else:
        fields = read_plain_yaml(text, str(file))
    if not text.strip():
        raise ConfigError(f"{file} is empty; give a file of training arguments")
    if not isinstance(fields, Mapping):
        raise ConfigError(f"{file} holds {type(fields).__name__}, and fields were expected")
    return fields


def _flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every field; lists and empty mappings are values."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value
