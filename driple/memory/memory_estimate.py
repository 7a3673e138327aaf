"""Estimated memory of a device: numbers with their intervals, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from driple.memory.timeline import ModuleBytes
from driple.remarks import Remark

__all__ = ["COMMUNICATION_PART", "OUTSIDE_PART", "Bytes", "Fits", "MemoryEstimate"]

Fits = Literal["yes", "likely not", "no"]

COMMUNICATION_PART, OUTSIDE_PART = "communication", "outside the allocator"
_CLOSE = 1e-6  # of a share that rounding leaves


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes:
    """A number of bytes with its interval.

    Attributes:
        value: bytes.
        lower: lower end of the 90 % interval; None if the error is unknown.
        upper: upper end; None of a lower bound too.
    """

    value: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryEstimate:
    """What one device of a setting needs for a job: the one with least room, if they differ.

    Attributes:
        allocated: most bytes of tensors at once; None if unknown, and `source` says why.
        reserved: bytes that the framework's allocator takes from the device; None if unknown.
        device_total: bytes in use that the device shows; None if unknown.
        is_lower_bound: whether sizes or turns are unknown, so that the known part is given.
        is_upper_bound: whether the graph is compiled, and the numbers are those of the same graph
            that is not, which keeps more.
        capacity_bytes: memory of the device; None if unknown.
        usable_bytes: of it, what a process can have; None if unknown.
        fits: whether it is enough; None if unknown.
        margin_bytes: what is left of the share of the usable memory that runs reach, negative if it
            does not fit; None if unknown.
        parts: bytes at the peak of allocated bytes, by kind, and those outside the allocator.
        modules: what one device that holds the whole model allocates at its peak, by module and
            kind, the largest first.
        largest: what is largest, in words.
        source: what the numbers rest on, and how large their error is.
        host_bytes: what all devices of a machine keep on their host; None if they keep nothing.
        host_capacity_bytes: memory of that host; None if it is not stated, or nothing is there.
        device: of unlike devices the one with least room, or the first that has too little; empty
            where all are alike.
    """

    allocated: Bytes | None
    reserved: Bytes | None = None
    device_total: Bytes | None = None
    is_lower_bound: bool = False
    is_upper_bound: bool = False
    capacity_bytes: float | None = None
    usable_bytes: float | None = None
    fits: Fits | None = None
    margin_bytes: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    modules: tuple[ModuleBytes, ...] = ()
    largest: str = ""
    source: Remark | None = None
    host_bytes: float | None = None
    host_capacity_bytes: float | None = None
    device: str = ""

    @property
    def needed(self) -> Bytes | None:
        """What the device shows, or the best that is known of it; None if nothing is."""
        return self.device_total or self.reserved or self.allocated

    @property
    def has_upper_end(self) -> bool:
        """Whether the interval of what is needed has one."""
        return self.needed is not None and self.needed.upper is not None

    @property
    def surely_fits(self) -> bool:
        """Whether it fits by the estimate, and by the upper end of its interval."""
        needed, room = self.needed, self.capacity_bytes
        if self.fits != "yes" or needed is None or needed.upper is None or room is None:
            return False
        return needed.upper <= room

    @property
    def is_full(self) -> bool:
        """Whether the allocator's cache takes all that a process can have of the device."""
        if self.device_total is None or self.usable_bytes is None:
            return False
        return self.device_total.value >= (1 - _CLOSE) * self.usable_bytes

    @property
    def without_cache(self) -> Bytes | None:
        """What a step needs on the device at its peak; None if unknown."""
        if self.allocated is None:
            return None
        return Bytes(value=self.allocated.value + self.parts.get(OUTSIDE_PART, 0.0))

    @property
    def room_bytes(self) -> float | None:
        """What of the device a step can have: `without_cache` and the margin; None if unknown."""
        if self.margin_bytes is None or self.without_cache is None:
            return None
        return self.without_cache.value + self.margin_bytes
