"""What one worker does in a step: parameters it waits for, computing, gradients it sends.

    OpGraph, seconds of each op -> order of execution -> segments between arrivals and departures

What cannot interact is put together: ops between two points at which a parameter must have come or
a gradient leaves are one segment, and small neighbouring tensors travel as one message.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from driple.checks import check_whole
from driple.errors import SimulationError
from driple.graph.opgraph import OpGraph
from driple.step.phases import PhasePart, parts_between

__all__ = ["Message", "OpTimes", "Segment", "StepPlan", "execution_order", "plan_step",
           "readers_and_waiting", "segments_between"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

# Messages of a step and direction: more would follow single tensors closer, at the price of events.
MOST_MESSAGES = 40
# Rounding of a segment's times, which are differences of sums over the whole step.
_ROUNDING = 1e-9
_LOOP_BACK = frozenset({"next_iteration"})


@dataclass(frozen=True, kw_only=True, slots=True)
class OpTimes:
    """How long each op of a graph keeps the device, all its turns together.

    Attributes:
        duration_s: shape [num_nodes], from the start of the op to that of the next.
        busy_s: shape [num_nodes], a kernel runs; the rest waits for the next launch.
        memory_s: shape [num_nodes], a kernel reads or writes device memory.
        sent_bytes: shape [num_nodes], bytes that the device sends meanwhile, in exchanges for which
            it waits; None if there are none.
        exchange_s: shape [num_nodes], seconds of these exchanges; None if there are none.
        phases: shape [num_nodes], a `Phase` each; None if unknown.
    """

    duration_s: FloatArray
    busy_s: FloatArray
    memory_s: FloatArray
    sent_bytes: FloatArray | None = None
    exchange_s: FloatArray | None = None
    phases: npt.NDArray[np.integer] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Tensors that travel together.

    Attributes:
        server: number of the parameter server that they come from or go to; without servers, of
            the group of devices that exchanges them.
        nbytes: bytes of all of them.
        tensors: how many there are.
    """

    server: int
    nbytes: float
    tensors: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Ops that run one after another without waiting for the network.

    Attributes:
        needs: messages of parameters, in order, that must have come before it starts.
        duration_s: seconds of the device.
        busy_s: seconds in which a kernel runs.
        memory_s: seconds in which a kernel uses device memory.
        sends: gradients that leave at its end.
        sent_bytes: bytes that the device sends within it, in exchanges for which it waits.
        parts: its phases in order, each with its share of these seconds; empty if unknown.
    """

    needs: int
    duration_s: float
    busy_s: float
    memory_s: float
    sends: tuple[Message, ...] = ()
    sent_bytes: float = 0.0
    parts: tuple[PhasePart, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPlan:
    """One step of one worker.

    Attributes:
        pulls: messages of parameters in the order in which they are needed.
        segments: what it computes.
        passes: how often its messages of gradients are repeated in a step.

    Raises:
        ConfigError: a segment needs more messages than there are, so that it could never start.
    """

    pulls: tuple[Message, ...]
    segments: tuple[Segment, ...]
    passes: int = 1

    def __post_init__(self) -> None:
        for number, segment in enumerate(self.segments):
            check_whole(f"needs of segment {number}", segment.needs, 0, len(self.pulls))

    @property
    def num_last_sends(self) -> int:
        """Messages of gradients of the last pass that sends them."""
        return sum(len(segment.sends) for segment in self.segments) // self.passes

    @property
    def compute_s(self) -> float:
        """Seconds of the device in a step."""
        return sum(segment.duration_s for segment in self.segments)


def execution_order(graph: OpGraph) -> npt.NDArray[np.int64]:
    """Positions of the nodes in the order in which one stream runs them.

    A node becomes ready when all that it reads is done; among ready nodes the first in the file
    runs first, as TensorFlow adds ops to a graph in the order of the program.
    """
    readers, waiting = readers_and_waiting(graph)
    ready = [i for i, count in enumerate(waiting) if not count]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for target in readers[node]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, target)
    return np.array(order, dtype=np.int64)


def readers_and_waiting(graph: OpGraph) -> tuple[list[list[int]], list[int]]:
    """Readers of each node, and how many nodes it waits for, within one turn of a loop."""
    readers: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    waiting = [0] * graph.num_nodes
    back = graph.nodes_of(_LOOP_BACK).tolist()
    for source, target in graph.edges.tolist():
        if not back[source]:
            readers[source].append(target)
            waiting[target] += 1
    return readers, waiting


def plan_step(
    graph: OpGraph,
    times: OpTimes,
    pulled_from: Sequence[int],
    pushed_to: Sequence[int],
    order: npt.NDArray[np.int64] | None = None,
) -> StepPlan:
    """The step of a worker, as segments and messages.

    Args:
        graph: of the worker.
        times: of its ops on the worker's device.
        pulled_from: server of each tensor in `graph.traffic.received_bytes`.
        pushed_to: server of each tensor in `graph.traffic.sent_bytes`.
        order: of its execution, if it is known already.

    Raises:
        SimulationError: a segment keeps its device, or the device's memory, busy for more than all
            of its time.
    """
    order = execution_order(graph) if order is None else order
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[order] = np.arange(len(order))
    traffic = graph.traffic
    first_use = np.full(len(traffic.received_bytes), len(order), dtype=np.int64)
    np.minimum.at(first_use, traffic.readers[:, 0], place[traffic.readers[:, 1]])
    pulls = _messages(first_use, traffic.received_bytes, pulled_from, last=False)
    pushes = _messages(place[traffic.senders] + 1, traffic.sent_bytes, pushed_to, last=True)
    return segments_between(order, times, pulls, pushes)


def segments_between(
    order: npt.NDArray[np.int64],
    times: OpTimes,
    pulls: Sequence[tuple[int, Message]],
    pushes: Sequence[tuple[int, Message]],
    share: float = 1.0,
) -> StepPlan:
    """A plan whose segments begin where a message must have come or end where one leaves.

    Args:
        order: of execution.
        times: of the ops.
        pulls: place in the order and message of what comes, sorted by place.
        pushes: place in the order, after the last op, and message of what leaves, sorted by place.
        share: of each op's time that counts.

    Raises:
        SimulationError: as `plan_step`.
    """
    ends = np.unique([*(at for at, _ in pulls), *(at for at, _ in pushes), 0, len(order)])
    nothing = np.zeros(len(times.duration_s))
    sent = nothing if times.sent_bytes is None else times.sent_bytes
    waits = nothing if times.exchange_s is None else times.exchange_s
    sums = [
        share * np.concatenate(([0.0], np.cumsum(values[order])))
        for values in (times.duration_s, times.busy_s, times.memory_s, sent, waits)
    ]
    of_parts = [*sums[:3], sums[4]]
    phases = None if times.phases is None else times.phases[order]
    leaving: dict[int, list[Message]] = {}
    for at, message in pushes:
        leaving.setdefault(at, []).append(message)
    gates = np.array([at for at, _ in pulls], dtype=np.int64)
    segments = tuple(
        Segment(
            needs=int(np.searchsorted(gates, begin, side="right")),
            duration_s=float(sums[0][end] - sums[0][begin]),
            busy_s=float(sums[1][end] - sums[1][begin]),
            memory_s=float(sums[2][end] - sums[2][begin]),
            sends=tuple(leaving.get(end, ())),
            sent_bytes=float(sums[3][end] - sums[3][begin]),
            parts=() if phases is None else parts_between(phases, of_parts, begin, end),
        )
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )
    plan = StepPlan(pulls=tuple(message for _, message in pulls), segments=segments)
    _check_shares(plan)
    return plan


def _check_shares(plan: StepPlan) -> None:
    """Raise SimulationError unless 0 <= memory time <= kernel time <= duration in each segment.

    Infinite times pass: their step is refused for its length.
    """
    allowed_s = _ROUNDING * plan.compute_s
    for number, segment in enumerate(plan.segments):
        rising = (0.0, segment.memory_s, segment.busy_s, segment.duration_s)
        if any(less > more + allowed_s for less, more in pairwise(rising)):
            raise SimulationError(
                f"segment {number} of a simulated step lasts {segment.duration_s:.3g} s, its "
                f"kernels {segment.busy_s:.3g} s and their memory traffic {segment.memory_s:.3g} "
                "s, each of which must be from 0 to 100 % of the one before; this is a fault of "
                "Driple: report it with the graph"
            )


def _messages(
    places: npt.NDArray[np.int64],
    nbytes: npt.NDArray[np.int64],
    servers: Sequence[int],
    *,
    last: bool,
) -> list[tuple[int, Message]]:
    """Small neighbours together, those of each server as one message, in order of their place.

    Which tensors are neighbours does not depend on where they are: more servers do not make a
    message wait for more of them. One of parameters must be there for the first of its tensors; one
    of gradients leaves when the last of them is made.
    """
    least = nbytes.sum() / MOST_MESSAGES
    messages: list[tuple[int, Message]] = []
    gathered: list[int] = []  # tensors so far
    amount = 0.0
    for i in np.argsort(places, kind="stable").tolist():
        if amount >= least and amount > 0 and places[i] != places[gathered[-1 if last else 0]]:
            messages += _by_server(gathered, places, nbytes, servers, last=last)
            gathered, amount = [], 0.0
        gathered.append(i)
        amount += float(nbytes[i])
    messages += _by_server(gathered, places, nbytes, servers, last=last)
    return sorted(messages, key=lambda item: item[0])


def _by_server(
    tensors: Sequence[int],
    places: npt.NDArray[np.int64],
    nbytes: npt.NDArray[np.int64],
    servers: Sequence[int],
    *,
    last: bool,
) -> list[tuple[int, Message]]:
    """Place and message of each server that holds some of these tensors, which are in order."""
    held: dict[int, list[int]] = {}
    for i in tensors:
        held.setdefault(servers[i], []).append(i)
    return [
        (int(places[some[-1 if last else 0]]), Message(server, amount, len(some)))
        for server, some in held.items()
        if (amount := float(nbytes[some].sum()))
    ]
