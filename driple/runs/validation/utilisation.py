"""Mean utilisation of devices: what a simulation shows against what NVML showed in real runs.

utilisation_runs.csv.gz --read_utilisation--> MeasuredRun, ...
                        --predict_utilisation--> MeanUtilisation, ... --utilisation_scores-->

A run's mean includes what no step has: waiting for input, evaluation, checkpoints, start. The
simulation has none of these, and it was fitted to no utilisation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import SchemeChoice
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError, DripleError
from driple.runs.measured_run import MeasuredRun
from driple.runs.published_runs import PublishedRun, on_setting
from driple.runs.steps import StepSource
from driple.runs.tables import UTILISATION, Line, read_table
from driple.runs.validation.metrics import rank_correlation
from driple.runs.validation.simulated import NUM_STEPS
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate_steps, step_of

__all__ = [
    "UTILISATION_FILE",
    "MeanUtilisation",
    "UtilisationScore",
    "predict_utilisation",
    "read_utilisation",
    "utilisation_scores",
]

FloatArray = npt.NDArray[np.float64]

UTILISATION_FILE = "utilisation_runs.csv.gz"
BUSY_PCT = 90.0  # runs below it tell predictors apart; of the others a constant is 3 points off
_SOURCE = "lambda-pytorch"
_FACTS = (
    "source_file", "device", "num_devices", "job", "batch_size", "precision", "utilisation_pct",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeanUtilisation:
    """One run and what was simulated for it.

    Attributes:
        run: what was measured.
        util_pct: mean of the simulated device's utilisation, percent.
        step_s: simulated seconds of a step.
    """

    run: MeasuredRun
    util_pct: float
    step_s: float

    @property
    def of_measured_step_pct(self) -> float:
        """Utilisation if the simulated busy time were spread over the measured step, percent.

        It shows how much of the error is time that no simulated step has; NaN where the time of a
        step was not measured.
        """
        return min(self.util_pct * self.step_s / self.run.step_s, 100.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class UtilisationScore:
    """How near predicted utilisation is on some runs.

    Attributes:
        group: name of the model, or what the runs have in common.
        runs: how many.
        measured_pct: median of the measured means, percent.
        predicted_pct: median of the predicted means, percent.
        points: median of |predicted - measured|, points of percent.
        rank: Spearman's correlation; None where there are too few runs or all are alike.
    """

    group: str
    runs: int
    measured_pct: float
    predicted_pct: float
    points: float
    rank: float | None


def read_utilisation(file: Path) -> tuple[list[MeasuredRun], int]:
    """The runs of a table, and how many more name no device, no batch, or no known setting.

    A run has its utilisation; its `step_s` is NaN where the time of a step is not known.

    Raises:
        ConfigError: the table is damaged.
    """
    lines = read_table(file, _FACTS, UTILISATION)
    asked = [on_setting(_published(line), 1.0) for line in lines]
    runs = [run for run in asked if run is not None]
    return runs, len(lines) - len(runs)


def _percent(line: Line) -> float:
    text = line.text("utilisation_pct")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:
        raise line.error("utilisation_pct", f"needs a number from 0 to 100, got {text[:40]!r}")
    return value


def _published(line: Line) -> PublishedRun:
    num_devices = line.whole("num_devices") or 1
    try:
        return PublishedRun(
            id=line.text("id") or line.text("source_file"),
            source=_SOURCE,
            library=line.text("library"),
            device=line.text("device"),
            num_devices=num_devices,
            per_machine=num_devices,
            link_within=line.text("link_within"),
            scheme=SchemeChoice.usual().name if num_devices > 1 else "none",
            dp=num_devices,
            model=line.text("model"),
            family=line.text("family"),
            job=line.text("job"),
            batch_size=line.whole("batch_size"),
            size=line.whole("size"),
            precision=line.text("precision"),
            optimizer=line.text("optimizer"),
            data=line.text("data"),
            step_s=line.number_of("step_s", math.nan),
            utilisation_pct=_percent(line),
            unused_why="utilisation alone",
        )
    except ConfigError as error:
        raise line.error("id", str(error)) from error


def predict_utilisation(
    runs: Sequence[MeasuredRun],
    steps: StepSource,
    calibration: Calibration,
    progress: Callable[[str], None] = lambda _: None,
) -> list[MeanUtilisation]:
    """Simulated utilisation of the runs whose step there is, as `driple predict` shows it.

    Args:
        runs: to simulate.
        steps: of their jobs; runs without one are left out.
        calibration: what devices and links reach.
        progress: called with the job of each run.

    Raises:
        DripleError: a step cannot be simulated; the message names the run.
    """
    simulated: dict[tuple[object, ...], tuple[float, float]] = {}
    jobs: dict[tuple[object, ...], PreparedJob] = {}
    utilisation_of: dict[int, MeanUtilisation] = {}
    order = sorted(range(len(runs)), key=lambda i: repr(runs[i].step_key))
    for i in order:
        row = runs[i]
        progress(row.job)
        if steps.lacks(row):
            continue
        key = (row.step_key, row.setting)
        if key not in simulated:
            if row.step_key not in jobs:
                jobs = {row.step_key: steps.prepared(row)}
            simulated[key] = _simulated(jobs[row.step_key], row, calibration)
        utilisation_of[i] = MeanUtilisation(runs[i], *simulated[key])
    return [utilisation_of[i] for i in sorted(utilisation_of)]


def _simulated(job: PreparedJob, row: MeasuredRun, calibration: Calibration) -> tuple[float, float]:
    """Mean that a device's counters would show, percent, and seconds of a step."""
    try:
        topology = topology_of(Setting.parse(row.setting))
        records = simulate_steps(job, topology, calibration, num_steps=NUM_STEPS)
        step = step_of(topology, records)
    except DripleError as error:
        raise type(error)(f"{row.named} ({row.job}): {error}") from error
    return step.counted_pct()[0], step.step_s


def utilisation_scores(
    predicted: Sequence[MeanUtilisation], *, of_measured_step: bool = False
) -> list[UtilisationScore]:
    """Scores of all runs, of those below 90 %, and of each model.

    Args:
        predicted: of runs.
        of_measured_step: judge the simulated busy time in the measured time of a step; runs without
            one are left out.
    """
    pairs = [
        (one.run.utilisation_pct, one.of_measured_step_pct if of_measured_step else one.util_pct)
        for one in predicted
    ]
    groups: dict[str, list[int]] = defaultdict(list)
    for i, (utilisation, (measured, value)) in enumerate(zip(predicted, pairs, strict=True)):
        if not math.isnan(value):
            groups["all runs"].append(i)
            if measured < BUSY_PCT:
                groups[f"runs below {BUSY_PCT:g} %"].append(i)
            groups[utilisation.run.job].append(i)
    return [_score(name, np.array([pairs[i] for i in places])) for name, places in groups.items()]


def _score(group: str, pairs: FloatArray) -> UtilisationScore:
    measured, predicted = pairs.T
    return UtilisationScore(
        group=group,
        runs=len(pairs),
        measured_pct=float(np.median(measured)),
        predicted_pct=float(np.median(predicted)),
        points=float(np.median(np.abs(predicted - measured))),
        rank=rank_correlation(predicted, measured),
    )
