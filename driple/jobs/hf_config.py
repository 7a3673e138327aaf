"""The config.json of a Hugging Face model: where it lies, and whether its sizes can be true.

    PATH, or ORG/NAME in the local cache -> config.json, bounded -> HfConfig

A config is data. Nothing is downloaded, and code that it names is not executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.remarks import Remark, remark
from driple.storedfiles import parse_json, read_bytes

__all__ = ["HfConfig", "hf_config_of", "read_hf_config"]

CONFIG_FILE = "config.json"
_MAX_BYTES = 2**20
_MAX_DEPTH = 12
_MOST_LAYERS = 1000  # the deepest published ones have some 130
_MOST_MODULES = 100_000  # layers x experts
_MOST_ITEMS = 5000  # of one list
_MOST_NUMBER = 2**31 - 1
_REPOSITORY = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")
# Fields that say how often a module is repeated: num_hidden_layers, n_layer, depths, num_blocks.
_LAYERS = re.compile(r"(^|_)(n_?)?(layers?|blocks?|depths?|stages?)$")
# Fields that name one of the layers, counted from the end where they are negative.
_ONE_LAYER = re.compile(r"^(?!n_|num_).*(layer|(feature|select|index|idx|skip|exit)[a-z_]*layers)$")
_EXPERTS = re.compile(r"experts?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class HfConfig:
    """A model's config.

    Attributes:
        source: JOB as typed, for messages.
        file: where it lies.
        values: its fields.
    """

    source: str
    file: Path
    values: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        """Name of the family in transformers; empty if it states none."""
        name = self.values.get("model_type")
        return name if isinstance(name, str) else ""

    @property
    def architecture(self) -> str:
        """Name of the class that the weights are of; empty if it states none."""
        names = self.values.get("architectures")
        first = names[0] if isinstance(names, list) and names else ""
        return first if isinstance(first, str) else ""

    @property
    def assumptions(self) -> tuple[Remark, ...]:
        """What of the config is not followed."""
        remarks = []
        if "auto_map" in self.values:
            remarks.append(remark("config_names_code"))
        if self.values.get("quantization_config") is not None:
            remarks.append(remark("config_is_quantized"))
        return tuple(remarks)


def read_hf_config(name: str) -> HfConfig:
    """Find and read the config of a model.

    Args:
        name: a folder, a config.json, or ORG/NAME of a model in the local cache.

    Raises:
        ConfigError: there is none, it is no model's config, or its numbers are not those of a
            model.
    """
    file = _place(name)
    try:
        data = read_bytes(file, _MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}; give a config.json") from error
    return hf_config_of(data, file, f"hf:{name}")


def hf_config_of(data: bytes, file: Path, source: str) -> HfConfig:
    """The config in the content of a config.json.

    Args:
        data: content.
        file: where it lies, for messages.
        source: JOB as typed, for messages.

    Raises:
        ConfigError: as for `read_hf_config`.
    """
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{file} has over {_MAX_BYTES} bytes, so it is no model's config")
    try:
        values = parse_json(data, infinite=True)  # time_step_limit of Mamba 2
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is no JSON ({error}); give a model's config.json") from error
    if not isinstance(values, dict) or not ("model_type" in values or "architectures" in values):
        raise ConfigError(
            f"{file} is no model's config: it has neither model_type nor architectures; give the "
            "config.json of a Hugging Face model"
        )
    _check_numbers(values, file)
    return HfConfig(source=source, file=file, values=values)


def _place(name: str) -> Path:
    path = Path(name)
    if not name:  # the path of nothing is this folder
        raise ConfigError(
            f"hf: names no model; give hf:FOLDER with a {CONFIG_FILE}, or hf:ORG/NAME of a model "
            "in the local cache"
        )
    if path.is_file():
        return path
    if path.is_dir():
        if (path / CONFIG_FILE).is_file():
            return path / CONFIG_FILE
        if (path / "adapter_config.json").is_file():
            raise ConfigError(
                f"{name} is an adapter (adapter_config.json) without its base model; give the base "
                "model's folder, or build both in FILE.py:FUNCTION"
            )
        raise ConfigError(f"{name} has no {CONFIG_FILE}; give the folder of a Hugging Face model")
    if not _REPOSITORY.fullmatch(name) or name.startswith("."):
        raise ConfigError(
            f"there is no folder or config '{name[:200]}'; give hf:FOLDER with a {CONFIG_FILE}, or "
            "hf:ORG/NAME of a model in the local cache"
        )
    cache = _cache()
    for file in _snapshots(cache / f"models--{name.replace('/', '--')}"):
        if file.is_file():
            return file
    raise ConfigError(
        f"hf:{name} is no folder here, and {CONFIG_FILE} of {name} is not in the cache {cache}; "
        f"Driple downloads nothing: run 'hf download {name} {CONFIG_FILE}', or save "
        f"https://huggingface.co/{name}/resolve/main/{CONFIG_FILE} and give hf:FILE"
    )


def _cache() -> Path:
    """Folder of the local cache, as huggingface_hub finds it."""
    if "HF_HUB_CACHE" in os.environ:
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    usual = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(os.environ.get("HF_HOME", usual)).expanduser() / "hub"


def _snapshots(model: Path) -> Iterator[Path]:
    """Configs of a cached model: that of the branch main first."""
    main = model / "refs" / "main"
    if main.is_file():
        revision = read_bytes(main, 200).decode("ascii", "replace").strip()
        if re.fullmatch(r"[0-9a-f]{7,64}", revision):
            yield model / "snapshots" / revision / CONFIG_FILE
    snapshots = model / "snapshots"
    if snapshots.is_dir():
        for folder in sorted(snapshots.iterdir()):
            yield folder / CONFIG_FILE


def _check_numbers(values: Mapping[str, Any], file: Path) -> None:
    """Refuse sizes that no model has: they would take forever to build.

    Raises:
        ConfigError: which field.
    """
    layers, experts = 1, 1
    for key, value in _leaves(values, "", file):
        name = key.rpartition(".")[2].lower()
        total = _total(value)
        if _ONE_LAYER.search(name):
            continue
        if _LAYERS.search(name):
            _check_least(file, key, value)
            _check_most(file, key, total, _MOST_LAYERS, "layers")
            layers = max(layers, total)
        elif _EXPERTS.search(name):
            _check_most(file, key, total, _MOST_MODULES, "experts")
            experts = max(experts, total)
        elif abs(total) > _MOST_NUMBER * (len(value) if isinstance(value, list) else 1):
            raise ConfigError(f"{file}: {key} is {total}, beyond {_MOST_NUMBER}; correct it")
    if layers * experts > _MOST_MODULES:
        raise ConfigError(
            f"{file}: {layers} layers of {experts} experts are {layers * experts} modules, and at "
            f"most {_MOST_MODULES} are read; correct the config"
        )


def _total(value: Any) -> Any:
    """A number, or the sum of a list of numbers; a list of positions counts its entries."""
    if not isinstance(value, list):
        return value
    rises = len(value) > 4 and all(a < b for a, b in pairwise(value))
    return len(value) if rises else sum(value)


def _check_least(file: Path, key: str, number: Any) -> None:
    """Refuse a negative number of layers; some models have none in a part of them."""
    if isinstance(number, int) and number < 0:
        raise ConfigError(f"{file}: {key} is {number}, and layers are 0 or more; correct it")


def _check_most(file: Path, key: str, number: int, most: int, words: str) -> None:
    if number > most:
        raise ConfigError(
            f"{file}: {key} is {number}, and models of up to {most} {words} are read; correct it"
        )


def _leaves(values: Any, prefix: str, file: Path, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted key, whole number or list of whole numbers) of a config and those within it."""
    if depth > _MAX_DEPTH:
        raise ConfigError(f"{file} is nested over {_MAX_DEPTH} deep; give a model's config.json")
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        name = f"{prefix}{key}"
        if isinstance(value, list) and len(value) > _MOST_ITEMS:
            if not all(isinstance(one, str | int | float) for one in value):
                raise ConfigError(f"{file}: {name} has {len(value)} items; correct the config")
            continue
        if isinstance(value, list) and value and all(type(one) is int for one in value):
            yield name, value
        elif isinstance(value, dict | list):
            if not name.endswith(("id2label", "label2id")):  # names of classes
                yield from _leaves(value, f"{name}.", file, depth + 1)
        elif type(value) is int:
            yield name, value
