"""The memory of one device, as every answer for a GPU setting states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from driple.memory.memory_estimate import Bytes, Fits
from driple.remarks import Remark

__all__ = ["KnownMemoryJson", "MemoryJson", "MemoryNumbersJson", "RemedyJson", "UnknownMemoryJson"]


class MemoryNumbersJson(TypedDict):
    """What a job needs on the device with least room, and whether it fits.

    Attributes:
        allocated_bytes: most bytes of tensors at once.
        reserved_bytes: bytes that the framework's allocator takes from the device.
        device_total_bytes: bytes in use that the device shows.
        is_lower_bound: whether sizes are unknown, so that the known part is given.
        usable_bytes: what a process can have of the capacity.
        margin_bytes: what is left of the usable memory; negative if it is too small.
        host_bytes: what all devices of a machine keep on their host; null if nothing.
        device: the device with least room; null where all are alike.
    """

    allocated_bytes: Bytes | None
    reserved_bytes: Bytes | None
    device_total_bytes: Bytes | None
    is_lower_bound: bool
    capacity_bytes: float | None
    usable_bytes: float | None
    fits: Fits | None
    margin_bytes: float | None
    host_bytes: float | None
    device: str | None


class RemedyJson(MemoryNumbersJson):
    """A change of the job or of the scheme, and the memory that it would need.

    Attributes:
        flag: the change as it is typed, such as `--batch-size 12`.
    """

    flag: str


class KnownMemoryJson(MemoryNumbersJson):
    """Memory that could be estimated.

    Attributes:
        parts: bytes at the peak of allocated bytes, by kind, and those outside the allocator.
        largest: what is largest, in words.
        source: what the numbers rest on.
        largest_batch: most samples of a device that fit; null if that is not known.
        largest_sure_batch: the same by the upper end of the interval of their memory.
        what_would_fit: changes that would make the job fit, if it may not.
    """

    known: Literal[True]
    reason: None
    parts: Mapping[str, float]
    largest: str
    source: Remark | None
    largest_batch: int | None
    largest_sure_batch: int | None
    what_would_fit: Sequence[RemedyJson]


class UnknownMemoryJson(TypedDict):
    """Why memory is unknown."""

    known: Literal[False]
    reason: Remark | None


MemoryJson = KnownMemoryJson | UnknownMemoryJson
