"""Formats in which published rows in 8 and 4 bits ran."""

from __future__ import annotations

from collections import Counter

from driple.graph.low_precision import LOW_PRECISIONS
from driple.runs.published_runs import read_published
from scripts.checks.low_rows import low_rows
from scripts.checks.split_rows import ROWS


def test_formats_follow_the_device() -> None:
    rows = low_rows(read_published(ROWS))
    formats = Counter((row.device, row.precision) for row in rows)
    assert {precision for _, precision in formats} == set(LOW_PRECISIONS)
    assert formats["H100", "fp8"] > 50
    assert not formats["GB200", "fp8"] + formats["B200", "fp8"] + formats["H100", "fp8-block"]


def test_programs_of_nvidia_fuse() -> None:
    rows = low_rows(read_published(ROWS))
    assert all(row.compiled for row in rows if row.source.startswith("NVIDIA"))


def test_rows_without_a_time_or_a_device_are_left_out() -> None:
    assert all(row.step_s > 0 and row.device for row in low_rows(read_published(ROWS)))
