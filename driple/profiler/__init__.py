"""Stall profiler for distributed training, after Stash (Sharma et al., ICDCS 2023).

    profile = driple.profiler.profile(build_model, build_dataset, batch_size=32, out="runs/stalls")
    profile.stalls()["interconnect"].pct

`graph_of_step(model, inputs, loss)` reads a training step as a graph, for example for
`driple plan`. `batches(...)` marks the training data of a script that does not use a PyTorch
DataLoader.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from driple.graph.torch.torch_graph import graph_of_step
    from driple.profiler.api import profile
    from driple.profiler.stall_profile import StallProfile

__all__ = ["StallProfile", "batches", "graph_of_step", "profile"]

_HOMES = {
    "StallProfile": "driple.profiler.stall_profile",
    "graph_of_step": "driple.graph.torch.torch_graph",
    "profile": "driple.profiler.api",
}
_Batch = TypeVar("_Batch")


def batches(source: Iterable[_Batch]) -> Iterable[_Batch]:
    """Mark a source of batches; under `driple profile run` its iterations are timed.

    Args:
        source: iterable of the batches of one pass; it must be iterable more than once, since a
            profile may need more iterations than one pass has.
    """
    import sys

    module = sys.modules.get("driple.profiler.iteration_timer")
    timer = None if module is None else module.active_timer()
    return source if timer is None else timer.watch(source, lambda: source)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'driple.profiler' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
