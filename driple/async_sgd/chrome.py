"""Write a synthetic trace in the Trace Event Format, for Perfetto and Chrome.

chunks of a simulation -> one process per worker, one row per resource -> JSON
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driple.async_sgd.compiled import CompiledJob
from driple.async_sgd.scaling import Chunk
from driple.errors import TraceError
from driple.files import atomic_write

__all__ = ["resource_names", "write_chrome_trace"]


def resource_names(num_servers: int) -> list[str]:
    """Names of a worker's resources, in order of their numbers."""
    kinds = ("server", "downlink", "uplink")
    if num_servers == 1:
        return ["worker", *kinds]
    return ["worker", *(f"{kind} {server}" for kind in kinds for server in range(num_servers))]


def write_chrome_trace(job: CompiledJob, chunks: Sequence[Chunk], file: Path) -> None:
    """Write the chunks of a simulation.

    Args:
        job: the simulated job.
        chunks: chunks kept by `simulate_workers`.
        file: output file; `.json`.

    Raises:
        TraceError: it cannot be written.
    """
    names = resource_names(job.num_servers)
    events: list[dict[str, Any]] = []
    for worker in sorted({chunk.worker for chunk in chunks}):
        events.append(_named("process_name", f"worker {worker}", worker))
        events += [_named("thread_name", name, worker, row) for row, name in enumerate(names)]
    events += [
        {
            "name": job.names[chunk.op],
            "cat": names[chunk.resource],
            "ph": "X",
            "pid": chunk.worker,
            "tid": chunk.resource,
            "ts": chunk.begin_s * 1e6,
            "dur": (chunk.end_s - chunk.begin_s) * 1e6,
        }
        for chunk in chunks
    ]
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
    atomic_write(file, text.encode(), error=TraceError)


def _named(what: str, name: str, worker: int, row: int = 0) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": worker, "tid": row, "args": {"name": name}}
