"""A job trace made ready for simulating: what each op costs when nobody else is there.

JobTrace, Overhead -> work of each op beyond all that it waited for -> merged ops -> CompiledJob

Recorded transfers tell when they were asked for and when they were there, not when they were on the
wire; here they are their bytes, and the parsing of what was received is work of the receiver
(section 3.2.1). Ops of one resource that nothing can come between are one op.

TensorFlow runs what is ready in an order that changes from step to step: a large gradient goes out
in the middle of one step and at the end of the next. So each profiled step keeps its own order.
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
        names: of the ops, n; of merged ones, the first.
        resource: shape [n]: 0 the worker; 1 to M a server; then M downlinks, then M uplinks.
        amount: shape [steps, n], seconds, or bytes of a transfer.
        rank: shape [steps, n], of ops that are ready, a resource prefers that of the lowest rank.
        edges: shape [e, 2], (op, op that waits for it).
        num_servers: M.
        batch_size: examples of a step.
        step_s: shape [steps], as profiled.
        transfer_of: shape [n], op of the trace that a transfer is; -1 for all else.
        first_use: shape [n], of a downlink, its first reader in the order of the unmerged ops.
        load: shape [n], of a downlink, the fewest others and itself that an op waits for.
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
        """Ops of a step."""
        return len(self.names)


@dataclass(slots=True)
class _Op:
    """An op on its way into a compiled job."""

    name: str
    resource: int
    amount: FloatArray  # [steps]
    waits_for: list[int]
    place: FloatArray  # [steps], of ops that are ready, that of the lowest place comes first
    transfer: int = -1


def compile_job(trace: JobTrace, overhead: Overhead, *, merge: bool = True) -> CompiledJob:
    """The ops of a trace, with what each costs by itself.

    With one worker they take as long as in the trace, step by step, as far as transfers go as
    their model says.

    Args:
        trace: of one worker.
        overhead: of parsing what is received, taken off recorded transfers.
        merge: put ops together that nothing can come between; the result is the same, sooner.
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
    """When the sender comes to hand over a tensor, if in some step that is long after it was made.

    TensorFlow hands over a tensor when its executor comes to the sending op: with one thread, that
    is when those that go before it in this step have run.

    Returns:
        The place of handing over in each step, by transfer.
    """
    found = {}
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
            # Ops of the sender by place, and when all up to each of them had ended.
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
                    found[i] = handed + _AFTER
    return found


def _order(end_s: FloatArray, edges: npt.NDArray[np.int32]) -> IntArray:
    """Ops by when they end, shape [n], each after all that it waits for."""
    by_end = np.argsort(end_s, kind="stable")
    place = np.empty(len(by_end), dtype=np.int32)
    place[by_end] = np.arange(len(by_end), dtype=np.int32)
    return by_end[order_of(len(by_end), place[edges].reshape(-1, 2))]


def _costs(
    trace: JobTrace, step: int, waits_for: list[list[int]], overhead: Overhead
) -> FloatArray:
    """Seconds of each op of worker and servers in a step, beyond what it had to wait for.

    An idle resource that starts an op late, though all that it reads is there, spends that time on
    the op. What ran at the same time on one resource shares the time: each has what those that
    ended before it have not.
    """
    starts, ends = trace.start_s[step].tolist(), trace.end_s[step].tolist()
    parsing = overhead.of(trace.sizes).tolist()
    used: dict[tuple[int, int], list[tuple[float, float, int]]] = defaultdict(list)
    for i, kind in enumerate(trace.resources.tolist()):
        server, start = int(trace.servers[i]), starts[i]
        if kind >= Resource.DOWNLINK:  # what counts is that its receiver parses it
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
                one = covered.pop()
                free -= one[1] - max(one[0], start)
                low = min(low, one[0])
            covered.append((low, end))
            cost[i] = free
    return cost


def _idle_before(spans: list[tuple[float, float, int]], begin: float) -> dict[int, float]:
    """Since when a resource has been idle when an op starts: its own start if it was not."""
    found = {}
    free = begin
    for start, end, i in sorted(spans):
        found[i] = free if start > free else start
        free = max(free, end)
    return found


def _merged(ops: list[_Op], trace: JobTrace, *, merge: bool) -> CompiledJob:
    """Ops that always run one right after the other on a resource, as one.

    A resource runs what is ready in order of place. An op joins the one before it on its resource,
    if that is the same in all steps, if both wait for the same ops from elsewhere (then it is ready
    neither before that one nor later than its end), if these are all that any op before them waits
    for (then none of those can become ready in between), and if nothing elsewhere waits for them
    yet.
    """
    gates = [0] * len(ops)  # ops of other resources that it waits for, as bits
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
    current: dict[int, tuple[int, int]] = {}  # resource -> first and last op of a group that grows
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
    """By place among the ops of its resource, shape [steps, n]; of equal places, by number."""
    place = np.stack([op.place for op in ops], axis=1)
    resource = np.array([op.resource for op in ops])
    rank = np.empty(place.shape, dtype=np.int64)
    for own in (np.flatnonzero(resource == one) for one in np.unique(resource)):
        for row, places in zip(rank, place, strict=True):
            row[own[np.argsort(places[own], kind="stable")]] = np.arange(len(own))
    return rank


def _complete(ops: list[_Op], gates: list[int], rank: IntArray) -> list[bool]:
    """Whether an op waits for all that those before it on its resource wait for, in every step."""
    complete = [True] * len(ops)
    resource = np.array([op.resource for op in ops])
    for row in rank:
        seen = dict.fromkeys(resource.tolist(), 0)
        for i in np.lexsort((row, resource)).tolist():
            complete[i] &= not seen[ops[i].resource] & ~gates[i]
            seen[ops[i].resource] |= gates[i]
    return complete
