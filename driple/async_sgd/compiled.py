"""Compile a job trace for simulation: the cost of each op without contention.

JobTrace, Overhead -> work of each op beyond all that it waited for -> merged ops -> CompiledJob

Recorded transfers have a request and an arrival time, but no time on the wire. Here their cost is
their bytes, and parsing of received data is work of the receiver (section 3.2.1). Ops of one
resource that always run back to back are merged into one op.

TensorFlow's order of ready ops changes from step to step: a large gradient is sent in the middle of
one step and at the end of the next. So each profiled step keeps its own order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.async_sgd.jobtrace import JobTrace, Resource, order_of
from driple.async_sgd.order import uses_of_downlinks
from driple.async_sgd.overhead import Overhead

__all__ = ["CompiledJob", "compile_job"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOMENT_S = 1e-6  # to which times are recorded
_AFTER = 0.5  # of a place: before the next
_LONG = 0.01  # of a step


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledJob:
    """Ops of a step, each after all that it waits for.

    Attributes:
        names: shape [n], name of each op; of the first op of a merged one.
        resource: shape [n]: 0 the worker; 1 to M a server; then M downlinks, then M uplinks.
        amount: shape [steps, n], seconds, or bytes of a transfer.
        rank: shape [steps, n], priority: a resource runs the ready op with the lowest rank.
        edges: shape [e, 2], (op, op that waits for it).
        num_servers: M.
        batch_size: examples of a step.
        step_s: shape [steps], as profiled.
        transfer_of: shape [n], op of the trace for a transfer; -1 for other ops.
        first_use: shape [n], for a downlink, its first reader in the order of the unmerged ops.
        load: shape [n], for a downlink, the smallest set of downlinks that an op waits for with it.
    """

    names: tuple[str, ...]
    resource: IntArray
    amount: FloatArray
    rank: IntArray
    edges: IntArray
    num_servers: int
    batch_size: int
    step_s: FloatArray
    transfer_of: IntArray
    first_use: IntArray
    load: IntArray

    @property
    def num_ops(self) -> int:
        """Number of ops of a step."""
        return len(self.names)


@dataclass(slots=True)
class _Op:
    """An op during compilation."""

    name: str
    resource: int
    amount: FloatArray  # [steps]
    waits_for: list[int]
    place: FloatArray  # [steps], of ops that are ready, that of the lowest place comes first
    transfer: int = -1


def compile_job(trace: JobTrace, overhead: Overhead, *, merge: bool = True) -> CompiledJob:
    """Compile a trace into ops with their individual costs.

    With one worker the simulated steps take as long as the traced ones, as far as the model of
    transfers is right.

    Args:
        trace: trace of one worker.
        overhead: cost of parsing received data, subtracted from recorded transfers.
        merge: merge ops that always run back to back; faster, with the same result.
    """
    servers = trace.num_servers
    waits_for: list[list[int]] = [[] for _ in trace.names]
    for source, target in trace.edges.tolist():
        waits_for[target].append(source)
    order = _order(np.median(trace.end_s, axis=0), trace.edges)
    place = np.empty(trace.end_s.shape)
    for row, ends in zip(place, trace.end_s, strict=True):
        row[_order(ends, trace.edges)] = np.arange(len(trace.names))
    handed = _handed_over(trace, waits_for, place)
    cost = np.stack([
        _costs(trace, step, waits_for, overhead) for step in range(trace.num_steps)
    ])  # fmt: skip
    nothing = np.zeros(trace.num_steps)
    ops = [_Op("begin of the step", 0, trace.start_s.min(axis=1), [], nothing - 1)]
    stands_for: dict[int, int] = {}  # op of the trace -> op that its dependents wait for
    for i in order.tolist():
        kind, server = Resource(int(trace.resources[i])), int(trace.servers[i])
        waits = [stands_for[j] for j in waits_for[i]] or [0]
        if not kind.is_link:
            resource = 0 if kind is Resource.WORKER else 1 + server
            ops.append(_Op(trace.names[i], resource, cost[:, i], waits, place[:, i]))
        else:
            down = kind is Resource.DOWNLINK
            if i in handed:
                sender = 1 + server if down else 0
                name = f"hand over {trace.names[i]}"
                ops.append(_Op(name, sender, nothing, waits, handed[i]))
                waits = [len(ops) - 1]
            resource = 1 + servers + server + (0 if down else servers)
            size = np.full(trace.num_steps, float(trace.sizes[i]))
            ops.append(_Op(trace.names[i], resource, size, waits, place[:, i], i))
            parsing = np.full(trace.num_steps, float(overhead.of(trace.sizes[i])))
            receiver = 0 if down else 1 + server
            name = f"parse {trace.names[i]}"
            ops.append(_Op(name, receiver, parsing, [len(ops) - 1], place[:, i]))
        stands_for[i] = len(ops) - 1
    read = {j for op in ops for j in op.waits_for}
    rest = trace.step_s - trace.end_s.max(axis=1)
    unread = sorted(set(range(len(ops))) - read)
    ops.append(_Op("end of the step", 0, rest, unread, nothing + len(place[0])))
    return _merged(ops, trace, merge=merge)


def _handed_over(
    trace: JobTrace, waits_for: list[list[int]], place: FloatArray
) -> dict[int, FloatArray]:
    """Position at which the sender hands over a tensor, for tensors that wait long in some step.

    TensorFlow hands over a tensor when its executor reaches the sending op: with one thread, after
    all ops before it in this step.

    Returns:
        Position of the hand-over in each step, by transfer.
    """
    handed_over = {}
    senders = {
        Resource.UPLINK: trace.resources == Resource.WORKER,
        Resource.DOWNLINK: trace.resources == Resource.SERVER,
    }
    steps = range(trace.num_steps)
    for kind, sends in senders.items():
        for server in range(trace.num_servers):
            ran = np.flatnonzero(sends & ((kind == Resource.UPLINK) | (trace.servers == server)))
            if not len(ran):
                continue
            # Ops of the sender by position, and the end of all ops up to each of them.
            by_place = [ran[np.argsort(place[step, ran])] for step in steps]
            ended = [np.maximum.accumulate(trace.end_s[step, by_place[step]]) for step in steps]
            for i in np.flatnonzero((trace.resources == kind) & (trace.servers == server)).tolist():
                handed = place[:, waits_for[i]].max(axis=1, initial=-1.0)
                made_s = trace.end_s[:, waits_for[i]].max(axis=1, initial=0.0)
                late = trace.start_s[:, i] > made_s + _LONG * trace.step_s
                for step in np.flatnonzero(late).tolist():
                    asked_s = trace.start_s[step, i] + _MOMENT_S
                    count = int(np.searchsorted(ended[step], asked_s, side="right"))
                    if count:
                        last = place[step, by_place[step][count - 1]]
                        handed[step] = max(handed[step], min(last, place[step, i]))
                if late.any():
                    handed_over[i] = handed + _AFTER
    return handed_over


def _order(end_s: FloatArray, edges: npt.NDArray[np.int32]) -> IntArray:
    """Ops by end time, shape [n], in a topological order."""
    by_end = np.argsort(end_s, kind="stable")
    place = np.empty(len(by_end), dtype=np.int32)
    place[by_end] = np.arange(len(by_end), dtype=np.int32)
    return by_end[order_of(len(by_end), place[edges].reshape(-1, 2))]


def _costs(
    trace: JobTrace, step: int, waits_for: list[list[int]], overhead: Overhead
) -> FloatArray:
    """Time of each op of worker and servers in a step, without waiting, seconds.

    If an idle resource starts an op late although its inputs are ready, the delay counts as time of
    the op. Concurrent ops of one resource share the time: each gets the part after the end of those
    that ended before it.
    """
    starts, ends = trace.start_s[step].tolist(), trace.end_s[step].tolist()
    parsing = overhead.of(trace.sizes).tolist()
    used: dict[tuple[int, int], list[tuple[float, float, int]]] = defaultdict(list)
    for i, kind in enumerate(trace.resources.tolist()):
        server, start = int(trace.servers[i]), starts[i]
        if kind >= Resource.DOWNLINK:  # only the parsing by its receiver counts
            start = max(start, ends[i] - parsing[i])
        at_worker = kind in {Resource.WORKER, Resource.DOWNLINK}
        used[(0, 0) if at_worker else (1, server)].append((start, ends[i], i))
    cost = np.zeros(len(ends))
    begin = min(starts)
    for spans in used.values():
        idle_since = _idle_before(spans, begin)
        covered: list[tuple[float, float]] = []
        for start, end, i in sorted(spans, key=lambda span: (span[1], span[0])):
            if trace.resources[i] < Resource.DOWNLINK:
                there = max([ends[j] for j in waits_for[i]], default=begin)
                start = min(start, max(idle_since[i], there))  # noqa: PLW2901
            free = end - start
            low = start
            while covered and covered[-1][1] > start:
                busy = covered.pop()
                free -= busy[1] - max(busy[0], start)
                low = min(low, busy[0])
            covered.append((low, end))
            cost[i] = free
    return cost


def _idle_before(spans: list[tuple[float, float, int]], begin: float) -> dict[int, float]:
    """Start of the idle time of a resource before each op; the op's own start if it was busy."""
    idle_from = {}
    free = begin
    for start, end, i in sorted(spans):
        idle_from[i] = free if start > free else start
        free = max(free, end)
    return idle_from


