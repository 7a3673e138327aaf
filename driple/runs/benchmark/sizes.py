"""Sizes of the rows' jobs among those of their families.

rows, steps --sizes_of--> RowSizes: ends of families, and of each row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driple.runs.benchmark.rows import BenchmarkRow
from driple.runs.benchmark.steps import StepSource
from driple.runs.family_sizes import FamilySizes, work_of_sample

__all__ = ["RowSizes", "sizes_of"]


@dataclass(frozen=True, slots=True)
class RowSizes:
    """Ends of families.

    Attributes:
        families: where their ends begin.
        ends: of each row: `largest`, `smallest`, or empty.
    """

    families: FamilySizes
    ends: tuple[str, ...]


def sizes_of(rows: Sequence[BenchmarkRow], steps: StepSource) -> RowSizes:
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
            works[key] = work_of_sample(kinds, samples=samples, task=row.mode)
    families = FamilySizes.of(
        (row.family, row.mode, work) for row in rows for work in (works[_size_key(row)],)
    )
    ends = tuple(families.end_of(row.family, works[_size_key(row)]) for row in rows)
    return RowSizes(families, ends)


def _size_key(row: BenchmarkRow) -> tuple[object, ...]:
    """Rows of one size; adapters (`+lora`) do not make a model another one."""
    model = row.job.partition("+")[0]
    return row.family, model, row.mode, row.seq_len, row.input_shape
