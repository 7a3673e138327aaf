"""Reader of `FILE.py:FUNCTION`: the user's file is executed in a process of its own.

FILE.py:FUNCTION, options -> own_supervisor -> own_child, within limits -> Job

This process imports neither torch nor the user's file. It gets a graph back as arrays and JSON, and
keeps the end of what the code prints. The supervisor ends whatever the code starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from driple.codec import from_json, to_dict
from driple.errors import ConfigError, GraphError
from driple.extras import require_torch
from driple.graph.stored_graph import read_stored_graph
from driple.jobs import own_supervisor
from driple.jobs.assumed import assumed_options
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.own_request import (
    GRAPH_FILE,
    OUTCOME_FILE,
    REQUEST_FILE,
    OwnModel,
    OwnOutcome,
    OwnRequest,
)
from driple.jobs.readers import JobReader, JobRequest, kernels_on
from driple.storedfiles import read_json

__all__ = ["OWN_MODEL", "kept_processes"]

OPTIMIZER = "momentum"  # assumed of a model that states none
_GIB = 2**30
_LOOKS_S = 0.05  # between two looks whether a process has answered
_END_S = 15.0  # until the supervisor has ended all processes
_PIECE_BYTES, _KEPT_BYTES = 65_536, 65_536  # of what a process prints
_LAST_LINES = 5  # of what a process printed that ended without an answer


def _claims(text: str) -> bool:
    place, colon, name = text.rpartition(":")
    if Path(text).exists() or not colon or not place:
        return False
    return place.endswith(".py") or (place.replace(".", "").isidentifier() and name.isidentifier())


def _read(request: JobRequest) -> Job:
    require_torch("a PyTorch model's graph")
    options, text = request.options, request.text
    step = options.step_options(OPTIMIZER, request.compute_capability)
    with tempfile.TemporaryDirectory(prefix="driple-") as place:
        folder = Path(place)
        outcome = _run(request, folder)
        if outcome.error:
            kind = GraphError if outcome.is_graph_error else ConfigError
            error = kind(outcome.error)
            error.add_note(outcome.details)
            raise error
        graph = read_stored_graph(folder / GRAPH_FILE)
    return job_of(
        text,
        OWN_MODEL.origin,
        graph,
        batch_size=outcome.batch_size,
        seq_len=outcome.seq_len,
        input_shape=outcome.input_shape,
        step=step,
        samples=outcome.samples,
        assumptions=(*assumed_options(options, optimizer=OPTIMIZER), *outcome.assumptions),
    )


def _run(request: JobRequest, folder: Path) -> OwnOutcome:
    """Let the other process read the model.

    Raises:
        ConfigError: it took too long, or ended without an answer.
    """
    options, text = request.options, request.text
    asked = json.dumps(to_dict(_asked(request)))
    (folder / REQUEST_FILE).write_text(asked, encoding="utf-8")
    kept = _KEPT.get()
    child = None if kept is None else kept.pop(text, None)
    if child is None or child.has_ended:
        child = _Child.start(int(options.own_code_gib * _GIB))
    outcome, answered = folder / OUTCOME_FILE, False
    try:
        status = child.ask(folder, outcome, options.own_code_s)
        answered = outcome.exists()
    except TimeoutError as error:
        raise ConfigError(
            f"{text} took longer than {options.own_code_s:g} s; build the model alone, without "
            "training or loading data, or raise the limit with --set time_limit_s=N"
        ) from error
    finally:
        if kept is None or not answered:
            child.end()
        else:
            kept[text] = child
    if not answered:
        raise _without_answer(text, status, child.printed())
    place = f"answer of the process of {text}"
    try:
        answer = read_json(outcome)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{place} cannot be read: {error}; run the command again") from error
    return from_json(OwnOutcome, answer, where=place, advice="run the command again")


class _Child:
    """A process that executes users' files, one folder of a request after another."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._process, self._output, self._last = process, output, b""
        self._reader = threading.Thread(target=self._read, name="own-code-output", daemon=True)
        self._reader.start()

    @classmethod
    def start(cls, memory_bytes: int) -> _Child:
        """A new process, below a supervisor; nobody else sees what it prints."""
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        process = subprocess.Popen(
            [sys.executable, "-S", "-P", str(Path(own_supervisor.__file__)), str(os.getpid()),
             str(memory_bytes), sys.executable, "-m", "driple.jobs.pytorch.own_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )  # fmt: skip
        if process.stdout is None:
            raise RuntimeError("a process without a pipe")
        return cls(process, process.stdout)

    def _read(self) -> None:
        """Keep the end of what is printed; the rest is dropped as it comes."""
        with suppress(ValueError, OSError):  # closed by `end`
            while piece := os.read(self._output.fileno(), _PIECE_BYTES):
                self._last = (self._last + piece)[-_KEPT_BYTES:]

    @property
    def has_ended(self) -> bool:
        """Whether it can be asked no more."""
        return self._process.poll() is not None

    def ask(self, folder: Path, outcome: Path, limit_s: float) -> int:
        """Wait until the outcome of a folder's request is there, or the process has ended.

        Returns:
            The status of a process that has ended; else 0.

        Raises:
            TimeoutError: neither within the limit.
        """
        end_s = time.monotonic() + limit_s
        commands = self._process.stdin
        if commands is not None:
            with suppress(BrokenPipeError):
                commands.write(f"{folder}\n".encode())
                commands.flush()
        while not outcome.exists():
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(_LOOKS_S)
            if time.monotonic() > end_s:
                raise TimeoutError
        return 0

    def printed(self) -> str:
        """The end of what it printed, once it has ended."""
        self._reader.join(_END_S)
        return self._last.decode(errors="replace")

    def end(self) -> None:
        """End the process and all that it has started, which the supervisor does."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(_LOOKS_S)  # what holds the pipe open after that is dropped


@contextmanager
def kept_processes() -> Iterator[None]:
    """Let a model that is read several times within be read by one process, which imports once."""
    if _KEPT.get() is not None:
        yield
        return
    kept: dict[str, _Child] = {}
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for child in kept.values():
            child.end()


def _asked(request: JobRequest) -> OwnRequest:
    options = request.options
    return OwnRequest(
        model=OwnModel(
            model=request.text,
            data=options.data,
            loss=options.loss,
            batch_size=options.batch_size,
            input_shape=options.input_shape,
            seq_len=options.seq_len,
            step=options.step_options(OPTIMIZER, request.compute_capability),
        ),
        memory_bytes=int(options.own_code_gib * _GIB),
    )


def _without_answer(text: str, status: int, printed: str) -> ConfigError:
    """What to say of a process that ended by itself or was killed."""
    if status == own_supervisor.MEMORY_STATUS:
        return ConfigError(
            f"{text} needs more memory than it may take; raise the limit with --set memory_gib=N"
        )
    lines = [line for line in printed.splitlines() if line.strip()]
    why = f"signal {-status}" if status < 0 else f"exit status {status}"
    last = f": {' | '.join(lines[-1:])[:300]}" if lines else ""
    error = ConfigError(
        f"{text} ended the process that reads it ({why}){last}; it must only build the model"
    )
    error.add_note("\n".join(lines[-_LAST_LINES:]))
    return error


# Processes by JOB, of those that read models within `kept_processes`.
_KEPT: ContextVar[dict[str, _Child] | None] = ContextVar("kept", default=None)

OWN_MODEL = JobReader(
    origin=JobOrigin(name="own_model", is_model=True, casts_itself=True),
    name="a model of your own (FILE.py:FUNCTION)",
    form="FILE.py:FUNCTION",
    claims=_claims,
    flags=flags_for("own_model"),
    read=_read,
    decided_by=kernels_on,
    is_certain=lambda text: text.rpartition(":")[0].endswith(".py"),
)
