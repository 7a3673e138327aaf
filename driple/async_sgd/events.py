"""The event loop of Algorithm 3.1, compiled: many workers, each with its steps, on shared links.

ready op -> queue of (worker, resource) -> running chunk -> done: dependents lose one dependency

Exclusive resources (a worker, a server's share for a worker) run one op at a time. Links carry one
chunk per worker at a time, at rates shared by all active workers. Rates change only when the set of
active transfers of a direction changes. Simultaneous events are ordered by worker, then by
resource.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["EventJob", "EventLinks", "run_steps"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_IDLE = -1
_START = -2  # pseudo-op that ends when a worker starts
_NEVER = np.inf
_NOTHING_BYTES = 1e-6

# Ready ops with a fixed order are bits of words; a position is a word index and a bit index.
PLACE_BITS = 6
WORD_BITS = 62  # of 64: words stay positive numbers
_BIT_MASK = (1 << PLACE_BITS) - 1
# The powers of 2 in a word are distinct modulo 67.
_PRIME = 67
_BIT_OF_POWER = np.zeros(_PRIME, dtype=np.int64)
_BIT_OF_POWER[[2**bit % _PRIME for bit in range(WORD_BITS)]] = np.arange(WORD_BITS)

# The compiler infers the types of arguments.
_compiled: Any = njit(cache=True, nogil=True)


class EventJob(NamedTuple):
    """Ops of a step, n of them, and S profiled steps."""

    resource: IntArray  # [n]: 0 the worker, 1 to M servers, then M downlinks, then M uplinks
    amount: FloatArray  # [S, n], seconds, or bytes
    num_waits: IntArray  # [n], ops that each waits for
    first: IntArray  # [n + 1], where the dependents of each op begin
    dependents: IntArray  # [e]
    roots: IntArray  # ops that wait for none
    place: npt.NDArray[np.int32]  # [S, n], bits of ops whose resource takes what is ready in order
    op_at: npt.NDArray[np.int32]  # [S, places], ops by place
    in_line: npt.NDArray[np.bool_]  # [R], resources that take what came first
    line_begin: IntArray  # [R], where the line of each of them begins
    line_length: IntArray  # [R]


class EventLinks(NamedTuple):
    """Rates of links and workers, and the scheduling of streams."""

    server_rate: FloatArray  # [M], bytes/s each way
    worker_rate: FloatArray  # [W]
    slowness: FloatArray  # [W], factor on the seconds of each worker's ops
    window: float  # bytes of a stream's first service; inf: streams go whole


@_compiled
def _fill(
    active: IntArray, server_rate: FloatArray, worker_rate: FloatArray, rate: FloatArray
) -> None:
    """Write the max-min fair rates of one direction, [W, M], by progressive filling."""
    num_workers, num_servers = active.shape
    unset = active.copy()
    server_left, worker_left = server_rate.copy(), worker_rate.copy()
    while True:
        share, server, worker = _NEVER, -1, -1
        for m in range(num_servers):
            count = unset[:, m].sum()
            if count and server_left[m] / count < share:
                share, server = server_left[m] / count, m
        for w in range(num_workers):
            count = unset[w].sum()
            if count and worker_left[w] / count < share:
                share, server, worker = worker_left[w] / count, -1, w
        if share == _NEVER:
            return
        for w in range(num_workers):
            for m in range(num_servers):
                if unset[w, m] and (m == server or w == worker):
                    unset[w, m] = 0
                    rate[w, m] = share
                    server_left[m] = max(server_left[m] - share, 0.0)
                    worker_left[w] = max(worker_left[w] - share, 0.0)


@_compiled
def run_steps(  # noqa: PLR0912, PLR0915, PLR0917  # parts: a tenth of the speed (decision 0010)
    job: EventJob,
    links: EventLinks,
    chosen: IntArray,
    synchronous: bool,
    start: FloatArray,
    keep: FloatArray,
) -> tuple[FloatArray, int, int]:
    """Simulate every worker.

    Args:
        job: ops of a step.
        links: links that workers and servers share.
        chosen: shape [W, N], index of the profiled step that each step replays.
        synchronous: whether all wait for each other at the end of a step.
        start: shape [W], start of each worker's first step, seconds.
        keep: shape [K, 5], buffer for chunks: worker, resource, op, start, end.

    Returns:
        End of each step, shape [W, N]; number of events; number of chunks kept.
    """
    resource, amount, num_waits = job.resource, job.amount, job.num_waits
    first, dependents, roots = job.first, job.dependents, job.roots
    place, op_at, in_line = job.place, job.op_at, job.in_line
    line_begin, line_length = job.line_begin, job.line_length
    server_rate, worker_rate, slowness = links.server_rate, links.worker_rate, links.slowness
    num_workers, num_steps = chosen.shape
    num_servers, num_ops = len(server_rate), len(resource)
    num_resources = 1 + 3 * num_servers
    shape = (num_workers, num_resources)
    way = (np.arange(num_resources) - 1) // num_servers - 1  # 0 down, 1 up
    server = (np.arange(num_resources) - 1) % num_servers
    num_words = op_at.shape[1] >> PLACE_BITS
    bits = np.zeros((num_workers, num_words), np.int64)  # ready ops of resources with an order
    lowest = np.full(shape, num_words, np.int64)  # no word of a resource before it has a bit
    line = np.empty((num_workers, num_ops), np.int64)  # ready ops of the others, as rings
    head = np.zeros(shape, np.int64)
    ready = np.zeros(shape, np.int64)  # how many
    fresh = np.empty(num_ops, np.int64)  # ops of one worker that have become ready now
    num_fresh = 0
    waits = np.empty((num_workers, num_ops), np.int64)  # ops that each op still waits for
    rest = np.empty((num_workers, num_ops), np.float64)  # what no chunk has taken yet
    running = np.full(shape, _IDLE, np.int64)
    began = np.zeros(shape, np.float64)
    ends = np.full(shape, _NEVER, np.float64)
    soonest = start.copy()  # the least of them
    ends[:, 0] = start
    running[:, 0] = _START
    left = np.zeros(shape, np.float64)  # bytes of a running chunk at `since`
    active = np.zeros((2, num_workers, num_servers), np.int64)  # transfers, down and up
    rate = np.zeros((2, num_workers, num_servers), np.float64)
    since = np.zeros(2, np.float64)  # when the rates of a direction were set
    changed = np.zeros(2, np.bool_)  # its active transfers
    step_ends = np.zeros((num_workers, num_steps), np.float64)
    step = np.zeros(num_workers, np.int64)  # that each worker is in
    done = np.zeros(num_workers, np.int64)  # ops of it
    begins = np.zeros(num_workers, np.bool_)  # workers that begin a step now
    low, high = 0, 0  # workers that something has become ready for, at most
    together = 0  # workers that have ended the same step
    num_events, num_kept = 0, 0
    now = 0.0
    while True:
        for w in range(low, high):
            profiled = chosen[w, min(step[w], num_steps - 1)]
            if begins[w]:
                begins[w] = False
                waits[w] = num_waits
                rest[w] = amount[profiled]
                num_fresh = len(roots)
                fresh[:num_fresh] = roots
            for i in range(num_fresh):
                op = fresh[i]
                r = resource[op]
                if in_line[r]:
                    tail = head[w, r] + ready[w, r]
                    if tail >= line_length[r]:
                        tail -= line_length[r]
                    line[w, line_begin[r] + tail] = op
                else:
                    word = place[profiled, op] >> PLACE_BITS
                    bits[w, word] |= 1 << (place[profiled, op] & _BIT_MASK)
                    lowest[w, r] = min(lowest[w, r], word)
                ready[w, r] += 1
            num_fresh = 0
            # Idle resources take their first ready op.
            for r in range(num_resources):
                if running[w, r] != _IDLE:
                    continue
                if not ready[w, r]:
                    if r > num_servers and active[way[r], w, server[r]]:
                        active[way[r], w, server[r]] = 0
                        changed[way[r]] = True
                    continue
                ready[w, r] -= 1
                if in_line[r]:
                    op = line[w, line_begin[r] + head[w, r]]
                    head[w, r] += 1
                    if head[w, r] == line_length[r]:
                        head[w, r] = 0
                else:
                    word = lowest[w, r]
                    while not bits[w, word]:
                        word += 1
                    lowest[w, r] = word
                    power = bits[w, word] & -bits[w, word]
                    bits[w, word] ^= power
                    op = op_at[profiled, (word << PLACE_BITS) + _BIT_OF_POWER[power % _PRIME]]
                running[w, r] = op
                began[w, r] = now
                chunk = rest[w, op]
                if r <= num_servers:
                    rest[w, op] = 0.0
                    ends[w, r] = now + chunk * (slowness[w] if r == 0 else 1.0)
                    continue
                direction, m = way[r], server[r]
                # A stream that was served before is sent completely (section 3.2.2).
                if chunk >= amount[profiled, op]:
                    chunk = min(chunk, links.window)
                rest[w, op] -= chunk
                left[w, r] = chunk
                if active[direction, w, m] and not changed[direction]:  # at the rate it has
                    ends[w, r] = now + max(chunk, _NOTHING_BYTES) / rate[direction, w, m]
                    left[w, r] += rate[direction, w, m] * (now - since[direction])
                else:
                    active[direction, w, m] = 1
                    changed[direction] = True
            least = _NEVER
            for r in range(num_resources):
                least = min(least, ends[w, r])
            soonest[w] = least
        # Reallocate links whose set of transfers has changed.
        for direction in range(2):
            if not changed[direction]:
                continue
            changed[direction] = False
            passed = now - since[direction]
            since[direction] = now
            base = 1 + num_servers * (1 + direction)
            count, slowest = 0, _NEVER
            for w in range(num_workers):
                for m in range(num_servers):
                    if active[direction, w, m]:
                        count += 1
                        slowest = min(slowest, worker_rate[w])
                        if ends[w, base + m] != _NEVER:  # not one that starts now
                            left[w, base + m] -= rate[direction, w, m] * passed
            if num_servers == 1 and count and slowest >= server_rate[0] / count:
                for w in range(num_workers):
                    rate[direction, w, 0] = server_rate[0] / count
            else:
                _fill(active[direction], server_rate, worker_rate, rate[direction])
            for w in range(num_workers):
                for m in range(num_servers):
                    if active[direction, w, m]:
                        r = base + m
                        bytes_left = max(left[w, r], _NOTHING_BYTES)
                        before = ends[w, r]
                        ends[w, r] = now + bytes_left / rate[direction, w, m]
                        if ends[w, r] <= soonest[w]:
                            soonest[w] = ends[w, r]
                        elif before == soonest[w]:
                            soonest[w] = ends[w].min()
        # The next event.
        now, w = _NEVER, -1
        for other in range(num_workers):
            if soonest[other] < now:
                now, w = soonest[other], other
        if w < 0:
            return step_ends, num_events, num_kept
        r = 0
        while ends[w, r] != now:
            r += 1
        op = running[w, r]
        running[w, r] = _IDLE
        ends[w, r] = _NEVER
        low, high = w, w + 1
        if op == _START:
            begins[w] = True
            continue
        num_events += 1
        if num_kept < len(keep):
            keep[num_kept, 0], keep[num_kept, 1], keep[num_kept, 2] = w, r, op
            keep[num_kept, 3], keep[num_kept, 4] = began[w, r], now
            num_kept += 1
        if rest[w, op] > 0:  # the rest of a stream joins the end of the queue
            fresh[0] = op
            num_fresh = 1
            continue
        for i in range(first[op], first[op + 1]):
            reader = dependents[i]
            waits[w, reader] -= 1
            if waits[w, reader] == 0:
                fresh[num_fresh] = reader
                num_fresh += 1
        done[w] += 1
        if done[w] == num_ops:
            done[w] = 0
            step_ends[w, step[w]] = now
            step[w] += 1
            together += 1
            if not synchronous:
                begins[w] = step[w] < num_steps
            elif together == num_workers:
                together = 0
                low, high = 0, num_workers
                for other in range(num_workers):
                    begins[other] = step[other] < num_steps
