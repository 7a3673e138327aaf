"""Predicted against traced arrival times of the parameters of a step (Table 1).

recorded starts, sizes -> scheduling of streams on the link (section 3.2.2) -> ends -> errors
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.async_sgd.jobtrace import JobTrace, Resource
from driple.async_sgd.overhead import Overhead
from driple.errors import TraceError

__all__ = ["StreamErrors", "stream_ends", "stream_errors"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamErrors:
    """Relative errors of predicted ends of downlink streams.

    Attributes:
        average: mean over all streams and steps.
        median: median.
        p95: 95th percentile.
        maximum: maximum.
        num_streams: number of streams.
    """

    average: float
    median: float
    p95: float
    maximum: float
    num_streams: int


def stream_ends(
    begins_s: Sequence[float], nbytes: Sequence[float], bytes_per_s: float, window_bytes: float
) -> FloatArray:
    """End of each stream, shape [n], seconds.

    A stream sends up to the window in its first turn, and the rest in its second.

    Args:
        begins_s: request time of each, seconds.
        nbytes: bytes of each.
        bytes_per_s: rate of the link, without other traffic.
        window_bytes: bytes of a stream's first turn; inf: whole streams.
    """
    order = deque(np.argsort(begins_s, kind="stable").tolist())
    left = np.array(nbytes, dtype=np.float64)
    fresh = np.ones(len(left), dtype=bool)
    ends = np.zeros(len(left))
    waiting: deque[int] = deque()
    now_s = 0.0
    while order or waiting:
        if not waiting:
            now_s = max(now_s, begins_s[order[0]])
        while order and begins_s[order[0]] <= now_s:
            waiting.append(order.popleft())
        stream = waiting.popleft()
        chunk = min(left[stream], window_bytes) if fresh[stream] else left[stream]
        fresh[stream] = False
        left[stream] -= chunk
        now_s += chunk / bytes_per_s
        ends[stream] = now_s
        # Streams that arrived in the meantime are served before the rest of this one.
        while order and begins_s[order[0]] <= now_s:
            waiting.append(order.popleft())
        if left[stream] > 0:
            waiting.append(stream)
    return ends


def stream_errors(
    trace: JobTrace, overhead: Overhead, bytes_per_s: float, window_bytes: float
) -> StreamErrors:
    """Errors of the stream model against the traced ends of downlinks.

    Ends are relative to the start of the step's first downlink. Transfers without a tensor, which
    only signal completion, are left out.

    Args:
        trace: trace of one worker.
        overhead: cost of parsing received data.
        bytes_per_s: goodput of the link.
        window_bytes: bytes of a stream's first turn.

    Raises:
        TraceError: the trace holds no downlink with a tensor.
    """
    errors_of_steps = []
    for server in range(trace.num_servers):
        mine = (trace.resources == Resource.DOWNLINK) & (trace.servers == server)
        streams = np.flatnonzero(mine & (trace.sizes > 0))
        if not len(streams):
            continue
        parsing_s = overhead.of(trace.sizes[streams])
        for begins, ends in zip(trace.start_s[:, streams], trace.end_s[:, streams], strict=True):
            first = begins.min()
            sizes = trace.sizes[streams].tolist()
            ends_s = stream_ends((begins - first).tolist(), sizes, bytes_per_s, window_bytes)
            traced = ends - first
            errors_of_steps.append(np.abs(ends_s + parsing_s - traced) / np.maximum(traced, 1e-6))
    if not errors_of_steps:
        raise TraceError("job trace: no parameter comes from a server; profile again")
    errors = np.concatenate(errors_of_steps)
    return StreamErrors(
        average=float(errors.mean()),
        median=float(np.median(errors)),
        p95=float(np.quantile(errors, 0.95)),
        maximum=float(errors.max()),
        num_streams=len(errors),
    )
