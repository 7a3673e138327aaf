"""The rows that ship with Driple, their folds, held-out predictions and stored steps.

datasets/runs/published --read_shipped--> Shipped
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.cluster.setting import Setting
from driple.runs.measured_run import MeasuredRun, unique_ids
from driple.runs.published_runs import FORWARD_FILE, TRAINING_FILE, as_asked, read_published
from driple.runs.step_store import StepStore
from driple.runs.steps import StepSource
from driple.runs.stored_steps import StoredSteps
from driple.runs.validation.predictions import Predictions, read_predictions
from driple.runs.validation.splits import read_folds
from driple.schemes.registry import scheme_names

__all__ = ["FOLDS", "FORWARD", "HELD_OUT", "ROWS", "STEPS", "Shipped", "read_shipped"]

ROWS, FORWARD = TRAINING_FILE, FORWARD_FILE
FOLDS, HELD_OUT, STEPS = "folds.csv", "heldout.csv.gz", "steps"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shipped:
    """The benchmark as it ships.

    Attributes:
        rows: with measured times.
        folds: fold of each model family.
        held_out: the simulator's predictions by fits without a family, device or source; None if
            they were not made yet.
        steps: of the rows.
        left_out: rows without a stored step, or of a scheme that the simulator lacks.
    """

    rows: tuple[MeasuredRun, ...]
    folds: Mapping[str, int]
    held_out: Predictions | None
    steps: StepSource
    left_out: int = 0


def read_shipped(published: Path, *, forward: bool) -> Shipped | None:
    """The rows of a folder; None if it holds no table or no steps of them.

    Args:
        published: folder of published measurements.
        forward: whether rows of forward passes are read too.

    Raises:
        ConfigError: a table is damaged.
    """
    if not (published / ROWS).exists() or not (published / STEPS).exists():
        return None
    tables = [name for name in (ROWS, FORWARD) if (published / name).exists()]
    read = [
        row
        for name in (tables if forward else tables[:1])
        for row in read_published(published / name, usable_only=True)
    ]
    rows = unique_ids(as_asked(read), str(published))
    folds = read_folds(published / FOLDS) if (published / FOLDS).exists() else {}
    held_out = None
    if (published / HELD_OUT).exists():
        held_out = read_predictions(published / HELD_OUT)
    steps = StoredSteps(StepStore.open(published / STEPS))
    kept, left_out = _with_steps(rows, steps)
    return Shipped(rows=kept, folds=folds, held_out=held_out, steps=steps, left_out=left_out)


def _with_steps(
    rows: Sequence[MeasuredRun], steps: StoredSteps
) -> tuple[tuple[MeasuredRun, ...], int]:
    """Rows that can be simulated, and how many cannot: no step, or a scheme without behaviour."""
    schemes = set(scheme_names())
    kept = tuple(
        row
        for row in rows
        if not steps.lacks(row) and Setting.parse(row.setting).scheme.name in schemes
    )
    return kept, len(rows) - len(kept)
