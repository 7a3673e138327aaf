"""Which published peaks are compared with the memory of shards and stages."""

from __future__ import annotations

from driple.runs.published_runs import read_published
from scripts.checks.split_memory import with_peaks
from scripts.checks.split_rows import ROWS, chosen, is_split, split_setting


def test_each_split_of_a_model_is_checked_once() -> None:
    """14 published configurations, of rows that differ by micro-batches alone."""
    rows = with_peaks(chosen(read_published(ROWS)))
    assert len(rows) == len({(row.job, split_setting(row), row.size) for row in rows}) == 14
    assert all(row.peak_mem_gib and is_split(row) for row in rows)
