"""Memory of one job at every batch size, from two batches that it was read at.

few, many: Job -> MemoryLine --at--> MemoryEstimate
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.jobs.job import Job
from driple.memory.estimate import memory_of_steps
from driple.memory.memory_estimate import MemoryEstimate
from driple.memory.place import MemoryPlace
from driple.memory.split_model import batched_device_steps
from driple.memory.step_memory import StepMemory

__all__ = ["MemoryLine", "batched_memory"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MemoryLine:
    """What a job needs at every batch size, wherever it runs.

    Attributes:
        job: at one of its batch sizes.
        steps_at: the step of a device of each stage, by batch size.
    """

    job: Job
    steps_at: Callable[[int], tuple[StepMemory, ...]]

    @classmethod
    def between(cls, few: Job, many: Job, degrees: Degrees) -> MemoryLine:
        """The line through a small and a larger batch size.

        Args:
            few: the job at a small batch size.
            many: the same at a larger one.
            degrees: how devices share out a replica.

        Raises:
            ConfigError: the jobs differ in more than their batch size.
            GraphError: as `memory_of`.
        """
        for line, small, shared in _LINES:
            if line.job is many and small is few and shared == degrees:
                return line
        steps_at = batched_device_steps(
            (few.batch_size or 1, few.graph), (many.batch_size or 1, many.graph), degrees
        )
        line = cls(job=many, steps_at=lru_cache(_MOST_SIZES)(steps_at))
        _LINES[:] = [*_LINES, (line, few, degrees)][-_MOST_LINES:]
        return line

    def at(self, batch_size: int, places: Sequence[MemoryPlace]) -> MemoryEstimate:
        """Memory of a device at a batch size.

        Args:
            batch_size: samples of a device in a pass.
            places: one for each kind of device.
        """
        return memory_of_steps(self.job, self.steps_at(batch_size), places)


# Of the jobs that were asked for last, which many clusters share.
_LINES: list[tuple[MemoryLine, Job, Degrees]] = []
_MOST_LINES = 4
_MOST_SIZES = 32  # batch sizes of a line; clusters of one kind of device ask for the same


def batched_memory(
    few: Job, many: Job, setting: Setting, *, capacity_bytes: float | None = None
) -> Callable[[int], MemoryEstimate]:
    """Memory by batch size, of one job that was read at two of them.

    Args:
        few: the job at a small batch size.
        many: the same at a larger one.
        setting: cluster and scheme.
        capacity_bytes: as for `memory_of`.

    Raises:
        ConfigError: the jobs differ in more than their batch size.
        GraphError: as `memory_of`.
        CatalogError: as `memory_of`.
    """
    many.require_decided("memory", "the largest batch")
    places = MemoryPlace.of_job(many, setting, capacity_bytes)
    line = MemoryLine.between(few, many, places[0].degrees)
    return lambda batch_size: line.at(batch_size, places)
