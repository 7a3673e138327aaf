"""Jobs that were read, and answers that were given: the newest, within bounds.

JobStore.reader(sources) reads each job once in a child; AnswerStore keeps texts by their ETag
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from driple.jobs.job import Job
from driple.jobs.readers import JobReader, JobRequest
from driple.web.children import Children, options_json
from driple.web.limits import Limits
from driple.web.sources import RequestJob

__all__ = ["BoundedStore", "JobStore"]

_Value = TypeVar("_Value")
_LEAST_BYTES = 1_000  # that an entry counts for


class BoundedStore(Generic[_Value]):
    """Values by their keys; those that were not asked for longest are dropped.

    Args:
        most_bytes: of all values together.
        most: values.
    """

    def __init__(self, most_bytes: int, most: int = 100_000) -> None:
        self._most_bytes, self._most = most_bytes, most
        self._kept: OrderedDict[Hashable, tuple[_Value, int]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _Value | None:
        """The value, which counts as asked for now; None if it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: _Value, nbytes: int) -> None:
        """Keep a value; one that is larger than all may be is not kept."""
        nbytes = max(nbytes, _LEAST_BYTES)
        with self._lock:
            if nbytes > self._most_bytes or key in self._kept:
                return
            self._kept[key] = (value, nbytes)
            self._nbytes += nbytes
            while self._nbytes > self._most_bytes or len(self._kept) > self._most:
                _, (_, freed) = self._kept.popitem(last=False)
                self._nbytes -= freed

    def __len__(self) -> int:
        return len(self._kept)


class JobStore:
    """Jobs that children have read.

    Args:
        limits: of the server.
        children: that read.
    """

    def __init__(self, limits: Limits, children: Children) -> None:
        self._jobs: BoundedStore[Job] = BoundedStore(limits.jobs_kept_bytes, limits.jobs_kept)
        self._children = children
        self._reading: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._jobs)

    def reader(self, sources: Mapping[str, RequestJob]) -> Callable[[JobReader, JobRequest], Job]:
        """Reads jobs of sources, each once."""

        def read(base: JobReader, request: JobRequest) -> Job:
            return self._read(base, request, sources[request.text])

        return read

    def _read(self, base: JobReader, request: JobRequest, source: RequestJob) -> Job:
        decided = None if request.setting is None else base.decided_by(request.setting)
        options = repr(sorted(options_json(request.options).items()))
        key = (source.digest, options, repr(decided), request.setting is None, request.training)
        with self._lock:
            reading = self._reading.setdefault(key, threading.Lock())
        try:
            with reading:  # two that ask for one job at once read it once
                job = self._jobs.get(key)
                if job is None:
                    job = self._children.read(base, request, source)
                    self._jobs.put(key, job, _nbytes(job))
                return job
        finally:
            with self._lock:
                self._reading.pop(key, None)


def _nbytes(job: Job) -> int:
    """About what a job takes: some hundred bytes of each node's Python objects."""
    return 1000 * job.graph.num_nodes
