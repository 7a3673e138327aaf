"""A server of this checkout for checks and pages, in a process of its own.

with running_server() as server: ... server.address
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "RunningServer", "processes_below", "running_server"]

ROOT = Path(__file__).resolve().parents[2]
_STOP_S = 60
_WITH_LIMITS = (
    "import json, sys; from driple.web.limits import Limits; "
    "from driple.web.serving import bound_socket, run_server; "
    "listening = bound_socket('127.0.0.1', 0); "
    "print('http://127.0.0.1:%d' % listening.getsockname()[1], file=sys.stderr, flush=True); "
    "run_server(listening, Limits(**json.loads(sys.argv[1])))"
)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server.

    Attributes:
        address: of its page.
        port: on 127.0.0.1.
        process: that serves.
        lines: that it has written to stderr after its address.
    """

    address: str
    port: int
    process: subprocess.Popen[str]
    lines: list[str]

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in small letters, and content of one answer; a body is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        content = None if body is None else json.dumps(body)
        kind = {} if body is None else {"content-type": "application/json"}
        connection.request(method, path, content, {**kind, **(headers or {})})
        answer = connection.getresponse()
        sent = {name.lower(): value for name, value in answer.getheaders()}
        ended = answer.status, sent, answer.read()
        connection.close()
        return ended

    def ended(self, path: str, body: object, *, looks_s: float = 0.2) -> tuple[int, bytes]:
        """Status and content of a question's answer or refusal, however long it takes.

        Args:
            path: of the question.
            body: of the question, sent as JSON.
            looks_s: between two looks at an answer that is not there at once.
        """
        status, headers, content = self.ask("POST", path, body)
        while status == 202:
            time.sleep(looks_s)
            status, headers, content = self.ask("GET", headers["location"])
        return status, content

    def answer(self, path: str, body: object) -> Any:
        """The JSON of a question's answer or refusal, however long it takes."""
        _, content = self.ended(path, body)
        return json.loads(content)


@contextmanager
def running_server(**limits: float) -> Iterator[RunningServer]:
    """A server that runs meanwhile and is then stopped as with Ctrl-C.

    Args:
        limits: other limits than the usual ones, by name (`driple.web.limits.Limits`).
    """
    command = [sys.executable, "-m", "driple", "serve", "--port", "0"]
    if limits:
        command = [sys.executable, "-c", _WITH_LIMITS, json.dumps(limits)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        errors = process.stderr
        assert errors is not None  # noqa: S101  # for mypy
        address = re.search(r"http://[\d.]+:(\d+)", errors.readline())
        if address is None:
            process.kill()
            raise SystemExit("the server did not start")
        lines: list[str] = []
        reading = threading.Thread(target=lines.extend, args=[errors])
        reading.start()
        server = RunningServer(address[0], int(address[1]), process, lines)
        try:
            server.ask("GET", "/healthz")  # it listens before it has imported all
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            finally:
                reading.join()


def processes_below(parent: int) -> list[int]:
    """Processes that a process has started, and theirs."""
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    direct = [int(word) for word in text.split()]
    return direct + [deep for child in direct for deep in processes_below(child)]
