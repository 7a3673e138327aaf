"""Memory of a job in words: three numbers, whether it fits, what is largest, where the peak is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.api.inspecting_memory import InspectedMemory
    from driple.memory.largest import LargestBatches
    from driple.memory.memory_estimate import MemoryEstimate

__all__ = ["largest_batches_words", "memory_sentence", "peak_words"]

_GB, _GIB = 1e9, 2.0**30


def largest_batches_words(largest: LargestBatches) -> str:
    """The largest batch that fits, and the largest that surely does: `97 (86 surely)`."""
    if largest.sure in {None, largest.expected}:
        return str(largest.expected)
    return f"{largest.expected} ({largest.sure} surely)"


def memory_sentence(estimate: MemoryEstimate) -> str:
    """Three numbers, whether the job fits, and what is largest, in one line."""
    numbers = [
        f"{_gib(one.value)} {words}"
        for one, words in (
            (estimate.allocated, "allocated"), (estimate.reserved, "reserved"),
        )
        if one is not None
    ]  # fmt: skip
    total = estimate.device_total
    if total is not None:
        ends = ""
        if total.lower is not None and total.upper is not None:
            ends = f" ({_gib(total.lower, unit=False)} to {_gib(total.upper, unit=False)})"
        numbers.append(f"{_gib(total.value)} on the device{ends}")
    bound = "at most " if estimate.is_upper_bound else ""
    bound = "at least " if estimate.is_lower_bound else bound
    words = f"memory {bound}{', '.join(numbers)}"
    if estimate.capacity_bytes is not None:
        where = f" on {estimate.device}, which has least room" if estimate.device else ""
        words += f" of {_gib(estimate.capacity_bytes)}{where}: {_fits_words(estimate)}"
    if estimate.host_bytes is not None:
        room = estimate.host_capacity_bytes
        of = "" if room is None else f" of {_gib(room)}"
        words += f"; {_gib(estimate.host_bytes)}{of} on the host of each machine"
    return f"{words}; largest: {estimate.largest}" if estimate.largest else words


def _fits_words(estimate: MemoryEstimate) -> str:
    margin = estimate.margin_bytes or 0.0
    left = f"{_gib(abs(margin))} {'left' if margin >= 0 else 'too little'}"
    if margin < 0 and estimate.without_cache is not None and estimate.room_bytes is not None:
        needed, room = estimate.without_cache.value, estimate.room_bytes
        left = f"{_gib(needed)} needed, {_gib(room)} usable, {left}"
    if estimate.fits is None:
        return "unknown whether it fits, as sizes are unknown"
    return {
        "yes": f"fits, {left} (the cache counts as free)",
        "likely not": f"likely does not fit ({left})",
    }.get(estimate.fits, f"does not fit, {left}")


def _gib(nbytes: float, *, unit: bool = True) -> str:
    """Gibibytes with three significant digits."""
    value = nbytes / _GIB
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{text} GiB" if unit else text


def peak_words(memory: InspectedMemory) -> str:
    """Where the peak of a step is: `backward pass, aten::mm of layers.0.mlp`."""
    if not memory.peak_op:
        return memory.peak_phase
    of = f" of {memory.peak_module}" if memory.peak_module else ""
    phase, op = memory.peak_phase, memory.peak_op
    return f"{phase}, {op}{of}" if phase else op + of
