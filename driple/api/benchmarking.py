"""The benchmark of `validate`: rows of a folder, or of one's own table, scored for every predictor.

datasets/runs/published -> rows, folds, held-out predictions, stored steps -> Contest
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.errors import ConfigError
from driple.remarks import Remark

if TYPE_CHECKING:
    from driple.api.json_types.validate import OwnRunJson
    from driple.runs.measured_run import MeasuredRun
    from driple.runs.steps import StepSource
    from driple.runs.validation.contest import Contest
    from driple.runs.validation.predictions import RowPrediction
    from driple.runs.validation.utilisation import UtilisationScore

__all__ = [
    "OwnRun",
    "contest_of_published",
    "contest_of_table",
    "entry_of_published",
    "own_runs_of",
    "utilisation_of_published",
]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OwnRun:
    """One run of a user's own table beside its prediction.

    Attributes:
        run: as measured.
        prediction: by the simulator, with the 90 % interval if the answer states one.
    """

    run: MeasuredRun
    prediction: RowPrediction

    @property
    def error(self) -> float:
        """(Predicted - measured) / measured."""
        return self.prediction.seconds / self.run.step_s - 1

    def to_dict(self) -> OwnRunJson:
        """The run as `driple validate --rows --json` prints it."""
        return {
            "run": self.run.id,
            "job": self.run.job,
            "setting": self.run.setting,
            "measured_s": self.run.step_s,
            "predicted_s": self.prediction.seconds,
            "low_s": self.prediction.low,
            "high_s": self.prediction.high,
        }


_OWN = ("nothing", "simulator")  # split and predictor: as users have it


def contest_of_published(published: Path, *, forward: bool, progress: Progress) -> Contest | None:
    """The contest on the shipped PyTorch rows; None if the folder has none.

    Args:
        published: folder of published measurements.
        forward: whether rows of forward passes take part.
        progress: called with each step of the work.

    Raises:
        ConfigError: a table is damaged.
    """
    from driple.runs.validation.contest import run_contest
    from driple.runs.validation.shipped import read_shipped
    from driple.simulate.calibration import shipped_calibration

    shipped = read_shipped(published, forward=forward)
    if shipped is None:
        return None
    return run_contest(
        shipped.rows,
        shipped.steps,
        calibration=shipped_calibration(),
        held_out=shipped.held_out,
        folds=shipped.folds,
        progress=progress,
    )


def entry_of_published(published: Path, *, forward: bool, against: Path) -> Contest:
    """Another tool's predictions of the shipped rows, beside the held-out ones of the simulator.

    Args:
        published: folder of published measurements.
        forward: whether rows of forward passes take part.
        against: the predictions.

    Raises:
        ConfigError: a table is damaged, or there are no rows.
    """
    from driple.runs.validation.contest import entry_contest
    from driple.runs.validation.entry import GIVEN
    from driple.runs.validation.predictions import read_predictions
    from driple.runs.validation.shipped import read_shipped

    shipped = read_shipped(published, forward=forward)
    if shipped is None:
        raise ConfigError(
            f"--against {against}: there are no rows to score it on; give --rows FILE, or "
            "--datasets FOLDER with runs/published/pytorch_rows.csv.gz"
        )
    remarks: list[Remark] = []
    given = read_predictions(against, {row.id for row in shipped.rows}, remarks.append)
    contest = entry_contest(shipped.rows, given, shipped.held_out)
    if all(predictor != GIVEN for _, predictor in contest.predicted):
        raise ConfigError(
            f"{against} has no prediction of a split that is scored; give nothing, family, device "
            "or source in the column split, or leave it out"
        )
    return replace(contest, remarks=(*remarks, *contest.remarks))


def contest_of_table(
    table: Path, published: Path, *, against: Path | None, progress: Progress
) -> Contest:
    """The contest on a table of rows; baselines learn from the shipped rows where there are some.

    Raises:
        ConfigError: a table is not as described.
        DripleError: a row's job cannot be made.
    """
    from driple.runs.steps import LoadedSteps
    from driple.runs.users_table import read_runs
    from driple.runs.validation.contest import run_contest
    from driple.runs.validation.predictions import read_predictions
    from driple.runs.validation.shipped import read_shipped
    from driple.simulate.calibration import shipped_calibration

    remarks: list[Remark] = []
    rows = read_runs(table, remarks.append)
    given = None
    if against is not None:
        given = read_predictions(against, {row.id for row in rows}, remarks.append)
    shipped = read_shipped(published, forward=False)
    steps = LoadedSteps()
    contest = run_contest(
        rows,
        steps,
        calibration=shipped_calibration(),
        given=given,
        folds=None if shipped is None else shipped.folds,
        known=() if shipped is None else shipped.rows,
        known_steps=None if shipped is None else shipped.steps,
        progress=progress,
    )
    own = _with_intervals(rows, contest.predicted[_OWN], steps)
    return replace(
        contest, predicted={**contest.predicted, _OWN: own}, remarks=(*remarks, *contest.remarks)
    )


def own_runs_of(contest: Contest) -> list[OwnRun]:
    """Each run of a user's own table beside its prediction, in the order of the table."""
    return [
        OwnRun(run, prediction)
        for run, prediction in zip(contest.rows, contest.predicted[_OWN], strict=True)
        if prediction is not None
    ]


def _with_intervals(
    rows: Sequence[MeasuredRun], predicted: Sequence[RowPrediction | None], steps: StepSource
) -> list[RowPrediction | None]:
    """The predictions with the 90 % intervals that answers about these jobs state.

    Of a user's own runs, which no interval was made of.
    """
    from driple.answers.job_kind import job_kind
    from driple.answers.stated_error import stated_error
    from driple.cluster.setting import Setting

    with_ends = list(predicted)
    for i in sorted(range(len(rows)), key=lambda i: repr(rows[i].step_key)):
        row, prediction = rows[i], predicted[i]
        if prediction is None:
            continue
        job = steps.prepared(row)
        kind = replace(job_kind(job.graph, job.cost), compiled=row.compiled)
        ends = stated_error(Setting.parse(row.setting), kind).interval_of(prediction.seconds)
        if ends is not None:
            with_ends[i] = replace(prediction, low=ends[0], high=ends[1])
    return with_ends


def utilisation_of_published(published: Path, *, progress: Progress) -> list[UtilisationScore]:
    """Simulated against measured utilisation on the published runs; nothing without their table.

    Raises:
        ConfigError: the table is damaged.
    """
    from driple.runs.step_store import StepStore
    from driple.runs.stored_steps import StoredSteps
    from driple.runs.validation.shipped import STEPS
    from driple.runs.validation.utilisation import (
        UTILISATION_FILE,
        predict_utilisation,
        read_utilisation,
        utilisation_scores,
    )
    from driple.simulate.calibration import shipped_calibration

    if not (published / UTILISATION_FILE).exists():
        return []
    runs, _ = read_utilisation(published / UTILISATION_FILE)
    steps = StoredSteps(StepStore.open(published / STEPS))
    return utilisation_scores(predict_utilisation(runs, steps, shipped_calibration(), progress))
