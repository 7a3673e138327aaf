"""Which published peaks are compared with the memory of shards and stages."""

from __future__ import annotations

from driple.runs.published_runs import read_published
from scripts.check_split_rows import ROWS, chosen
from scripts.checks.split_memory import with_peaks


def test_each_split_of_a_model_is_checked_once() -> None:
    """Eight published configurations, of 20 rows that differ by micro-batches alone."""
    rows = with_peaks(chosen(read_published(ROWS)))
    assert len(rows) == len({(row.job, row.tp, row.pp) for row in rows}) == 8
    assert all(row.peak_mem_gib and row.tp * row.pp in (2, 4, 8) for row in rows)
