"""How far steps are off on a device that is tuned to runs of its owner, as our own steps show.

`scripts.make_tuned_errors` writes the file: steps on an H100 and an H200, each by ten others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from driple.codec import from_json

__all__ = ["FILE", "NETWORKS", "TunedSteps", "tuned_steps"]

FILE = Path(__file__).with_name("tuned_steps.json")
NETWORKS = ("convolutional", "transformer")  # that these steps are of


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedSteps:
    """What the steps show.

    Attributes:
        date: of the file.
        devices: that ran them.
        num_steps: how many.
        num_runs: how many others a device was tuned to.
        median_pct: error of a step, percent.
        p90_pct: 90th percentile.
        device_ends: of nine of ten steps that keep the device busy, measured over predicted.
        host_ends: of nine of ten steps that wait for their host.
    """

    date: str
    devices: tuple[str, ...]
    num_steps: int
    num_runs: int
    median_pct: float
    p90_pct: float
    device_ends: tuple[float, float]
    host_ends: tuple[float, float]


@cache
def tuned_steps() -> TunedSteps:
    """The shipped ones."""
    return from_json(TunedSteps, json.loads(FILE.read_text(encoding="utf-8")), where=FILE.name)
