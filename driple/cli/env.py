"""`driple env`: what works on this machine, and what to install for the rest."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from driple.cli.outputs import JsonOption
from driple.extras import driple_version
from driple.render.show import print_json

if TYPE_CHECKING:
    from driple.api.json_types.commands import EnvJson

__all__ = ["driple_version", "env"]

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class _Extra:
    """An optional dependency group of pyproject.toml, and what it is for."""

    name: str
    modules: tuple[str, ...]
    brings: str


_EXTRAS = (
    _Extra("plot", ("matplotlib",), "pictures"),
    _Extra(
        "train",
        ("torch", "torch_geometric", "sklearn", "category_encoders", "pyarrow", "networkx"),
        "train, transfer, evaluate, data label, data import",
    ),
    _Extra("tensorflow", ("tensorflow", "psutil"), "measure, jobs build, trace run, trace import"),
    _Extra("torch", ("torch",), "PyTorch jobs"),
    _Extra("hf", ("torch", "transformers"), "Hugging Face jobs"),
    _Extra("timm", ("torch", "timm"), "jobs named timm:NAME"),
    _Extra("onnx", ("onnx",), "ONNX jobs"),
    _Extra("profiler", ("torch", "PIL", "scipy"), "profile run, profile links"),
    _Extra("calibration", ("torch", "scipy", "sklearn", "pyarrow"), "validate, and fits anew"),
    _Extra("async", ("numba",), "asynchronous training from a trace"),
    _Extra("yaml", ("yaml",), "cluster files, instance files for plan, training configs"),
    _Extra("web", ("fastapi", "uvicorn", "jinja2"), "serve"),
    _Extra("gpu", ("pynvml",), "counters of NVIDIA GPUs"),
    _Extra("mcp", ("mcp",), "mcp: tools for assistants"),
)


@dataclass(frozen=True, slots=True)
class _Machine:
    """What this machine has; all names of the JSON are in `to_dict`."""

    extras: dict[str, list[str]]  # modules that each extra lacks
    gpus: list[str]
    counters: dict[str, str]
    tools: dict[str, bool]
    checkpoints: list[str]

    def to_dict(self) -> EnvJson:
        """The object that `driple env --json` prints, without its question."""
        return {
            "driple": driple_version(),
            "python": sys.version.split()[0],
            "extras": {
                name: "installed" if not missing else f"missing {', '.join(missing)}"
                for name, missing in self.extras.items()
            },
            "cores": os.cpu_count(),
            "gpus": self.gpus,
            "counters": self.counters,
            "measuring": self.tools,
            "checkpoints": self.checkpoints,
        }


def env(json: JsonOption = False) -> None:
    """Show what works on this machine, and how to install the rest.

    Example:

      driple env --json
    """
    machine = _look()
    if json:
        print_json(machine.to_dict(), "env")
        return
    for line in _lines(machine):
        print(line)


def _look() -> _Machine:
    from driple.inspector.checkpoint_places import settings_with_checkpoint

    return _Machine(
        extras={
            extra.name: [name for name in extra.modules if find_spec(name) is None]
            for extra in _EXTRAS
        },
        gpus=_gpus(),
        counters=_counters(),
        tools={
            "root": os.geteuid() == 0,
            "iproute2": shutil.which("ip") is not None and shutil.which("tc") is not None,
            "compiler": (shutil.which("cc") or shutil.which("gcc")) is not None,
            "cgroups": Path("/sys/fs/cgroup").is_dir(),
        },
        checkpoints=settings_with_checkpoint(),
    )


def _gpus() -> list[str]:
    if find_spec("pynvml") is None:
        return []
    from driple.measure.counters.nvml import gpu_names

    return gpu_names()


def _counters() -> dict[str, str]:
    if sys.platform != "linux":
        return dict.fromkeys(("cpu", "memory", "disk", "network", "gpu"), "no: needs Linux")
    from driple.measure.record.sources import counters_here

    return counters_here()


def _lines(machine: _Machine) -> list[str]:
    """The screen: at most 80 columns."""
    from driple.errors import install_hint

    lines = [
        f"driple {driple_version()}, Python {sys.version.split()[0]}, {os.cpu_count()} cores",
        "works  predict and all that needs no extra",
    ]
    to_install = []
    for extra in _EXTRAS:
        works = not machine.extras[extra.name]
        lines.append(f"{'works' if works else 'no   '}  {extra.brings}")
        if not works:
            to_install.append(extra.name)
            lines += _wrapped("       missing: ", ", ".join(machine.extras[extra.name]))
    lacking = [name for name, there in machine.tools.items() if not there]
    lines.append(f"{'no   ' if lacking else 'works'}  network namespaces for driple measure")
    if lacking:
        lines += _wrapped("       missing: ", ", ".join(lacking))
    working = [name for name, words in machine.counters.items() if words.startswith("works")]
    lines.append(f"works  driple record: {', '.join(working)}")
    for name, words in machine.counters.items():
        if name not in working:
            lines += _wrapped("       ", f"not {name}: {words.removeprefix('no: ')}")
    lines += _wrapped("GPUs: ", ", ".join(machine.gpus) or "none found")
    lines += _wrapped("inspectors for: ", ", ".join(machine.checkpoints) or "no setting")
    if to_install:
        lines.append(f"to install the rest: {install_hint(','.join(to_install))}"
                     .replace(" in the checkout of Driple", ""))  # fmt: skip
    return lines


def _wrapped(label: str, words: str) -> list[str]:
    """A label, then words that continue under themselves."""
    return wrap(words, _WIDTH, initial_indent=label, subsequent_indent=" " * 7)
