"""Fields of the rows of the catalogue, and the values that each may have.

name of a field -> Field: type, bounds, unit and meaning; `check_field` refuses any other value

The reader, the listing and the tests take the list of a device's fields from here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.checks import check_number, check_whole
from driple.errors import ConfigError

__all__ = [
    "DEVICE_FACTS",
    "FORMATS",
    "GENERATION_FIELDS",
    "HOST_RUNS",
    "INSTANCE_FIELDS",
    "LINK_FIELDS",
    "PRICE_FIELDS",
    "SIMULATION_FACTS",
    "TUNED",
    "TUNING_FACTS",
    "Field",
    "check_field",
]

MAX_TEXT = 400  # characters of one text
MAX_LIST = 64  # entries of one list
MAX_DEVICES = 4096  # of an instance; the simulator takes every one as a worker
FORMATS = ("fp32", "fp16", "bf16", "tf32", "fp8", "fp4")


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a row.

    Attributes:
        kind: `number`, `whole`, `flag`, `text`, `texts`, `sources` (a text or a list of them) or
            `date`.
        least: smallest number.
        above: number that a value must exceed, in place of `least`; None if `least` counts.
        most: largest number.
    """

    kind: str
    least: float = 0
    above: float | None = None
    most: float = 1e30


# What a user's own runs tell of a device: factors on what kernels reach of its peaks, and on the
# seconds of its host.
TUNED = ("half", "tf32", "plain", "memory", "host")
HOST_RUNS = "tuned_host_runs"  # that wait for their host, so that they tell of it
# Earlier files have a second factor of the host, in training steps, and how many runs told of it.
EARLIER_TRAINING = ("tuned_host_training", "tuned_host_training_runs")
_FACTOR = Field(kind="number", least=0.02, most=50)
_RATE = Field(kind="number", above=0)
_FLAG, _TEXT, _TEXTS = Field(kind="flag"), Field(kind="text"), Field(kind="texts")
_ORIGIN = {"source": Field(kind="sources"), "date": Field(kind="date")}

DEVICE_FACTS: Mapping[str, Field] = MappingProxyType(
    {
        **{f"{name}_flops": _RATE for name in FORMATS},
        "tensor_cores": _FLAG,
        "datacentre": _FLAG,
        "bytes_per_s": _RATE,
        "memory_bytes": Field(kind="number", least=1e7),  # 96 would be gigabytes
        "cache_bytes": _RATE,
        "multiprocessors": Field(kind="whole", least=1, most=1e6),
        "pcie_generation": Field(kind="whole", least=1, most=9),
        "pcie_lanes": Field(kind="whole", least=1, most=32),
        "pcie_peers": _FLAG,
        "host_link": _TEXT,
        "nvlink": _TEXT,
        "nvlink_peers": Field(kind="whole", least=2, most=1e6),
        "counter_window_s": Field(kind="number", above=0, most=60),
        "default_setting": _TEXT,
    }
)
# Of a user's own file, as `driple transfer --from gpu` writes it.
TUNING_FACTS: Mapping[str, Field] = MappingProxyType(
    {
        **{f"tuned_{name}": _FACTOR for name in TUNED},
        HOST_RUNS: Field(kind="whole", most=1e6),
        EARLIER_TRAINING[0]: _FACTOR,
        EARLIER_TRAINING[1]: Field(kind="whole", most=1e6),
        "tuned_runs": Field(kind="whole", least=1, most=1e6),
        "tuned_kernels": Field(kind="whole", least=1, most=1e6),  # by `driple measure --machine`
        "tuned_median_pct": Field(kind="number", most=1e6),
        "tuned_p90_pct": Field(kind="number", most=1e6),
    }
)
# What a simulation of training needs of a GPU; formats of matrix products may be absent.
SIMULATION_FACTS = (
    "fp32_flops",
    "fp16_flops",
    "tensor_cores",
    "bytes_per_s",
    "memory_bytes",
    "multiprocessors",
    "pcie_generation",
    "pcie_lanes",
    "pcie_peers",
)
GENERATION_FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "maker": _TEXT,
        "order": Field(kind="number", most=1e6),
        "datacentre_names": _TEXT,
        "other_names": _TEXT,
        "tensor_sides": Field(kind="whole", least=1, most=1024),
        **_ORIGIN,
    }
)
LINK_FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "kind": _TEXT,
        "bytes_per_s": _RATE,
        "within_machine": _FLAG,
        "through_host": _FLAG,
        "generation": _TEXT,
        "aliases": _TEXTS,
        **_ORIGIN,
    }
)
INSTANCE_FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "provider": _TEXT,
        "device": _TEXT,
        "num_devices": Field(kind="whole", least=1, most=MAX_DEVICES),
        "interconnect": _TEXT,
        "network_gbps": _RATE,
        "network_is_burst": _FLAG,
        "rdma": _FLAG,
        "cpu": _TEXT,
        "vcpus": _RATE,
        "device_memory_gb": _RATE,
        "memory_gb": _RATE,
        **_ORIGIN,
    }
)
PRICE_FIELDS: Mapping[str, Field] = MappingProxyType(
    {"per_hour": _RATE, "region": _TEXT, "spot": _FLAG, **_ORIGIN}
)


def check_field(known: Field, name: str, value: object, where: str) -> None:
    """Refuse a value that the field may not have.

    Args:
        known: the field.
        name: the name of the field.
        value: the value in the file.
        where: file and row, as the error names them.

    Raises:
        ConfigError: with file, row, field and value.
    """
    named = f"{name} of {where}"
    if known.kind in {"texts", "sources"}:
        _check_texts(known.kind, named, value)
    elif known.kind == "number" and known.above is not None:
        check_number(named, value, above=known.above, most=known.most)
    elif known.kind == "number":
        check_number(named, value, least=known.least, most=known.most)
    elif known.kind == "whole":
        check_whole(named, value, int(known.least), int(known.most))
    elif known.kind == "text":
        _check_text(named, value)
    elif known.kind == "flag" and not isinstance(value, bool):
        raise ConfigError(f"{named} must be true or false, got {_short(value)}")
    # A time of day is a date to Python, but cannot be compared with one.
    elif known.kind == "date" and type(value) is not datetime.date:
        raise ConfigError(f"{named} must be a day such as 2026-08-26, got {_short(value)}")


def _check_texts(kind: str, named: str, value: object) -> None:
    """A list of texts; one text stands for a list of one where sources are."""
    if kind == "texts" and not isinstance(value, list):
        raise ConfigError(f"{named} must be a list of texts, got {_short(value)}")
    texts = value if isinstance(value, list) else [value]
    if len(texts) > MAX_LIST:
        raise ConfigError(f"{named} has {len(texts)} entries, at most {MAX_LIST} are read")
    for text in texts:
        _check_text(named, text)


def _check_text(named: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ConfigError(f"{named} must be a text, got {_short(value)}")
    if len(value) > MAX_TEXT:
        raise ConfigError(f"{named} has {len(value)} characters, at most {MAX_TEXT} are read")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
