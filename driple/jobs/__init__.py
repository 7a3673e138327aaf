"""Training jobs: the one way to read them, and the catalogue. Names are imported when first used.

Importing it imports neither TensorFlow nor PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.jobs.catalogue import MODELS
    from driple.jobs.lists import cpu_workloads, paper_workloads
    from driple.jobs.workload import Workload

__all__ = ["MODELS", "Workload", "cpu_workloads", "paper_workloads"]

_HOMES = {
    "MODELS": "driple.jobs.catalogue",
    "Workload": "driple.jobs.workload",
    "cpu_workloads": "driple.jobs.lists",
    "paper_workloads": "driple.jobs.lists",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'driple.jobs' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
