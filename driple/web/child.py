"""The child process that reads a job or answers a long question, within limits.

    header (JSON), content  --work_in_child-->  reply (JSON), graph (arrays) or answer (JSON text)

The fork server has imported what it needs, so that it starts in milliseconds. It can write no file,
and ends with the server. What it sends back is plain data.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from driple.codec import to_json
from driple.errors import DripleError
from driple.graph.stored_graph import graph_to_bytes
from driple.jobs.job import Job
from driple.jobs.readers import JobReader, JobRequest
from driple.web.questions import Question, options_of
from driple.web.sources import RequestJob, served
from driple.web.streams import receive, send

__all__ = ["JOB_FIELDS", "work_in_child"]

JOB_FIELDS = (
    "source", "batch_size", "seq_len", "input_shape", "precision", "optimizer", "step", "samples",
    "assumptions",
)  # fmt: skip
_TOO_LARGE = "it needs more memory than the server gives; ask driple on the command line"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def work_in_child(stream: socket.socket, memory_bytes: int, limit_s: float) -> None:
    """Do what one message asks, and reply.

    Args:
        stream: to the server.
        memory_bytes: that the work may take beside what is taken now.
        limit_s: after which the system ends this process, seconds.
    """
    _set_limits(memory_bytes, limit_s)
    header = json.loads(receive(stream))
    sources = {}
    for given in header["sources"]:
        content = receive(stream) if given["has_content"] else None
        sources[given["text"]] = RequestJob(given["kind"], given["text"], content)
    reply, content = _reply(header, sources)
    with suppress(OSError):  # the server has given up
        send(stream, json.dumps(reply).encode())
        send(stream, content)


def _reply(header: Mapping[str, Any], sources: Mapping[str, RequestJob]) -> tuple[Any, bytes]:
    try:
        if header["task"] == "read":
            return _read_job(header, *sources.values())
        with served(sources, _read_here):
            question = Question.of(header["question"], header["asked"], header["graph_bytes"])
            return {}, question.text(list(sources)).encode()
    except DripleError as error:
        return {"error": type(error).__name__, "message": str(error)}, b""
    except Exception as error:  # a defect: shown where the server runs, and no verdict on the job
        if isinstance(error, MemoryError):
            return {"error": "GraphError", "message": _TOO_LARGE}, b""
        traceback.print_exc()
        return {"error": "defect", "message": "the server has a defect; see its output"}, b""


def _read_here(base: JobReader, request: JobRequest) -> Job:
    return base.read(request)


def _read_job(header: Mapping[str, Any], source: RequestJob) -> tuple[Any, bytes]:
    from driple.cluster.setting import Setting

    name = header["setting"]
    request = JobRequest(
        text=source.text,
        options=options_of(header["options"], header["graph_bytes"]),
        setting=None if name is None else Setting.parse(name),
        training=header["training"],
        content=source.content,
    )
    job = source.reader.read(request)
    facts = {field: to_json(getattr(job, field)) for field in JOB_FIELDS}
    return {"job": facts}, graph_to_bytes(job.graph)


def _set_limits(memory_bytes: int, limit_s: float) -> None:
    """No more memory, time and files, whatever the code does from here on."""
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * _PAGE_BYTES
    most = taken + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, also within a long call
    signal.setitimer(signal.ITIMER_REAL, limit_s)
