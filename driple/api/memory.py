"""Memory beside every answer for a GPU setting: whether the job fits, and what would make it fit.

Job, Setting -> JobMemory: MemoryEstimate, or why it is unknown; remedies, each estimated itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.errors import GraphError
from driple.remarks import Remark

if TYPE_CHECKING:
    from driple.api.json_types.memory import MemoryJson, MemoryNumbersJson
    from driple.cluster.setting import Setting
    from driple.jobs.load import Job
    from driple.memory.largest import LargestBatches
    from driple.memory.memory_estimate import MemoryEstimate

__all__ = [
    "JobMemory",
    "Remedy",
    "memory_beside",
    "memory_dict",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """A change of the job or of the scheme, and the memory that it would need.

    Attributes:
        flag: as it is typed, such as `--batch-size 12`.
        memory: estimate with it.
    """

    flag: str
    memory: MemoryEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class JobMemory:
    """Memory of a job on one device of a setting: the one with least room, if they differ.

    Attributes:
        estimate: what it needs; None if it is unknown.
        reason: why it is unknown; None if it is known.
        remedies: what would make it fit, if it may not; those that fit come first.
        remedies_asked: whether remedies were looked for.
        largest: the largest batches that fit, where the job fits; None if they are not known, as
            of graphs whose batch cannot be changed.
    """

    estimate: MemoryEstimate | None
    reason: Remark | None = None
    remedies: tuple[Remedy, ...] = ()
    remedies_asked: bool = False
    largest: LargestBatches | None = None


def memory_beside(job: Job, setting: Setting) -> JobMemory | None:
    """Memory of a job on the device of a setting with least room; None for one without GPUs.

    Raises:
        CatalogError: the catalogue does not state the memory of a device.
    """
    from driple.memory.estimate import memory_of
    from driple.memory.place import MemoryPlace

    if MemoryPlace.of_kinds(setting)[0].capacity_bytes is None:
        return None
    try:
        estimate = memory_of(job, setting)
    except GraphError as error:
        return JobMemory(estimate=None, reason=Remark.of_text(str(error)))
    if estimate.allocated is None:
        return JobMemory(estimate=None, reason=estimate.source)
    return JobMemory(estimate=estimate)


def memory_dict(memory: JobMemory | None) -> MemoryJson | None:
    """The memory of one answer in the JSON of every command."""
    if memory is None:
        return None
    estimate = memory.estimate
    if estimate is None:
        return {"known": False, "reason": memory.reason}
    return {
        "known": True,
        "reason": None,
        **_estimate_dict(estimate),
        "parts": estimate.parts,
        "largest": estimate.largest,
        "source": estimate.source,
        "largest_batch": None if memory.largest is None else memory.largest.expected,
        "largest_sure_batch": None if memory.largest is None else memory.largest.sure,
        "what_would_fit": [
            {"flag": one.flag, **_estimate_dict(one.memory)} for one in memory.remedies
        ],
    }


def _estimate_dict(estimate: MemoryEstimate) -> MemoryNumbersJson:
    return {
        "allocated_bytes": estimate.allocated,
        "reserved_bytes": estimate.reserved,
        "device_total_bytes": estimate.device_total,
        "is_lower_bound": estimate.is_lower_bound,
        "capacity_bytes": estimate.capacity_bytes,
        "usable_bytes": estimate.usable_bytes,
        "fits": estimate.fits,
        "margin_bytes": estimate.margin_bytes,
        "host_bytes": estimate.host_bytes,
        "device": estimate.device or None,
    }
