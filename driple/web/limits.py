"""What one server takes on: sizes, times and counts, all in one place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]

_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of a server.

    Attributes:
        body_bytes: largest body of a request; counted while it arrives.
        bodies_bytes: of all bodies that are there at a time; more are refused with 503.
        head_s: longest time in which a request arrives up to its body, seconds.
        body_s: longest time in which a body arrives, seconds.
        unread_s: after which a client that takes no bytes of its answer is cut off, seconds.
        graph_bytes: largest graph after gunzip.
        read_s: longest time in which a job is read, seconds.
        work_s: longest time of a question that may take minutes, seconds.
        memory_bytes: that a child process may take beside what Python itself takes.
        children: child processes that read jobs at a time.
        long: questions that may take minutes at a time, each in a child process.
        threads: other questions that are answered at a time.
        waiting: questions that run or wait; more are refused with 503.
        requests: requests that are open; more are refused with 503.
        wait_s: after which a question is answered with 202, seconds.
        work_kept_s: how long an answer of such work can be fetched, seconds.
        work_kept: such works.
        jobs_kept: jobs that are kept ready.
        jobs_kept_bytes: what their graphs and uploads may take together.
        answers_kept_bytes: bytes of answers that are kept.
        jobs: of one request.
        predictions: of one request, jobs times clusters.
    """

    body_bytes: int = 64 * _MIB
    bodies_bytes: int = 512 * _MIB
    head_s: float = 10.0
    body_s: float = 60.0
    unread_s: float = 30.0
    graph_bytes: int = 256 * _MIB
    read_s: float = 60.0
    work_s: float = 600.0
    memory_bytes: int = 4 * _GIB
    children: int = 2
    long: int = 2
    threads: int = 8
    waiting: int = 64
    requests: int = 256
    wait_s: float = 1.0
    work_kept_s: float = 900.0
    work_kept: int = 100
    jobs_kept: int = 64
    jobs_kept_bytes: int = 1 * _GIB
    answers_kept_bytes: int = 64 * _MIB
    jobs: int = 16
    predictions: int = 1000
