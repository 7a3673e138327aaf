"""The event loop of Algorithm 3.1, compiled: many workers, each with its steps, on shared links.

ready op -> heap of (worker, resource) -> running chunk -> done: dependents lose one wait

Exclusive resources (a worker, a server's share for a worker) run one op at a time; links carry one
chunk per worker at a time, at rates that all active workers share. Rates change only when the set
of active transfers of a direction changes. Events of one moment go by worker, then by resource.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["IDLE", "run_steps"]

IDLE = -1
_NEVER = np.inf
_SHIFT = 1 << 21  # above any op's number: heap entries are key * _SHIFT + op
_NOTHING_BYTES = 1e-6

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba has no types
def _push(heap, size, entry):  # type: ignore[no-untyped-def]  # compiled
    """Put an entry on a heap that holds `size` of them."""
    i = size
    heap[i] = entry
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= heap[i]:
            break
        heap[up], heap[i] = heap[i], heap[up]
        i = up


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pop(heap, size):  # type: ignore[no-untyped-def]
    """Take the least entry off a heap that holds `size` of them."""
    least = heap[0]
    size -= 1
    heap[0] = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[i] <= heap[child]:
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child
    return least


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _share(active, server_rate, worker_rate, rates):  # type: ignore[no-untyped-def]
    """Max-min fair rates of one direction (progressive filling).

    active: [W, M] whether worker w and server m are exchanging; rates: [W, M], written.
    """
    num_workers, num_servers = active.shape
    open_ = active.copy()
    left_server, left_worker = server_rate.copy(), worker_rate.copy()
    while True:
        best = _NEVER
        at_server, at_worker = -1, -1
        for m in range(num_servers):
            count = 0
            for w in range(num_workers):
                count += open_[w, m]
            if count and left_server[m] / count < best:
                best, at_server, at_worker = left_server[m] / count, m, -1
        for w in range(num_workers):
            count = 0
            for m in range(num_servers):
                count += open_[w, m]
            if count and left_worker[w] / count < best:
                best, at_server, at_worker = left_worker[w] / count, -1, w
        if best == _NEVER:
            return
        for w in range(num_workers):
            for m in range(num_servers):
                if open_[w, m] and (m == at_server or w == at_worker):
                    open_[w, m] = 0
                    rates[w, m] = best
                    left_server[m] = max(left_server[m] - best, 0.0)
                    left_worker[w] = max(left_worker[w] - best, 0.0)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_steps(  # type: ignore[no-untyped-def]
    resource,  # [n] of each op: 0 the worker, 1..M servers, then M downlinks, then M uplinks
    amount,  # [S, n] seconds, or bytes
    num_waits,  # [n]
    first,  # [n + 1] where the dependents of each op begin
    dependents,  # [e]
    chosen,  # [W, N] profiled step of each step
    slowness,  # [W] factor on the seconds of worker ops
    server_rate,  # [M] bytes/s, each way
    worker_rate,  # [W]
    window,  # bytes of a stream's first service; inf: streams go whole
    link_key,  # [n] order of streams; negative: first come, first served
    synchronous,
    keep,  # [K, 5] room for chunks: worker, resource, op, begin, end
):
    """When each worker ended each step, how many events there were, and chunks kept."""
    num_workers, num_steps = chosen.shape
    num_servers = len(server_rate)
    num_ops = len(resource)
    num_resources = 1 + 3 * num_servers
    links = 1 + num_servers  # the first link
    heap = np.empty((num_workers, num_resources, num_ops), np.int64)
    size = np.zeros((num_workers, num_resources), np.int64)
    waits = np.empty((num_workers, num_ops), np.int64)
    left_of_op = np.empty((num_workers, num_ops), np.float64)
    running = np.full((num_workers, num_resources), IDLE, np.int64)
    ends = np.full((num_workers, num_resources), _NEVER)
    began = np.zeros((num_workers, num_resources))
    left = np.zeros((num_workers, num_resources))  # bytes of the running chunk
    active = np.zeros((2, num_workers, num_servers), np.int64)
    rates = np.zeros((2, num_workers, num_servers))
    since = np.zeros(2)
    changed = np.zeros(2, np.bool_)
    done = np.zeros(num_workers, np.int64)
    step = np.zeros(num_workers, np.int64)
    at_barrier = 0
    step_ends = np.zeros((num_workers, num_steps))
    num_kept, sequence, num_events = 0, 0, 0
    now = 0.0
    starting = num_workers  # workers whose step begins at this moment
    begins = np.ones(num_workers, np.bool_)
    while True:
        # Begin steps.
        if starting:
            for w in range(num_workers):
                if not begins[w]:
                    continue
                begins[w] = False
                done[w] = 0
                for op in range(num_ops):
                    waits[w, op] = num_waits[op]
                    left_of_op[w, op] = amount[chosen[w, step[w]], op]
                    if num_waits[op] == 0:
                        r = resource[op]
                        key = op
                        if r >= links:
                            sequence += 1
                            key = (link_key[op] if link_key[op] >= 0 else sequence) * _SHIFT + op
                        _push(heap[w, r], size[w, r], key)
                        size[w, r] += 1
                for r in range(num_resources):
                    if running[w, r] == IDLE and size[w, r]:
                        op = _pop(heap[w, r], size[w, r]) % _SHIFT
                        size[w, r] -= 1
                        running[w, r] = op
                        began[w, r] = now
                        if r < links:
                            factor = slowness[w] if r == 0 else 1.0
                            ends[w, r] = now + left_of_op[w, op] * factor
                            left_of_op[w, op] = 0.0
                        else:
                            direction, m = (r - links) // num_servers, (r - links) % num_servers
                            chunk = min(left_of_op[w, op], window)
                            left[w, r] = chunk
                            left_of_op[w, op] -= chunk
                            active[direction, w, m] = 1
                            changed[direction] = True
            starting = 0
        # Share the links anew where the transfers have changed.
        for direction in range(2):
            if not changed[direction]:
                continue
            changed[direction] = False
            passed = now - since[direction]
            since[direction] = now
            base = links + direction * num_servers
            for w in range(num_workers):
                for m in range(num_servers):
                    if active[direction, w, m] and ends[w, base + m] != _NEVER:
                        left[w, base + m] -= rates[direction, w, m] * passed
            if num_servers == 1:
                count = 0
                slowest = server_rate[0]
                for w in range(num_workers):
                    if active[direction, w, 0]:
                        count += 1
                        slowest = min(slowest, worker_rate[w])
                if count and slowest >= server_rate[0] / count:
                    for w in range(num_workers):
                        rates[direction, w, 0] = server_rate[0] / count
                elif count:
                    _share(active[direction], server_rate, worker_rate, rates[direction])
            else:
                _share(active[direction], server_rate, worker_rate, rates[direction])
            for w in range(num_workers):
                for m in range(num_servers):
                    if active[direction, w, m]:
                        bytes_left = max(left[w, base + m], _NOTHING_BYTES)
                        ends[w, base + m] = now + bytes_left / rates[direction, w, m]
        # The next event.
        now = _NEVER
        w, r = -1, -1
        for i in range(num_workers):
            for j in range(num_resources):
                if ends[i, j] < now:
                    now = ends[i, j]
                    w, r = i, j
        if w < 0:
            return step_ends, num_events, num_kept
        num_events += 1
        op = running[w, r]
        running[w, r] = IDLE
        ends[w, r] = _NEVER
        if num_kept < len(keep):
            keep[num_kept, 0] = w
            keep[num_kept, 1] = r
            keep[num_kept, 2] = op
            keep[num_kept, 3] = began[w, r]
            keep[num_kept, 4] = now
            num_kept += 1
        if left_of_op[w, op] > 0:  # its second service, to the end, after all that wait
            sequence += 1
            key = (link_key[op] if link_key[op] >= 0 else sequence) * _SHIFT + op
            _push(heap[w, r], size[w, r], key)
            size[w, r] += 1
        else:
            done[w] += 1
            for i in range(first[op], first[op + 1]):
                d = dependents[i]
                waits[w, d] -= 1
                if waits[w, d] == 0:
                    q = resource[d]
                    key = d
                    if q >= links:
                        sequence += 1
                        key = (link_key[d] if link_key[d] >= 0 else sequence) * _SHIFT + d
                    _push(heap[w, q], size[w, q], key)
                    size[w, q] += 1
        # Start what can run now.
        for q in range(num_resources):
            if running[w, q] != IDLE:
                continue
            if not size[w, q]:
                if q == r and r >= links:
                    direction, m = (r - links) // num_servers, (r - links) % num_servers
                    active[direction, w, m] = 0
                    changed[direction] = True
                continue
            op = _pop(heap[w, q], size[w, q]) % _SHIFT
            size[w, q] -= 1
            running[w, q] = op
            began[w, q] = now
            if q < links:
                factor = slowness[w] if q == 0 else 1.0
                ends[w, q] = now + left_of_op[w, op] * factor
                left_of_op[w, op] = 0.0
                continue
            direction, m = (q - links) // num_servers, (q - links) % num_servers
            # A stream that was served before goes to its end.
            served = left_of_op[w, op] < amount[chosen[w, step[w]], op]
            chunk = left_of_op[w, op] if served else min(left_of_op[w, op], window)
            left[w, q] = chunk
            left_of_op[w, op] -= chunk
            if active[direction, w, m] and not changed[direction]:  # at the rate it has
                ends[w, q] = now + max(chunk, _NOTHING_BYTES) / rates[direction, w, m]
                left[w, q] += rates[direction, w, m] * (now - since[direction])
            else:
                active[direction, w, m] = 1
                changed[direction] = True
        # End the step.
        if done[w] == num_ops:
            step_ends[w, step[w]] = now
            step[w] += 1
            done[w] = 0
            if synchronous:
                at_barrier += 1
                if at_barrier == num_workers:
                    at_barrier = 0
                    for i in range(num_workers):
                        if step[i] < num_steps:
                            begins[i] = True
                            starting += 1
            elif step[w] < num_steps:
                begins[w] = True
                starting += 1
