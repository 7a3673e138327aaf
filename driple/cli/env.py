"""`driple env`: what this machine offers to Driple."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from driple.cli.show import print_json, print_table

__all__ = ["env"]

_EXTRAS = {
    "plot": ("matplotlib",),
    "train": ("torch", "torch_geometric", "sklearn", "category_encoders", "pyarrow", "networkx"),
    "tensorflow": ("tensorflow", "psutil"),
    "gpu": ("pynvml",),
    "stalls": ("torch", "yaml", "PIL", "scipy"),
}


def env(
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Show which commands work here: extras, tools for measuring, checkpoints.

    Example:

      driple env --json
    """
    facts = _facts()
    if json:
        print_json(facts)
        return
    rows = [[name, str(value)] for name, value in _flat(facts)]
    print_table(["", "here"], rows)


def _facts() -> dict[str, object]:
    from driple.inspector.checkpoint_places import settings_with_checkpoint

    try:
        mine = version("driple")
    except PackageNotFoundError:
        mine = "not installed"
    missing = {
        extra: [name for name in modules if find_spec(name) is None]
        for extra, modules in _EXTRAS.items()
    }
    return {
        "driple": mine,
        "extras": {
            extra: "installed" if not names else f"missing {', '.join(names)}"
            for extra, names in missing.items()
        },
        "cores": os.cpu_count(),
        "gpus": _gpus(),
        "measuring": {
            "root": os.geteuid() == 0,
            "iproute2": shutil.which("ip") is not None and shutil.which("tc") is not None,
            "compiler": (shutil.which("cc") or shutil.which("gcc")) is not None,
            "cgroups": Path("/sys/fs/cgroup").is_dir(),
        },
        "checkpoints": settings_with_checkpoint(),
    }


def _gpus() -> list[str]:
    if find_spec("pynvml") is None:
        return []
    from driple.measure.counters.nvml import gpu_names

    return gpu_names()


def _flat(facts: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            rows.append((prefix + name, ", ".join(map(str, value)) or "none"))
        else:
            rows.append((prefix + name, value))
    return rows
