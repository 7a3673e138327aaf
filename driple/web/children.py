"""Children of the server: reads of jobs and long questions, each in a process with limits.

Children.read(reader, request, source) -> Job;  Children.ask(question, sources) -> JSON text
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import driple.errors
from driple.codec import from_json, to_json
from driple.errors import DripleError, GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.stored_graph import graph_from_stored
from driple.jobs.job import Job
from driple.jobs.readers import JobReader, JobRequest
from driple.web.limits import Limits
from driple.web.questions import Question
from driple.web.refusals import Refusal
from driple.web.sources import RequestJob
from driple.web.streams import receive, send

__all__ = ["Children"]

_LATER_S = 5.0  # that the server waits beyond the time of a child
# torch makes a folder for compiled kernels when it is imported; in /proc nothing can be made.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": "/proc/self"}
_FIRST_S = 60.0  # until the fork server has imported what it needs


class Children:
    """The child processes of one server.

    Args:
        limits: of the server.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reading = threading.BoundedSemaphore(limits.children)
        self._asking = threading.BoundedSemaphore(limits.long)
        self._ended = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def read(self, base: JobReader, request: JobRequest, source: RequestJob) -> Job:
        """Read a job.

        Raises:
            DripleError: as the reader says, or that it took too long or too much memory.
        """
        setting = request.setting
        header = {
            "task": "read",
            "options": options_json(request.options),
            "graph_bytes": self._limits.graph_bytes,
            "setting": None if setting is None else setting.name,
            "training": request.training,
        }
        with self._reading:
            reply, content = self._ask(header, [source], self._limits.read_s)
        graph = graph_from_stored(content, source.text)
        facts = {
            name: from_json(hint, reply["job"][name], where=source.text)
            for name, hint in _job_hints().items()
        }
        return Job(origin=base.origin, graph=graph, cost=cost_of_graph(graph), **facts)

    def ask(self, question: Question, sources: Sequence[RequestJob]) -> str:
        """Answer a long question.

        Raises:
            DripleError: as the question says, or that it took too long or too much memory.
        """
        header = {
            "task": "ask",
            "question": question.name,
            "asked": question.asked,
            "graph_bytes": self._limits.graph_bytes,
        }
        with self._asking:
            _, content = self._ask(header, sources, self._limits.work_s)
        return content.decode()

    def start(self) -> None:
        """Start the fork server, which imports libraries meanwhile."""
        with self._lock:
            self._running()

    def end(self) -> None:
        """End the fork server and all children; whoever waits for one is refused."""
        with self._lock:
            self._ended = True
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.terminate()
                self._process.wait()
            self._control = self._process = None

    def _ask(
        self, header: Mapping[str, Any], sources: Sequence[RequestJob], limit_s: float
    ) -> tuple[dict[str, Any], bytes]:
        stated = [
            {"kind": one.kind, "text": one.text, "has_content": one.content is not None}
            for one in sources
        ]
        with self._child(limit_s) as stream:
            stream.settimeout(limit_s + _LATER_S + _FIRST_S)
            try:
                send(stream, json.dumps({**header, "sources": stated}).encode())
                for source in sources:
                    if source.content is not None:
                        send(stream, source.content)
                reply, content = json.loads(receive(stream)), receive(stream)
            except (EOFError, OSError) as error:
                if self._process is None or self._process.poll() is not None:
                    raise _no_children() from error
                raise GraphError(
                    f"{sources[0].text} took longer than {limit_s:g} s, or more memory than the "
                    "server gives; ask driple on the command line"
                ) from error
        if "error" in reply:
            raise _error_of(reply)
        return reply, content

    def _child(self, limit_s: float) -> socket.socket:
        """A stream to a new child."""
        limits = {"memory_bytes": self._limits.memory_bytes, "limit_s": limit_s}
        for _ in range(2):
            own, other = socket.socketpair()
            with self._lock, other:
                try:
                    control = self._running()
                    socket.send_fds(control, [json.dumps(limits).encode()], [other.fileno()])
                    return own
                except OSError:  # it has ended; start another
                    own.close()
                    self._process = None
        raise _no_children()

    def _running(self) -> socket.socket:
        """The control socket of a fork server that runs.

        Raises:
            Refusal: the server is being stopped.
        """
        if self._ended:
            raise _no_children()
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "driple.web.fork_server", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env=os.environ | _ENVIRONMENT | {"PYTHONPATH": paths},
                start_new_session=True,
            )
        self._control = own
        return own


def _no_children() -> Refusal:
    return Refusal(503, "child processes cannot be started; look at the server's output", 30)


def options_json(options: Any) -> dict[str, Any]:
    """The options that differ from the usual ones, as a request states them."""
    from driple.graph.torch.lora import LoraAdapters

    values = {row.name: getattr(options, row.name) for row in options.changed}
    return {
        name: str(value) if isinstance(value, LoraAdapters) else to_json(value)
        for name, value in values.items()
        if name != "max_bytes"
    }


def _job_hints() -> dict[str, Any]:
    from typing import get_type_hints

    from driple.web.child import JOB_FIELDS

    hints = get_type_hints(Job)
    return {name: hints[name] for name in JOB_FIELDS}


def _error_of(reply: Mapping[str, str]) -> DripleError:
    kind = getattr(driple.errors, reply["error"], None)
    if reply["error"] == "defect":
        return Refusal(500, reply["message"])
    known = kind if isinstance(kind, type) and issubclass(kind, DripleError) else GraphError
    return known(reply["message"])
