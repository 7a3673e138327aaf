"""How far steps of PyTorch on processors are off, as steps that we timed show.

Setting of processors -> StatedError

`scripts.studies.processor.run` writes the file: steps on one machine, each left out in turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from driple.answers.error_statement import StatedError
from driple.cluster.setting import Setting
from driple.codec import from_json
from driple.inspector.host import ANY_HOST_LOG
from driple.remarks import remark
from driple.simulate.processor import is_measured

__all__ = ["FILE", "ProcessorSteps", "processor_error"]

FILE = Path(__file__).with_name("processor_steps.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorSteps:
    """What the steps show.

    Attributes:
        programs: how many.
        median_pct: error of a step, percent.
        p90_pct: 90th percentile.
        low_factor: measured over predicted, of the 5th percentile.
        high_factor: of the 95th.
        source: study with the steps.
        date: of the file.
    """

    programs: int
    median_pct: float
    p90_pct: float
    low_factor: float
    high_factor: float
    source: str
    date: str


@cache
def _shipped() -> ProcessorSteps:
    text = FILE.read_text(encoding="utf-8")
    return from_json(ProcessorSteps, json.loads(text), where=FILE.name)


def processor_error(setting: Setting) -> StatedError:
    """The error of steps on the cores of a setting; wider where nobody measured them."""
    steps = _shipped()
    is_told = is_measured(setting.worker)
    wide = 1.0 if is_told else float(np.exp(ANY_HOST_LOG))
    return StatedError(
        num_runs=steps.programs,
        runs=remark("processor_steps"),
        median_pct=steps.median_pct,
        p90_pct=steps.p90_pct,
        runs_median_pct=steps.median_pct,
        runs_p90_pct=steps.p90_pct,
        short=remark("processor_steps"),
        low_factor=steps.low_factor / wide,
        high_factor=steps.high_factor * wide,
        nearest_because=None if is_told else remark("cores_not_measured"),
    )
