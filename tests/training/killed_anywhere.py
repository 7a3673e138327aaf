"""Train, be killed at a chosen point, resume: again and again. Arguments: folder, stride, pairs.

A point is a moment before a file is opened, flushed, renamed, appended to or a folder made. Each
training is a forked process; the last line of output says at which points, or after which pairs of
simultaneous trainings, the resumed run differs from one that was left alone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from driple.dataset import random_split
from driple.errors import ConfigError
from driple.training import runfiles
from driple.training.train import RunOptions, train
from tests.dataset.examples import synthetic_dataset
from tests.training.presets import small_preset

DATASET = synthetic_dataset()
EPOCHS = 4
REFUSED = 3


class Killer:
    """Counts points, and ends the process at one of them."""

    def __init__(self, at: int | None) -> None:
        self.at, self.passed = at, 0

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.passed += 1
            if self.passed == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return counted


def train_once(folder: Path, killer: Killer) -> None:
    for owner, name in ((os, "open"), (os, "fsync"), (Path, "replace"), (Path, "mkdir"),
                        (runfiles.LogWriter, "append")):  # fmt: skip
        setattr(owner, name, killer.before(getattr(owner, name)))
    options = RunOptions(resume=True, threads=1, save_every_s=0.0)
    preset = small_preset(max_epochs=EPOCHS)
    train(DATASET, random_split(DATASET.workloads, 0), preset, folder, options=options)


def start(folder: Path, at: int | None = None) -> int:
    """A process that trains; its status is 3 if it was refused."""
    child = os.fork()
    if child:
        return child
    killer, status = Killer(at), 1
    try:
        train_once(folder, killer)
        (folder / "points.txt").write_text(str(killer.passed))
        status = 0
    except ConfigError as error:
        status = REFUSED if "at work" in str(error) else 1
        print(error, file=sys.stderr)
    finally:
        os._exit(status)


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_as_left_alone(folder: Path, alone: Path) -> bool:
    state, wanted = runfiles.load_state(folder), runfiles.load_state(alone)
    if state is None or wanted is None or state.epoch != wanted.epoch:
        return False
    return all(torch.equal(state.best[name], wanted.best[name]) for name in wanted.best)


def main(base: Path, stride: int, pairs: int) -> None:
    alone = base / "alone"
    began_s = time.monotonic()
    if status_of(start(alone)):
        raise SystemExit("the run that is left alone failed")
    alone_s = time.monotonic() - began_s
    points, wrong = int((alone / "points.txt").read_text()), []
    for at in range(1, points + 1, stride):
        folder = base / f"at{at}"
        if status_of(start(folder, at)) != -signal.SIGKILL or status_of(start(folder)):
            wrong.append(f"point {at}")
        elif not is_as_left_alone(folder, alone):
            wrong.append(f"point {at}: other weights")
    chosen = random.Random(0)
    for number in range(pairs):
        folder = base / f"pair{number}"
        children = [start(folder), start(folder)]
        time.sleep(alone_s * chosen.uniform(0.3, 1.2))
        for child in children:
            os.kill(child, signal.SIGKILL)
        ends = [status_of(child) for child in children]
        if not set(ends) <= {0, REFUSED, -signal.SIGKILL} or status_of(start(folder)):
            wrong.append(f"pair {number} ({ends})")
        elif not is_as_left_alone(folder, alone):
            wrong.append(f"pair {number}: other weights")
    print(json.dumps({"points": points, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
