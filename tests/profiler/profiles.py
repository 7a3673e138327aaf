"""Profiles as `driple profile run` leaves them, with figures that a test chooses."""

import json
from pathlib import Path
from typing import Any

from driple.profiler.stall_profile import FORMAT


def write_profile(
    folder: Path,
    times: dict[int, list[float]],
    *,
    model: str = "train.py",
    network_bits_per_s: float | None = None,
    gradients: dict[str, Any] | None = None,
    other_cores: float = 0.0,
    stolen_cores: float = 0.0,
) -> Path:
    """A folder with these seconds of each step's repetitions."""
    folder.mkdir(parents=True)
    plan = {"processes": 2, "machines": 2, "network_bits_per_s": network_bits_per_s,
            "iterations": 9, "warmup": 3, "seed": 0}  # fmt: skip
    about = {"format": FORMAT, "command": [model], "plan": plan, "data": [], "host": {"cores": 2},
             "left_out": {"5": "there is one machine"} if 5 not in times else {}}  # fmt: skip
    (folder / "profile.json").write_text(json.dumps(about))
    for step, values in times.items():
        for repeat, seconds in enumerate(values):
            launch = {
                "iteration_s": seconds,
                "ranks_s": [seconds],
                "batch_size": 4,
                "batches_per_epoch": 10,
                "processes": 1 if step == 1 else 2,
                "wrapped": True,
                "bucket_mib": 25.0,
                "gradients": gradients if step == 1 else None,
                "overhead_pct": 0.1,
                "other_cores": other_cores,
                "stolen_cores": stolen_cores,
                "cleared": "fadvise" if step == 3 else None,
                "script": "",
            }
            (folder / f"step{step}.r{repeat}.json").write_text(json.dumps(launch))
    return folder
