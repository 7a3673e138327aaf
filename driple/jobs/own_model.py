"""Reader of `FILE.py:FUNCTION`: the user's file is executed in a process of its own.

FILE.py:FUNCTION, options -> python -m driple.jobs.pytorch.own_child, within limits -> Job

This process imports neither torch nor the user's file. It gets a graph back as arrays and JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from driple.codec import from_json, to_dict
from driple.errors import ConfigError, GraphError
from driple.extras import require_torch
from driple.graph.stored_graph import read_stored_graph
from driple.jobs.assumed import assumed_words
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

__all__ = ["OWN_MODEL"]

OPTIMIZER = "momentum"  # assumed of a model that states none
_GIB = 2**30
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
        assumptions=(*assumed_words(options, optimizer=OPTIMIZER), *outcome.assumptions),
    )


def _run(request: JobRequest, folder: Path) -> OwnOutcome:
    """Let the other process read the model.

    Raises:
        ConfigError: it took too long, or ended without an answer.
    """
    options, text = request.options, request.text
    asked = json.dumps(to_dict(_asked(request)))
    (folder / REQUEST_FILE).write_text(asked, encoding="utf-8")
    command = [sys.executable, "-m", "driple.jobs.pytorch.own_child", str(folder)]
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        printed, _ = process.communicate(timeout=options.own_code_s)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"{text} took longer than {options.own_code_s:g} s; build the model alone, without "
            "training or loading data, or raise the limit with --set time_limit_s=N"
        ) from error
    finally:
        _end(process)
    outcome = folder / OUTCOME_FILE
    if not outcome.exists():
        raise _without_answer(text, process.returncode, printed)
    return from_json(OwnOutcome, read_json(outcome), where=f"answer of the process of {text}")


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
        parent=os.getpid(),
    )


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _without_answer(text: str, status: int, printed: str) -> ConfigError:
    """What to say of a process that ended by itself or was killed."""
    lines = [line for line in printed.splitlines() if line.strip()]
    why = f"signal {-status}" if status < 0 else f"exit status {status}"
    last = f": {' | '.join(lines[-1:])[:300]}" if lines else ""
    error = ConfigError(
        f"{text} ended the process that reads it ({why}){last}; it must only build the model"
    )
    error.add_note("\n".join(lines[-_LAST_LINES:]))
    return error


OWN_MODEL = JobReader(
    origin=JobOrigin(name="own_model", is_model=True, casts_itself=True),
    name="a model of your own (FILE.py:FUNCTION)",
    form="FILE.py:FUNCTION",
    claims=_claims,
    flags=flags_for("own_model"),
    read=_read,
    decided_by=kernels_on,
)
