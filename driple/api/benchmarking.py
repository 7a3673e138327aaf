"""The benchmark of `validate`: rows of a folder, or of one's own table, scored for every predictor.

datasets/published -> rows, folds, held-out predictions, stored steps -> Contest
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.runs.benchmark.contest import Contest
    from driple.runs.benchmark.predictions import Prediction
    from driple.runs.benchmark.rows import BenchmarkRow
    from driple.runs.benchmark.steps import StepSource
    from driple.runs.benchmark.utilisation import UtilisationScore

__all__ = [
    "OwnRun",
    "check_against",
    "contest_of_published",
    "contest_of_table",
    "own_runs_of",
    "utilisation_of_published",
]

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnRun:
    """One run of a user's own table, and what the simulator says of it.

    Attributes:
        run: id, else the number of the line.
        job: as on the command line.
        setting: name of the cluster.
        measured_s: seconds of a step.
        predicted_s: the same, simulated.
        low_s: lower end of the 90 % interval; None if the answer states none.
        high_s: upper end.
    """

    run: str
    job: str
    setting: str
    measured_s: float
    predicted_s: float
    low_s: float | None
    high_s: float | None

    @property
    def error(self) -> float:
        """(Predicted - measured) / measured."""
        return self.predicted_s / self.measured_s - 1


_OWN = ("nothing", "simulator")  # split and predictor: as users have it


def contest_of_published(
    published: Path, *, forward: bool, against: Path | None, progress: Progress
) -> Contest | None:
    """The contest on the shipped PyTorch rows; None if the folder has none.

    Args:
        published: folder of published measurements.
        forward: whether rows of forward passes take part.
        against: another tool's predictions of these rows.
        progress: called with each step of the work.

    Raises:
        ConfigError: a table is damaged.
    """
    from driple.runs.benchmark.contest import run_contest
    from driple.runs.benchmark.predictions import read_predictions
    from driple.runs.benchmark.shipped import read_shipped
    from driple.simulate.calibration import shipped_calibration

    shipped = read_shipped(published, forward=forward)
    if shipped is None:
        return None
    remarks: list[str] = []
    given = None
    if against is not None:
        given = read_predictions(against, {row.row_id for row in shipped.rows}, remarks.append)
    found = run_contest(
        shipped.rows,
        shipped.steps,
        calibration=shipped_calibration(),
        held_out=shipped.held_out,
        given=given,
        folds=shipped.folds,
        progress=progress,
    )
    return replace(found, remarks=(*remarks, *found.remarks))


def contest_of_table(
    table: Path, published: Path, *, against: Path | None, progress: Progress
) -> Contest:
    """The contest on a table of rows; baselines learn from the shipped rows where there are some.

    Raises:
        ConfigError: a table is not as described.
        DripleError: a row's job cannot be made.
    """
    from driple.runs.benchmark.contest import run_contest
    from driple.runs.benchmark.predictions import read_predictions
    from driple.runs.benchmark.rows import read_rows
    from driple.runs.benchmark.shipped import read_shipped
    from driple.runs.benchmark.steps import LoadedSteps
    from driple.simulate.calibration import shipped_calibration

    remarks: list[str] = []
    rows = read_rows(table, remarks.append)
    given = None
    if against is not None:
        given = read_predictions(against, {row.row_id for row in rows}, remarks.append)
    shipped = read_shipped(published, forward=False)
    steps = LoadedSteps()
    found = run_contest(
        rows,
        steps,
        calibration=shipped_calibration(),
        given=given,
        folds=None if shipped is None else shipped.folds,
        known=() if shipped is None else shipped.rows,
        known_steps=None if shipped is None else shipped.steps,
        progress=progress,
    )
    own = _with_intervals(rows, found.predicted[_OWN], steps)
    return replace(
        found, predicted={**found.predicted, _OWN: own}, remarks=(*remarks, *found.remarks)
    )


def own_runs_of(contest: Contest) -> list[OwnRun]:
    """Each run of a user's own table beside its prediction, in the order of the table."""
    return [
        OwnRun(
            run=row.row_id,
            job=row.job,
            setting=row.setting,
            measured_s=row.seconds,
            predicted_s=one.seconds,
            low_s=one.low,
            high_s=one.high,
        )
        for row, one in zip(contest.rows, contest.predicted[_OWN], strict=True)
        if one is not None
    ]


def _with_intervals(
    rows: Sequence[BenchmarkRow], predicted: Sequence[Prediction | None], steps: StepSource
) -> list[Prediction | None]:
    """The predictions with the 90 % intervals that answers about these jobs state.

    Of a user's own runs, which no interval was made of.
    """
    from driple.answers.stated_error import stated_error
    from driple.cluster.setting import Setting
    from driple.runs.checked import kind_of_prepared

    found = list(predicted)
    for i in sorted(range(len(rows)), key=lambda i: repr(rows[i].step_key)):
        row, one = rows[i], predicted[i]
        if one is None:
            continue
        kind = kind_of_prepared(steps.prepared(row), compiled=row.compiled)
        ends = stated_error(Setting.parse(row.setting), kind).interval_of(one.seconds)
        if ends is not None:
            found[i] = replace(one, low=ends[0], high=ends[1])
    return found


def utilisation_of_published(published: Path, *, progress: Progress) -> list[UtilisationScore]:
    """Simulated against measured utilisation on the published runs; nothing without their table.

    Raises:
        ConfigError: the table is damaged.
    """
    from driple.runs.benchmark.shipped import STEPS
    from driple.runs.benchmark.steps_of_store import StoredSteps
    from driple.runs.benchmark.utilisation import (
        UTILISATION_FILE,
        predict_utilisation,
        read_utilisation,
        utilisation_scores,
    )
    from driple.runs.step_store import StepStore
    from driple.simulate.calibration import shipped_calibration

    if not (published / UTILISATION_FILE).exists():
        return []
    runs, _ = read_utilisation(published / UTILISATION_FILE)
    steps = StoredSteps(StepStore.open(published / STEPS))
    return utilisation_scores(predict_utilisation(runs, steps, shipped_calibration(), progress))


def check_against(against: Path | None, *, has_rows: bool) -> None:
    """Raise ConfigError where predictions are given and there is no row that they could be of."""
    if against is not None and not has_rows:
        raise ConfigError(
            f"--against {against}: there are no rows to score it on; give --rows FILE, or "
            "--datasets FOLDER with published/pytorch_rows.csv.gz"
        )