def _merged(ops: list[_Op], trace: JobTrace, *, merge: bool) -> CompiledJob:
    """Merge ops that always run back to back on one resource.

    A resource runs ready ops in order of position. An op is merged with its predecessor on the
    resource under these conditions: the predecessor is the same in all steps; both wait for the
    same ops of other resources (so the op is ready neither before its predecessor nor after its
    end); any earlier op waits for no others (so none can become ready in between); and no op of
    another resource waits for the predecessor.
    """
    gates = [0] * len(ops)  # bit mask of the ops of other resources that it waits for
    feeds_others = [False] * len(ops)
    for i, op in enumerate(ops):
        for j in op.waits_for:
            other = ops[j].resource != op.resource
            feeds_others[j] |= other
            gates[i] |= gates[j] | (1 << j if other else 0)
    links = 1 + trace.num_servers
    down = [links <= op.resource < links + trace.num_servers for op in ops]
    first_use, load = uses_of_downlinks([op.waits_for for op in ops], down)
    rank = _ranks(ops)
    complete = _complete(ops, gates, rank)
    group_of = list(range(len(ops)))
    current: dict[int, tuple[int, int]] = {}  # resource -> first and last op of the current group
    for i, op in enumerate(ops):
        if op.resource >= links or not merge:
            continue
        first, last = current.get(op.resource, (i, i))
        follows = complete[first] and (rank[:, i] == rank[:, last] + 1).all()
        if first != i and follows and gates[i] == gates[first]:
            group_of[i] = first
        else:
            first = i
        current[op.resource] = first, i
        if feeds_others[i]:
            current.pop(op.resource)
    firsts = sorted(set(group_of))
    number = {first: n for n, first in enumerate(firsts)}
    amount = np.zeros((trace.num_steps, len(firsts)))
    edges = set()
    for i, op in enumerate(ops):
        mine = number[group_of[i]]
        amount[:, mine] += op.amount
        edges |= {(number[group_of[j]], mine) for j in op.waits_for if group_of[j] != group_of[i]}
    return CompiledJob(
        names=tuple(ops[i].name for i in firsts),
        resource=np.array([ops[i].resource for i in firsts], dtype=np.int64),
        amount=amount,
        rank=rank[:, firsts],
        edges=np.array(sorted(edges), dtype=np.int64).reshape(-1, 2),
        num_servers=trace.num_servers,
        batch_size=trace.batch_size,
        step_s=trace.step_s,
        transfer_of=np.array([ops[i].transfer for i in firsts], dtype=np.int64),
        first_use=first_use[firsts],
        load=load[firsts],
    )


def _ranks(ops: list[_Op]) -> IntArray:
    """Rank by position among the ops of a resource, shape [steps, n]; ties by number."""
    place = np.stack([op.place for op in ops], axis=1)
    resource = np.array([op.resource for op in ops])
    rank = np.empty(place.shape, dtype=np.int64)
    for own in (np.flatnonzero(resource == one) for one in np.unique(resource)):
        for row, places in zip(rank, place, strict=True):
            row[own[np.argsort(places[own], kind="stable")]] = np.arange(len(own))
    return rank


def _complete(ops: list[_Op], gates: list[int], rank: IntArray) -> list[bool]:
    """Whether an op waits for all dependencies of its resource's earlier ops, in every step."""
    complete = [True] * len(ops)
    resource = np.array([op.resource for op in ops])
    for row in rank:
        seen = dict.fromkeys(resource.tolist(), 0)
        for i in np.lexsort((row, resource)).tolist():
            complete[i] &= not seen[ops[i].resource] & ~gates[i]
            seen[ops[i].resource] |= gates[i]
    return complete
