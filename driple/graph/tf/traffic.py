"""Traffic between the worker and other machines in one step, tensor by tensor.

    data edges between machines  ->  one message for each output and device that it goes to

TensorFlow's partitioner puts one Send and one Recv for each tensor and device that needs it
(graph_partition.cc). A worker's own processor is no other machine: what comes from it crosses PCIe.
Its other GPUs are workers of their own, so that what they receive and send does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.opgraph import Traffic
from driple.graph.tf.describe import DataInputs
from driple.graph.tf.places import Places

__all__ = ["traffic_of"]

# Nodes that the search for a message's reader or maker on the compute device may pass.
_MOST_PASSED = 2000


def traffic_of(
    inputs: DataInputs,
    runs: npt.NDArray[np.bool_],
    places: Places,
    handed_on: Sequence[int],
    nbytes: Callable[[int, int, int | None], int],
) -> Traffic:
    """Messages of a step.

    Args:
        inputs: what each node reads.
        runs: shape [num_nodes], whether the step runs it.
        places: where nodes run.
        handed_on: nodes whose outputs go to servers though nobody in the graph reads them.
        nbytes: bytes of an output of a node in a step; also given the node that reads it.
    """
    kept = places.kept
    received, sent, readers_here, states = _crossings(inputs, runs, places)
    for source in handed_on:
        sent.setdefault((source, 0, -1), -1)
    position = np.cumsum(kept) - 1
    received_bytes: list[int] = []
    received_states: list[bool] = []
    pairs: list[tuple[int, int]] = []
    for (source, slot, there), targets in received.items():
        size = nbytes(source, slot, None if places.fetched[source] >= 0 else targets[0])
        if not size:
            continue
        for target in _nearest(targets, kept, lambda i: readers_here.get(i, ())):
            pairs.append((len(received_bytes), int(position[target])))
        received_bytes.append(size)
        received_states.append((source, slot, there) in states)
    sent_bytes: list[int] = []
    sent_states: list[bool] = []
    senders: list[int] = []
    for (source, slot, there), target in sent.items():
        size = nbytes(source, slot, None if target < 0 else target)
        makers = _nearest(
            [source],
            kept,
            lambda i: [j for j, _ in inputs[i] if runs[j] and not places.is_remote[j]],
        )
        if size and makers:
            sent_bytes.append(size)
            senders.append(int(position[max(makers)]))
            sent_states.append((source, slot, there) in states)
    return Traffic(
        received_bytes=np.array(received_bytes, dtype=np.int64),
        readers=np.array(pairs, dtype=np.int32).reshape(-1, 2),
        sent_bytes=np.array(sent_bytes, dtype=np.int64),
        senders=np.array(senders, dtype=np.int32),
        received_states=np.array(received_states * bool(states), dtype=np.bool_),
        sent_states=np.array(sent_states * bool(states), dtype=np.bool_),
    )


# Node, output and device that it goes to.
_Message = tuple[int, int, int]


def _crossings(
    inputs: DataInputs, runs: npt.NDArray[np.bool_], places: Places
) -> tuple[dict[_Message, list[int]], dict[_Message, int], dict[int, list[int]], set[_Message]]:
    """Readers of each message received, a reader of each sent, readers of nodes on the worker.

    Last, the messages that carry the states of an optimizer, where servers are named.
    """
    remote, apart, device = places.is_remote, places.is_apart, places.device
    same_as = places.slots.same_as if places.layout != "servers" else {}
    received: dict[_Message, list[int]] = {}
    sent: dict[_Message, int] = {}
    readers_here: dict[int, list[int]] = {}
    fetched: dict[_Message, tuple[int, int]] = {}  # by variable and device, the first reading
    others: set[_Message] = set()
    for target in np.flatnonzero(runs).tolist():
        for source, slot in inputs[target]:
            if apart[target] or apart[source]:
                continue
            if not remote[source] and not remote[target]:
                readers_here.setdefault(source, []).append(target)
            elif remote[source] != remote[target]:
                there = int(device[target])
                key = (source, slot, there)
                if remote[source]:
                    if (variable := int(places.fetched[source])) >= 0:
                        first = fetched.setdefault((variable, 0, there), (source, slot))
                        key = (*first, there)
                    received.setdefault(key, []).append(target)
                else:
                    key = (same_as.get(source, source), slot, there)
                    sent.setdefault(key, target)
                if not places.is_state(source, target):
                    others.add(key)
    states = {key for key in (*received, *sent) if key not in others}
    return received, sent, readers_here, states if places.layout == "servers" else set()


def _nearest(
    starts: Sequence[int],
    kept: npt.NDArray[np.bool_],
    onwards: Callable[[int], Sequence[int]],
) -> list[int]:
    """Nodes of the compute device that some nodes of the worker are, or lead to."""
    nearest, seen, todo = [], set(starts), list(starts)
    while todo and len(seen) < _MOST_PASSED:
        i = todo.pop()
        if kept[i]:
            nearest.append(i)
            continue
        for after in onwards(i):
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return sorted(nearest)
