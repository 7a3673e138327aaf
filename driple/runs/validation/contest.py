"""All predictors on all rows: what `driple validate` prints of the benchmark.

rows, held-out predictions, splits --run_contest--> predictions by split and predictor --> scores
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driple.remarks import Remark, remark
from driple.runs.measured_run import MeasuredRun
from driple.runs.steps import StepSource
from driple.runs.validation.baselines import BASELINES
from driple.runs.validation.entry import GIVEN, SIMULATOR, EntryScore, entry_scores
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.runs.validation.rankings import RankSummary, rank_summaries
from driple.runs.validation.scores import GroupScore, scores_of
from driple.runs.validation.simulated import simulate_rows
from driple.runs.validation.speedups import speedup_scores
from driple.runs.validation.splits import HeldOutPart, parts_of
from driple.runs.validation.work import RowWork, work_of
from driple.simulate.calibration import Calibration

__all__ = ["HELD_OUT", "Contest", "entry_contest", "run_contest"]

HELD_OUT = ("family", "device", "source")
Row = Sequence[RowPrediction | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """Predictions of every predictor, and their scores.

    Attributes:
        rows: with measured times.
        predicted: by split and predictor, a prediction of each row or None.
        remarks: what is missing.
        folds: fold of each model family.
    """

    rows: Sequence[MeasuredRun]
    predicted: Mapping[tuple[str, str], Row]
    remarks: tuple[Remark, ...] = ()
    folds: Mapping[str, int] = field(default_factory=dict)

    def scores(self) -> list[GroupScore]:
        """Errors by group of rows, split and predictor; then those of speed-ups by a compiler."""
        return [
            *scores_of(self.rows, self.predicted),
            *speedup_scores(self.rows, self.predicted, self.folds),
        ]

    def entry(self) -> list[EntryScore]:
        """Errors of the given predictions in each split, and the simulator's on the same rows."""
        return entry_scores(self.rows, self.predicted)

    def rankings(self) -> list[RankSummary]:
        """How well the simulator ranks configurations and devices."""
        own = {split: row for (split, name), row in self.predicted.items() if name == SIMULATOR}
        return rank_summaries(self.rows, own)


def run_contest(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    *,
    calibration: Calibration,
    held_out: Predictions | None = None,
    given: Predictions | None = None,
    folds: Mapping[str, int] | None = None,
    known: Sequence[MeasuredRun] = (),
    known_steps: StepSource | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Contest:
    """Predict every row by the simulator, the baselines, and another tool.

    Args:
        rows: to score on.
        steps: their steps.
        calibration: of the simulator where nothing is held out: the one that users have.
        held_out: the simulator's predictions by fits without a family, device or source.
        given: another tool's.
        folds: fold of each family.
        known: rows that baselines learn from besides; those of a table of one's own learn from the
            published ones. Empty: baselines learn from `rows`.
        known_steps: steps of these.
        progress: called with each step of the work.

    Raises:
        DripleError: a row's step cannot be made.
    """
    predicted: dict[tuple[str, str], Row] = {}
    remarks: list[Remark] = []
    seconds = simulate_rows(rows, steps, calibration, progress)
    predicted["nothing", SIMULATOR] = [RowPrediction(one) for one in seconds.tolist()]
    if held_out is not None:
        predicted |= _by_split(rows, held_out, SIMULATOR, HELD_OUT)
    everything = [*known, *rows] if known else list(rows)
    work = _work(rows, steps, known, known_steps, progress)
    for split in HELD_OUT:
        parts = parts_of(everything, split, folds)
        for name, baseline in BASELINES.items():
            progress(f"{name}, without a {split}")
            learned = _baseline(baseline, everything, work, parts, len(known))
            if any(one is not None for one in learned):
                predicted[split, name] = learned
    if given is not None:
        predicted |= _by_split(rows, given, GIVEN, ("nothing", *HELD_OUT))
        for split in ("nothing", *HELD_OUT):
            count = sum(one is not None for one in predicted.get((split, GIVEN), ()))
            if 0 < count < len(rows):
                remarks.append(
                    remark("some_predictions", split=split, num_rows=count, num_all=len(rows))
                )
        remarks += _not_scored(given)
    return Contest(rows=rows, predicted=predicted, remarks=tuple(remarks), folds=folds or {})


def entry_contest(
    rows: Sequence[MeasuredRun], given: Predictions, held_out: Predictions | None = None
) -> Contest:
    """Another tool's predictions alone, and the simulator's that were made: nothing is computed.

    Args:
        rows: to score on.
        given: the tool's.
        held_out: the simulator's by fits without a family, device or source.
    """
    predicted = _by_split(rows, given, GIVEN, ("nothing", *HELD_OUT))
    remarks = _not_scored(given)
    if held_out is not None:
        predicted |= _by_split(rows, held_out, SIMULATOR, HELD_OUT)
    return Contest(rows=rows, predicted=predicted, remarks=tuple(remarks))


def _by_split(
    rows: Sequence[MeasuredRun], given: Predictions, predictor: str, splits: Sequence[str]
) -> dict[tuple[str, str], Row]:
    """Predictions of each row by split and predictor, of the splits that have any."""
    predicted: dict[tuple[str, str], Row] = {}
    for split in splits:
        predictions = [given.of(row.id, split) for row in rows]
        if any(one is not None for one in predictions):
            predicted[split, predictor] = predictions
    return predicted


def _not_scored(given: Predictions) -> list[Remark]:
    """A remark on given predictions of a split that is not scored."""
    sized = any(split == "size" for split, _ in given.by_split)
    return [remark("sizes_not_scored")] if sized else []


def _work(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    known: Sequence[MeasuredRun],
    known_steps: StepSource | None,
    progress: Callable[[str], None],
) -> RowWork:
    own = work_of(rows, steps, progress)
    return work_of(known, known_steps or steps, progress).followed_by(own) if known else own


def _baseline(
    baseline: Callable[..., np.ndarray[tuple[int], np.dtype[np.float64]]],
    rows: Sequence[MeasuredRun],
    work: RowWork,
    parts: Sequence[HeldOutPart],
    num_known: int,
) -> Row:
    """A baseline's predictions of the rows after the first `num_known`, which it learns from."""
    predictions: list[RowPrediction | None] = [None] * (len(rows) - num_known)
    for part in parts:
        test = [i for i in part.test if i >= num_known]
        train = [i for i in part.train if i < num_known or not num_known]
        if not test or not train:
            continue
        seconds = baseline(
            work.take(np.array(train, dtype=np.int64)),
            [rows[i] for i in train],
            work.take(np.array(test, dtype=np.int64)),
            [rows[i] for i in test],
        )
        for i, predicted_s in zip(test, seconds.tolist(), strict=True):
            predictions[i - num_known] = RowPrediction(predicted_s)
    return predictions
