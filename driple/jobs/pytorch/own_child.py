"""The process that executes a user's file: `python -m driple.jobs.pytorch.own_child`.

FOLDER/request.json -> user's code, within limits -> FOLDER/outcome.json and FOLDER/graph.npz

Each line of its input names a FOLDER: the same model in another way costs no new import of PyTorch.
What comes back is data. The process ends with its input, or when the supervisor does, and waits for
nothing that the code has started.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
import traceback
from pathlib import Path

from driple.codec import from_json, to_dict
from driple.errors import DripleError, GraphError
from driple.graph.stored_graph import graph_to_bytes
from driple.jobs.own_request import (
    GRAPH_FILE,
    OUTCOME_FILE,
    REQUEST_FILE,
    OwnModel,
    OwnOutcome,
    OwnRequest,
)
from driple.jobs.pytorch.own_model import step_of_own_model
from driple.storedfiles import read_json

__all__ = ["main"]

_WATCH_S = 0.5


def main(folder: Path) -> None:
    """Do what the folder's request asks, and write what came of it."""
    request = from_json(OwnRequest, read_json(folder / REQUEST_FILE), where=REQUEST_FILE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request.memory_bytes, request.memory_bytes))
    mine = os.getpid()
    outcome = _outcome(request.model, folder)
    if os.getpid() != mine:
        os._exit(0)  # a copy of this process that the user's code has made
    part = folder / f"{OUTCOME_FILE}.part"
    part.write_text(json.dumps(to_dict(outcome)), encoding="utf-8")
    part.replace(folder / OUTCOME_FILE)


def _outcome(model: OwnModel, folder: Path) -> OwnOutcome:
    try:
        step = step_of_own_model(model)
    except DripleError as error:
        return OwnOutcome(
            error=str(error),
            is_graph_error=isinstance(error, GraphError),
            details="".join(traceback.format_exception(error)),
        )
    except MemoryError as error:
        return OwnOutcome(
            error=f"{model.model} needs more memory than it may take; raise the limit with "
            "--set memory_gib=N",
            details="".join(traceback.format_exception(error)),
        )
    (folder / GRAPH_FILE).write_bytes(graph_to_bytes(step.graph))
    return OwnOutcome(
        batch_size=step.batch_size,
        input_shape=step.input_shape,
        seq_len=step.seq_len,
        samples=step.samples,
        assumptions=step.assumptions,
    )


def _end_with_supervisor() -> None:
    """End this process as soon as its parent is another one: then nobody waits for it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def serve() -> None:
    """Do what the folders that the input names ask; the user's code gets an input without lines."""
    _end_with_supervisor()
    with os.fdopen(os.dup(0), encoding="utf-8") as folders:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        while folder := folders.readline():
            main(Path(folder.rstrip("\n")))
            sys.stdout.flush()
            sys.stderr.flush()


if __name__ == "__main__":
    status = 0
    try:
        serve()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # whatever threads and processes the user's code has started
