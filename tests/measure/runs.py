"""Finished runs on disk, as a campaign leaves them, without running anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from driple.jobs import Workload
from driple.measure.counters.samples import Samples, write_samples
from driple.trace.targets import RESOURCES

GRAPH = Path(__file__).parents[1] / "data/graphs/ps_training.pb.gz"


def run_folder(
    folder: Path, workload: Workload, repeat: int, measured: str, *, slower: int = 1
) -> None:
    """One run of two workers: a burst in every fifth of a second, on every resource.

    The second worker's counters grow `1 / slower` as fast, and its steps take `slower` times as
    long.
    """
    path = folder / f"{workload.file_name}.r{repeat}"
    path.mkdir(parents=True)
    before = np.arange(400, dtype=np.int64) * 5_000_000
    steps = np.where(np.arange(400) % 40 < 20, 1000, 10)
    names = tuple(f"{worker}.{resource}" for worker in ("w0", "w1") for resource in RESOURCES)
    samples = Samples(
        names=names,
        before_ns=before,
        after_ns=before + 1,
        values=np.stack([np.cumsum(steps) // (slower if "w1" in name else 1) for name in names], 1),
        period_s=0.005,
    )
    write_samples(samples, path / "samples.npz")
    shutil.copy(GRAPH, path / "graph.pb.gz")
    facts = {
        "workload": workload.name,
        "step_times_ns": {
            "w0": [10**8 * i for i in range(1, 19)],
            "w1": [10**8 * i for i in range(1, 19, slower)],
        },
        "units": dict.fromkeys(RESOURCES, 1.0),
        "num_parameters": 5,
        "other_cores": 0.0,
        "steal_cores": 0.0,
        "disturbed": False,
        "measured": measured,
    }
    (path / "run.json").write_text(json.dumps(facts))
