"""The forward passes that fits and held-out checks use: one of four, the same for both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from driple.runs.measured_run import MeasuredRun

__all__ = ["sampled_forward"]

_EVERY_FORWARD = 4  # neighbouring forward rows are nearly the same job


def sampled_forward(rows: Iterable[MeasuredRun]) -> list[MeasuredRun]:
    """The forward passes on one device that are fitted and predicted, chosen by their ids."""
    forward = sorted(
        (row for row in rows if row.task == "forward"),
        key=lambda row: hashlib.sha256(row.id.encode()).digest(),
    )
    return forward[::_EVERY_FORWARD]
