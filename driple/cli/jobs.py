"""A job from what a user gives: a graph file, or the name of a workload of the zoo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.source import read_source

if TYPE_CHECKING:
    from driple.simulate.job import Job

__all__ = ["batch_size_of", "job_of"]

_MAX_MIB = 512


def job_of(text: str) -> Job:
    """A job from a graph file, or from a workload of the zoo."""
    from driple.settings import Setting
    from driple.simulate.job import Job

    return Job(read_source(text, Setting.parse("V100-P1w2"), max_mib=_MAX_MIB))


def batch_size_of(text: str) -> int | None:
    """The batch size of a workload of the zoo; None of a graph file, which does not tell."""
    from driple.zoo import Workload

    return None if Path(text).exists() else Workload.parse(text).batch_size
