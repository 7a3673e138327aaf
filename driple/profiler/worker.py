"""One training process of a stall profile: `python -m driple.profiler.worker JOB -- SCRIPT ARGS`.

JOB is a file written by `launch.py`. The script runs unmodified, in the environment that torchrun
would set, while a timer measures its iterations.
"""

from __future__ import annotations

import os
import random
import runpy
import sys
from pathlib import Path

from driple.codec import from_json
from driple.profiler.profile_records import WorkerJob
from driple.storedfiles import read_json

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run a script under a timer, which ends the process after the timed iterations."""
    from driple.measure.testbed.process_lifetime import die_with_parent

    die_with_parent()
    file = Path(arguments[0])
    job = from_json(WorkerJob, read_json(file), where=str(file))
    rank = int(os.environ["RANK"])
    local = int(os.environ["LOCAL_RANK"])
    if job.cores is not None:
        os.sched_setaffinity(0, job.cores[rank - job.first_rank])

    import torch

    from driple.profiler.iteration_timer import IterationTimer

    random.seed(job.seed)
    torch.manual_seed(job.seed)
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
    timer = IterationTimer(
        Path(job.folder) / f"rank{rank}.json",
        synthetic=job.synthetic,
        warmup=job.warmup,
        iterations=job.iterations,
        world_size=int(os.environ["WORLD_SIZE"]),
        time_gradients=job.time_gradients and rank == 0,
    )
    timer.install()
    script, *rest = arguments[2:]
    if script == "-m":
        sys.argv = rest
        sys.path.insert(0, "")
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [script, *rest]
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
