"""Bytes that are allocated at each moment of a training step, by what they are kept for.

    OpGraph (lifetimes, phases, update) -> StepTimeline: bytes at each node, and in the update

One point for each node in the order in which they run, and a last one for the optimizer's update.
With gradient accumulation it is a later pass, before which all gradients exist. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.memory.graph_lifetimes import with_lifetimes

__all__ = ["CUDA_ROUNDING", "KINDS", "ModuleBytes", "StepTimeline", "bytes_at_nodes", "modules_at",
           "rounded", "step_timeline"]  # fmt: skip

IntArray = npt.NDArray[np.int64]

CUDA_ROUNDING = 512  # bytes; kMinBlockSize of c10/cuda/CUDACachingAllocator.cpp

# Order of the columns of a timeline: the roles of tensors, by their numbers.
KINDS: tuple[str, ...] = (
    "parameters", "gradients", "optimizer", "activations", "temporary", "input",
)  # fmt: skip
_OF_PARAMETERS = (TensorRole.PARAMETER, TensorRole.GRADIENT, TensorRole.OPTIMIZER_STATE)
_NO_LIFETIMES = (
    "this graph does not show how long its tensors live, so its memory over a step is unknown"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleBytes:
    """What is allocated for a module, and not for a module within it.

    Attributes:
        module: its path; empty for the model itself.
        kind: one of `KINDS`.
        nbytes: bytes.
    """

    module: str
    kind: str
    nbytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimeline:
    """Bytes that are allocated over one step.

    Attributes:
        nbytes: shape [num_nodes + 1, kinds], bytes at each node and in the update; at a node both
            its inputs and its outputs are allocated.
        modules: what is allocated at the peak, by module and kind, the largest first.
        kinds: what the columns are.
    """

    nbytes: IntArray
    modules: tuple[ModuleBytes, ...]
    kinds: tuple[str, ...] = KINDS

    @property
    def total_bytes(self) -> IntArray:
        """Shape [num_nodes + 1], bytes of all kinds."""
        total: IntArray = self.nbytes.sum(axis=1)
        return total

    @property
    def peak_at(self) -> int:
        """Node at which most is allocated, the first of them; `num_nodes` is the update."""
        return int(self.total_bytes.argmax())

    @property
    def peak_bytes(self) -> int:
        """Bytes that are allocated there."""
        return int(self.total_bytes.max())

    @property
    def is_peak_in_update(self) -> bool:
        """Whether most is allocated while the optimizer updates the parameters."""
        return self.peak_at == len(self.nbytes) - 1

    def at_peak(self) -> Mapping[str, int]:
        """Bytes of each kind at the peak."""
        return dict(zip(self.kinds, self.nbytes[self.peak_at].tolist(), strict=True))


def step_timeline(graph: OpGraph, *, rounding: int = CUDA_ROUNDING) -> StepTimeline:
    """Allocated bytes over a step of a graph that knows how long its tensors live.

    Args:
        graph: of one device's step.
        rounding: bytes, each allocation takes a multiple of it.

    Raises:
        GraphError: the graph has no lifetimes, and none follow from its ops.
    """
    graph = with_lifetimes(graph)
    lives = graph.lifetimes
    if not len(lives.nbytes):
        raise GraphError(_NO_LIFETIMES)
    count = graph.num_nodes
    sizes = rounded(lives.nbytes, rounding)
    nbytes = bytes_at_nodes(
        sizes, lives.made_by, lives.freed_after, lives.roles, (count, len(KINDS))
    )
    nbytes[count, TensorRole.TEMPORARY] += graph.update.temporary_bytes
    peak = int(nbytes.sum(axis=1).argmax())
    return StepTimeline(nbytes=nbytes, modules=modules_at(graph, peak, rounding=rounding))


def rounded(nbytes: npt.NDArray[np.integer], rounding: int) -> IntArray:
    """Sizes as an allocator counts them: multiples of some bytes."""
    multiples: IntArray = -(-nbytes.astype(np.int64) // rounding) * rounding
    return multiples


def bytes_at_nodes(
    sizes: IntArray,
    made_by: npt.NDArray[np.integer],
    freed_after: npt.NDArray[np.integer],
    kinds: npt.NDArray[np.integer],
    shape: tuple[int, int],
) -> IntArray:
    """Bytes that live at each node and in the update, by kind.

    Args:
        sizes: shape [t], bytes of each tensor.
        made_by: shape [t], node that makes it; below 0 if it exists before.
        freed_after: shape [t], last node that uses it; the number of nodes or more if it outlives
            them.
        kinds: shape [t].
        shape: numbers of nodes and of kinds.

    Returns:
        Shape [nodes + 1, kinds].
    """
    count, num_kinds = shape
    begins = np.maximum(made_by, 0).astype(np.int64)
    ends = np.maximum(np.minimum(freed_after, count), begins) + 1
    columns = kinds.astype(np.int64)
    change = np.zeros((count + 2) * num_kinds, dtype=np.float64)  # whole numbers below 2^53
    change += np.bincount(begins * num_kinds + columns, weights=sizes, minlength=len(change))
    change -= np.bincount(ends * num_kinds + columns, weights=sizes, minlength=len(change))
    by_node: IntArray = np.cumsum(change.reshape(count + 2, num_kinds), axis=0)[:-1].astype(
        np.int64
    )
    return by_node


def modules_at(
    graph: OpGraph, point: int, *, rounding: int = CUDA_ROUNDING
) -> tuple[ModuleBytes, ...]:
    """What is allocated at a point of a step, the largest first.

    Tensors count for the module whose op made them, parameters and their gradients for the module
    that their names state, and the optimizer's states in proportion to the parameters.

    Args:
        graph: with lifetimes.
        point: a node, or `num_nodes` for the update.
        rounding: bytes, each allocation takes a multiple of it.
    """
    graph = with_lifetimes(graph)
    lives, peak = graph.lifetimes, point
    sizes = rounded(lives.nbytes, rounding)
    ends = np.minimum(lives.freed_after, graph.num_nodes)
    alive = (np.maximum(lives.made_by, 0) <= peak) & (ends >= peak)
    by_module: dict[tuple[str, str], int] = {}

    def add(module: str, role: int, nbytes: int) -> None:
        key = (module, KINDS[role])
        by_module[key] = by_module.get(key, 0) + nbytes

    table = graph.parameters
    has_names = bool(table.names)
    named = _OF_PARAMETERS if has_names else ()
    whole = alive & ~np.isin(lives.roles, named)
    places = np.full(len(sizes), -1, dtype=np.int64)
    inside = lives.made_by >= 0
    if len(graph.module_of):
        places[inside] = graph.module_of[lives.made_by[inside]]
    keys = (places + 1) * len(KINDS) + lives.roles
    sums = np.bincount(keys[whole], weights=sizes[whole])
    for key in np.flatnonzero(sums).tolist():
        place, role = divmod(key, len(KINDS))
        add(graph.modules[place - 1] if place else "", role, int(sums[key]))
    if has_names:
        completed = dict(table.gradients.tolist())
        if (lives.made_by[lives.roles == TensorRole.GRADIENT] < 0).any():  # of earlier passes
            completed = dict.fromkeys(completed, -1)
        share = graph.update.state_bytes / max(int(table.nbytes[table.is_trained].sum()), 1)
        for i, (name, nbytes) in enumerate(zip(table.names, table.nbytes.tolist(), strict=True)):
            module = name.rpartition(".")[0]
            add(module, TensorRole.PARAMETER, nbytes)
            if share and table.is_trained[i]:
                add(module, TensorRole.OPTIMIZER_STATE, round(share * nbytes))
            if completed.get(i, peak + 1) <= peak:
                add(module, TensorRole.GRADIENT, nbytes)
    if peak == graph.num_nodes and graph.update.temporary_bytes:
        add("", TensorRole.TEMPORARY, graph.update.temporary_bytes)
    rows = [ModuleBytes(module=m, kind=k, nbytes=n) for (m, k), n in by_module.items()]
    return tuple(sorted(rows, key=lambda one: (-one.nbytes, one.module, one.kind)))
