"""Driple tells how a training job will use a cluster, before anyone runs it.

    graph = driple.read_graph("graph.pbtxt")
    checkpoint = driple.load_checkpoint("checkpoints/CPU-P1w2_ho-200M/default.safetensors")
    driple.predict(graph, checkpoint).targets.to_dict()

Names are imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.errors import DripleError
    from driple.estimation.checked import predict
    from driple.graph import OpGraph, read_graph
    from driple.inspector.checkpoint import Checkpoint, load_checkpoint
    from driple.inspector.predict import Prediction
    from driple.trace.targets import Targets

__all__ = [
    "Checkpoint",
    "DripleError",
    "OpGraph",
    "Prediction",
    "Setting",
    "Targets",
    "load_checkpoint",
    "predict",
    "read_graph",
]

_HOMES = {
    "Checkpoint": "driple.inspector.checkpoint",
    "DripleError": "driple.errors",
    "OpGraph": "driple.graph",
    "Prediction": "driple.inspector.predict",
    "Setting": "driple.cluster.setting",
    "Targets": "driple.trace.targets",
    "load_checkpoint": "driple.inspector.checkpoint",
    "predict": "driple.estimation.checked",
    "read_graph": "driple.graph",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'driple' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
