"""Blocks of layers whose parameters are gathered together, as FSDP and ZeRO-3 wrap them.

    layers.0.attn.weight, layers.0.mlp.weight, layers.1... -> block layers.0, block layers.1, ...
    embedding, head, last norm                              -> the root, gathered first and kept
    names without numbers                                   -> groups by size, in order of use

A parameter's block is its path up to the first number, since repeated layers are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.placement import gradients_to
from driple.graph.step_facts import Phase

__all__ = ["Block", "block_name", "blocks_of"]

IntArray = npt.NDArray[np.int64]

_NUMBERED = re.compile(r"^(?:[^.]+\.)*?\d+(?=\.|$)")
_ROOT = ""
# Groups of parameters without numbered layers; PyTorch's size_based_auto_wrap_policy and
# Accelerate count parameters, 1e8 of them.
_GROUP_BYTES = 1e8
_HALF = frozenset({NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"]})
_FULL_BYTES, _HALF_BYTES = 4, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Parameters that are gathered together.

    Attributes:
        name: path of the block; empty for the root and for groups.
        num_tensors: parameters.
        gathered_bytes: bytes of all, as they are gathered: half precision where the model computes
            in it (MixedPrecision of FSDP).
        gradient_bytes: bytes of the gradients of those that are trained, in the same precision.
        forward_at: place in the order of execution before which they must be there.
        backward_at: the same in the backward pass; None if they are not needed there, or kept.
        complete_at: place of the op that completes the last gradient; None if all are frozen.
        members: positions of its parameters in the graph's table of them.
        group: of devices that share these parameters out.
    """

    name: str
    num_tensors: int
    gathered_bytes: float
    gradient_bytes: float
    forward_at: int
    backward_at: int | None
    complete_at: int | None
    members: tuple[int, ...] = ()
    group: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parameters:
    """Parameters one by one; places are -1 where there is none."""

    names: tuple[str, ...]
    nbytes: npt.NDArray[np.float64]
    is_trained: npt.NDArray[np.bool_]
    forward_at: IntArray
    backward_at: IntArray
    complete_at: IntArray


def block_name(parameter: str) -> str:
    """Path of the numbered layer that a parameter belongs to; empty outside of all."""
    match = _NUMBERED.match(parameter)
    return match[0] if match else _ROOT


def blocks_of(graph: OpGraph, place: IntArray, groups: IntArray | None = None) -> list[Block]:
    """The blocks of a model, in order of use.

    Args:
        graph: of one worker's step, with parameters and gradients.
        place: shape [num_nodes], place of each node in the order of execution.
        groups: shape [p], group of devices that shares out each parameter: a block has those of
            one group; all one group if None.
    """
    parameters = _parameters(graph, place)
    if not len(parameters.nbytes):
        return []
    blocks = []
    for name, listed in (_by_name(parameters.names) or _by_size(parameters)).items():
        members = np.array(listed, dtype=np.int64)
        of_member = np.zeros(len(members), dtype=np.int64) if groups is None else groups[members]
        blocks += [
            replace(_block(name, members[of_member == group], parameters), group=group)
            for group in np.unique(of_member).tolist()
        ]
    return sorted(blocks, key=lambda one: one.forward_at)


def _parameters(graph: OpGraph, place: IntArray) -> _Parameters:
    table = graph.parameters
    if len(table.names) and len(table.gradients):
        nbytes = table.nbytes.astype(np.float64)
        if _computes_in_half(graph):
            wide = table.nbytes == _FULL_BYTES * table.elements
            nbytes = np.where(wide, _HALF_BYTES * table.elements, nbytes)
        names, is_trained = table.names, table.is_trained
        readers, gradients = table.readers, table.gradients
    else:
        traffic = graph.traffic.without_states()
        nbytes = traffic.received_bytes.astype(np.float64)
        count = len(nbytes)
        names, is_trained = ("",) * count, np.ones(count, dtype=np.bool_)
        readers = traffic.readers
        owners = gradients_to(traffic.sent_bytes, traffic.received_bytes, np.arange(count))
        gradients = np.stack([owners, traffic.senders.astype(np.int64)], axis=1)
    turn = _backward_from(graph, place)
    used = place[readers[:, 1]]
    forward = used < turn
    complete_at = np.full(len(nbytes), -1, dtype=np.int64)
    np.maximum.at(complete_at, gradients[:, 0], place[gradients[:, 1]])
    backward_at = _first(readers[~forward, 0], used[~forward], len(nbytes))
    own = (backward_at < 0) & (complete_at >= 0)
    return _Parameters(
        names=tuple(names),
        nbytes=nbytes,
        is_trained=is_trained & (complete_at >= 0),
        forward_at=_first(readers[forward, 0], used[forward], len(nbytes)),
        backward_at=np.where(own, complete_at, backward_at),
        complete_at=complete_at,
    )


def _first(owners: npt.NDArray[np.integer], places: IntArray, count: int) -> IntArray:
    """The first place of each owner; -1 where it has none."""
    never = np.iinfo(np.int64).max
    earliest = np.full(count, never, dtype=np.int64)
    np.minimum.at(earliest, owners, places)
    return np.where(earliest == never, -1, earliest)


def _backward_from(graph: OpGraph, place: IntArray) -> int:
    """Place at which the backward pass begins: that of its first op, or of the first gradient."""
    if len(graph.phases) == graph.num_nodes:
        begins = place[(graph.phases == Phase.BACKWARD) | (graph.phases == Phase.RECOMPUTE)]
    else:
        begins = place[graph.traffic.senders]
    return int(begins.min()) if len(begins) else graph.num_nodes


def _computes_in_half(graph: OpGraph) -> bool:
    """Whether a matrix product or convolution reads half precision, as under autocast."""
    return any(
        family_of(op.kind) in PRODUCT_FAMILIES and any(one.dtype in _HALF for one in op.inputs)
        for op in graph.signatures
    )


def _by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Parameters of each numbered block and of the root; nothing unless there are two blocks."""
    groups: dict[str, list[int]] = {_ROOT: []}
    for i, name in enumerate(names):
        groups.setdefault(block_name(name), []).append(i)
    if len(groups) < 3:  # the root, and one block or none
        return {}
    return {name: members for name, members in groups.items() if members}


def _by_size(parameters: _Parameters) -> dict[str, list[int]]:
    """Neighbours in order of use, `_GROUP_BYTES` or more together."""
    groups: dict[str, list[int]] = {}
    gathered: list[int] = []
    amount = 0.0
    for i in np.argsort(parameters.forward_at, kind="stable").tolist():
        gathered.append(i)
        amount += float(parameters.nbytes[i])
        if amount >= _GROUP_BYTES:
            groups[f"group {len(groups)}"] = gathered
            gathered, amount = [], 0.0
    if gathered:
        groups[f"group {len(groups)}"] = gathered
    return groups


def _block(name: str, members: IntArray, parameters: _Parameters) -> Block:
    forward, backward = parameters.forward_at[members], parameters.backward_at[members]
    trained = members[parameters.is_trained[members]]
    is_root = name == _ROOT
    needed, used = forward[forward >= 0], backward[backward >= 0]
    return Block(
        name=name,
        num_tensors=len(members),
        gathered_bytes=float(parameters.nbytes[members].sum()),
        gradient_bytes=float(parameters.nbytes[trained].sum()),
        forward_at=0 if is_root or not len(needed) else int(needed.min()),
        backward_at=None if is_root or not len(used) else int(used.min()),
        complete_at=int(parameters.complete_at[trained].max()) if len(trained) else None,
        members=tuple(members.tolist()),
    )
