"""Requests and frees of two training steps, in order, and bytes that live at each node.

    DeviceTensors -> what the allocator is asked for -> AllocatorPeak
    DeviceTensors -> shape [num_nodes + 1, kinds], bytes at each node and in the update

Two steps, since the first makes the optimizer's states between what activations have left, and the
second runs beside them.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from driple.graph.step_facts import TensorRole
from driple.memory.allocator import MIN_BLOCK_BYTES, AllocatorPeak, played
from driple.memory.device_tensors import COMMUNICATION, DeviceTensors
from driple.memory.timeline import bytes_at_nodes, rounded

__all__ = ["NUM_KINDS", "bytes_by_kind", "played_steps"]

IntArray = npt.NDArray[np.int64]
NUM_KINDS = COMMUNICATION + 1
_STEPS = 2
_MOST_PLAYED = 10_000
_PLAYED: dict[bytes, AllocatorPeak] = {}  # by digest of the requests


def played_steps(
    tensors: DeviceTensors,
    *,
    capacity_bytes: float | None = None,
    expandable: bool = False,
    rounding: int = MIN_BLOCK_BYTES,
) -> AllocatorPeak:
    """The allocator's peaks over two steps.

    The same requests are played once: clusters that hold a job alike differ in nothing here.

    Args:
        tensors: of a step.
        capacity_bytes: memory that the allocator may reserve; None for no limit.
        expandable: whether its segments grow.
        rounding: bytes, each request takes a multiple of it.
    """
    digest = hashlib.sha256(repr((capacity_bytes, expandable, rounding)).encode())
    sizes = np.concatenate([tensors.nbytes, tensors.states, tensors.temporary])
    for part in (sizes, tensors.made_by, tensors.freed_after):
        digest.update(repr(part.shape).encode())
        digest.update(part.astype(np.int64).tobytes())
    digest.update(repr((tensors.num_nodes, len(tensors.states))).encode())
    key = digest.digest()
    peak = _PLAYED.get(key)
    if peak is None:
        peak = played(
            sizes.tolist(),
            _events(tensors),
            capacity_bytes=capacity_bytes,
            expandable=expandable,
            rounding=rounding,
        )
        if len(_PLAYED) >= _MOST_PLAYED:
            _PLAYED.clear()
        _PLAYED[key] = peak
    return peak


def _events(tensors: DeviceTensors) -> list[int]:
    """`i` makes tensor i, `~i` frees it; states follow the tensors, then what updates make."""
    count, end = len(tensors.nbytes), tensors.num_nodes
    starts, freed = tensors.made_by, np.maximum(tensors.freed_after, tensors.made_by)
    numbers = np.arange(count, dtype=np.int64)
    before = numbers[starts < 0].tolist()
    inside = numbers[starts >= 0]
    dies = numbers[(freed < end) & (starts >= 0)]
    # At a node first all that it makes, then all that it is the last to use.
    at = np.concatenate([2 * starts[inside], 2 * freed[dies] + 1])
    moves = np.concatenate([inside, ~dies])
    step = moves[np.argsort(at, kind="stable")].tolist()
    last = (~numbers[(freed >= end) & (starts >= 0)]).tolist()  # such as gradients, set to None
    num_states = len(tensors.states)
    states = list(range(count, count + num_states))
    temporary = list(range(count + num_states, count + num_states + len(tensors.temporary)))
    update = temporary + [~one for one in temporary]
    events: list[int] = before + step + states + update
    for _ in range(_STEPS - 1):
        events += last + step + update
    return events


def bytes_by_kind(tensors: DeviceTensors, rounding: int = MIN_BLOCK_BYTES) -> IntArray:
    """Bytes at each node and in the update, by kind, in a step that has all states.

    Args:
        tensors: of a step.
        rounding: bytes, each tensor takes a multiple of it.

    Returns:
        Shape [num_nodes + 1, NUM_KINDS].
    """
    end = tensors.num_nodes
    by_kind = bytes_at_nodes(
        rounded(tensors.nbytes, rounding),
        tensors.made_by,
        tensors.freed_after,
        tensors.kinds,
        (end, NUM_KINDS),
    )
    by_kind[:, TensorRole.OPTIMIZER_STATE] += int(rounded(tensors.states, rounding).sum())
    by_kind[end, TensorRole.TEMPORARY] += int(rounded(tensors.temporary, rounding).sum())
    return by_kind
