"""The simulator as a predictor: the number that `driple predict --method simulator` prints.

MeasuredRun, ... + StepSource + Calibration --simulate_rows--> seconds of each row's step
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.errors import DripleError
from driple.runs.measured_run import MeasuredRun
from driple.runs.steps import StepSource
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s

__all__ = ["NUM_STEPS", "simulate_rows"]

FloatArray = npt.NDArray[np.float64]

# Steps whose mean is taken. `driple predict` takes 100, of which the mean differs by jitter alone.
NUM_STEPS = 20


def simulate_rows(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    calibration: Calibration,
    progress: Callable[[str], None] = lambda _: None,
) -> FloatArray:
    """Simulated seconds of each row, in the order of the rows.

    Rows of one step on one setting are simulated once.

    Args:
        rows: the rows.
        steps: where their steps come from.
        calibration: what devices and links reach.
        progress: called with the job of each row.

    Raises:
        DripleError: a row's step cannot be made or simulated; the message names the row.
    """
    seconds = np.empty(len(rows))
    settings: dict[str, Setting] = {}
    job: PreparedJob | None = None
    last: tuple[object, ...] | None = None
    done: dict[str, float] = {}  # by setting, of the job at hand
    for i in sorted(range(len(rows)), key=lambda i: (repr(rows[i].step_key), rows[i].setting)):
        row = rows[i]
        progress(row.job)
        if job is None or row.step_key != last:
            job, last, done = steps.prepared(row), row.step_key, {}
        if row.setting not in done:
            if row.setting not in settings:
                settings[row.setting] = Setting.parse(row.setting)
            try:
                done[row.setting] = simulated_step_s(
                    job, settings[row.setting], calibration, num_steps=NUM_STEPS
                )
            except DripleError as error:
                raise type(error)(f"{row.named} ({row.job}): {error}") from error
        seconds[i] = done[row.setting]
    return seconds
