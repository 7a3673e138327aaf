"""Sizes of the rows' jobs among those of their families.

rows, steps --sizes_of--> RowSizes: ends of families, and of each row
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driple.runs.measured_run import FOLDS, MeasuredRun, fold_of
from driple.runs.steps import StepSource
from driple.runs.validation.splits import HeldOutPart
from scripts.fits.family_sizes import LARGEST, SMALLEST, FamilySizes, work_of_sample

__all__ = ["RowSizes", "fold_of_smallest", "parts_of_sizes", "sizes_of"]


@dataclass(frozen=True, slots=True)
class RowSizes:
    """Ends of families.

    Attributes:
        families: where their ends begin.
        ends: of each row: `largest`, `smallest`, or empty.
    """

    families: FamilySizes
    ends: tuple[str, ...]


def sizes_of(rows: Sequence[MeasuredRun], steps: StepSource) -> RowSizes:
    """The size of each row's job.

    Args:
        rows: all rows.
        steps: their steps; of the rows of one model and size, one is read.

    Raises:
        DripleError: a step cannot be made.
    """
    works: dict[tuple[object, ...], float] = {}
    for row in sorted(rows, key=lambda row: repr(row.step_key)):
        key = _size_key(row)
        if key not in works:
            kinds = steps.prepared(row).kinds
            samples = (row.batch_size or 1) * row.grad_accumulation
            works[key] = work_of_sample(kinds, samples=samples, task=row.task)
    families = FamilySizes.of(
        (row.family, row.task, work) for row in rows for work in (works[_size_key(row)],)
    )
    ends = tuple(families.end_of(row.family, works[_size_key(row)]) for row in rows)
    return RowSizes(families, ends)


def _size_key(row: MeasuredRun) -> tuple[object, ...]:
    """Rows of one size; adapters (`+lora`) do not make a model another one."""
    model = row.job.partition("+")[0]
    return row.family, model, row.task, row.seq_len, row.input_shape


def fold_of_smallest(fold: int) -> int:
    """The fold whose smallest sizes are left out with the largest sizes of a fold: another one."""
    return (fold + FOLDS // 2) % FOLDS


def parts_of_sizes(
    rows: Sequence[MeasuredRun], ends: Sequence[str], folds: Mapping[str, int] | None = None
) -> list[HeldOutPart]:
    """The largest sizes of one fold of families left out, and the smallest of another.

    Rows of families with a single size, and of sizes between, are in no part's test.

    Args:
        rows: all rows.
        ends: of each row: whether it is of its family's `largest` or `smallest` size; else empty.
        folds: fold of each family; one that is not there gets a fold by its name.
    """
    fold_of_row = [fold_of(row.family, folds) for row in rows]
    parts = []
    for fold in range(FOLDS):
        out = {(fold, LARGEST), (fold_of_smallest(fold), SMALLEST)}
        is_out = [pair in out for pair in zip(fold_of_row, ends, strict=True)]
        test = tuple(i for i, one in enumerate(is_out) if one)
        train = tuple(i for i, one in enumerate(is_out) if not one)
        if test and train:
            parts.append(HeldOutPart("size", f"sizes {fold}", train, test))
    return parts
