"""The benchmark of `validate`: rows of a folder, or of one's own table, scored for every predictor.

datasets/published -> rows, folds, held-out predictions, stored steps -> Contest
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.codec import Json, to_dict
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.calibration.benchmark.contest import Contest
    from driple.calibration.benchmark.scores import GroupScore
    from driple.calibration.benchmark.utilisation import UtilisationScore

__all__ = [
    "check_against",
    "contest_of_published",
    "contest_of_table",
    "score_to_dict",
    "utilisation_of_published",
]

Progress = Callable[[str], None]


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
    from driple.calibration.benchmark.contest import run_contest
    from driple.calibration.benchmark.predictions import read_predictions
    from driple.calibration.benchmark.shipped import read_shipped
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
    from driple.calibration.benchmark.contest import run_contest
    from driple.calibration.benchmark.predictions import read_predictions
    from driple.calibration.benchmark.rows import read_rows
    from driple.calibration.benchmark.shipped import read_shipped
    from driple.calibration.benchmark.steps import LoadedSteps
    from driple.simulate.calibration import shipped_calibration

    remarks: list[str] = []
    rows = read_rows(table, remarks.append)
    given = None
    if against is not None:
        given = read_predictions(against, {row.row_id for row in rows}, remarks.append)
    shipped = read_shipped(published, forward=False)
    if shipped is None:
        found = run_contest(
            rows, LoadedSteps(), calibration=shipped_calibration(), given=given, progress=progress
        )
    else:
        found = run_contest(
            rows,
            shipped.steps,
            calibration=shipped_calibration(),
            given=given,
            folds=shipped.folds,
            known=shipped.rows,
            known_steps=shipped.steps,
            progress=progress,
        )
    return replace(found, remarks=(*remarks, *found.remarks))


def utilisation_of_published(published: Path, *, progress: Progress) -> list[UtilisationScore]:
    """Simulated against measured utilisation on the published runs; nothing without their table.

    Raises:
        ConfigError: the table is damaged.
    """
    from driple.calibration.benchmark.shipped import STEPS
    from driple.calibration.benchmark.steps_of_store import StoredSteps
    from driple.calibration.benchmark.utilisation import (
        UTILISATION_FILE,
        predict_utilisation,
        read_utilisation,
        utilisation_scores,
    )
    from driple.calibration.step_store import StepStore
    from driple.simulate.calibration import shipped_calibration

    if not (published / UTILISATION_FILE).exists():
        return []
    runs, _ = read_utilisation(published / UTILISATION_FILE)
    steps = StoredSteps(StepStore.open(published / STEPS))
    return utilisation_scores(predict_utilisation(runs, steps, shipped_calibration(), progress))


def score_to_dict(score: GroupScore) -> dict[str, Json]:
    """One line of the benchmark as `--json` prints it."""
    return to_dict(score)


def check_against(against: Path | None, *, has_rows: bool) -> None:
    """Raise ConfigError where predictions are given and there is no row that they could be of."""
    if against is not None and not has_rows:
        raise ConfigError(
            f"--against {against}: there are no rows to score it on; give --rows FILE, or "
            "--datasets FOLDER with published/pytorch_rows.csv.gz"
        )
