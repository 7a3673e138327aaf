"""PyTorch's caching allocator of device memory, played over the events of a training step.

    requests and frees in order -> blocks in segments -> bytes reserved from the device

Rules of c10/cuda/CUDACachingAllocator.cpp (PyTorch 1.8 to 2.9): sizes are rounded up to 512 B;
requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, all
others get a segment of their own, rounded up to 2 MiB. A request takes the smallest free block that
holds it; the rest is split off if it is 512 B or more (small) or over 1 MiB (large). A freed block
joins free neighbours. Where the device has no memory left, free segments are given back first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["AllocatorPeak", "CachingAllocator", "played"]

_MIB = 2**20
MIN_BLOCK_BYTES = 512
SMALL_BYTES = _MIB  # largest request of the small pool
SMALL_SEGMENT_BYTES = 2 * _MIB
LARGE_SEGMENT_BYTES = 20 * _MIB
LEAST_OWN_BYTES = 10 * _MIB  # requests from here on get a segment of their own
ROUND_LARGE_BYTES = 2 * _MIB
_NONE = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocatorPeak:
    """Largest amounts while events were played.

    Attributes:
        allocated_bytes: of blocks in use, rounded as `torch.cuda.max_memory_allocated` counts them.
        reserved_bytes: of segments, as `torch.cuda.max_memory_reserved` counts them.
        retries: how often free segments were given back since the device had no memory left.
        failed: whether a request failed, as by `torch.cuda.OutOfMemoryError`; what comes after it
            was not played.
    """

    allocated_bytes: int
    reserved_bytes: int
    retries: int = 0
    failed: bool = False


class CachingAllocator:
    """One device's allocator.

    Args:
        capacity_bytes: memory of the device that segments may take; None for no limit.
        expandable: whether segments grow (`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`):
            each pool is one segment then, of pages of 2 MiB (small) and 20 MiB (large).
        rounding: bytes, a block takes a multiple of it.
    """

    def __init__(
        self,
        capacity_bytes: float | None = None,
        *,
        expandable: bool = False,
        rounding: int = MIN_BLOCK_BYTES,
    ) -> None:
        self._rounding = rounding
        self._capacity = float("inf") if capacity_bytes is None else capacity_bytes
        self._expandable = expandable
        self._size: list[int] = []
        self._prev: list[int] = []
        self._next: list[int] = []
        self._address: list[int] = []
        self._is_free: list[bool] = []
        self._is_small: list[bool] = []
        # Free blocks of the small and the large pool: (bytes, address, block), sorted.
        self._free: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
        self._last = [_NONE, _NONE]  # last block of a pool's segment, if it is expandable
        self._top = 0  # address behind the last segment
        self.allocated_bytes = self.reserved_bytes = self.retries = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0

    def allocate(self, nbytes: int) -> int | None:
        """A block for a request, None if the device has no memory for it.

        Args:
            nbytes: asked for; 0 takes no block and is refused.

        Raises:
            ValueError: it asks for less than one byte.
        """
        if nbytes < 1:
            raise ValueError(f"a block has 1 byte or more, got {nbytes}")
        size = -(-nbytes // self._rounding) * self._rounding
        small = size <= SMALL_BYTES
        pool = self._free[0 if small else 1]
        at = bisect_left(pool, (size, _NONE, _NONE))
        if at < len(pool):
            block = pool.pop(at)[2]
        else:
            segment = self._grown(size, small)
            if segment is None:
                return None
            block = segment
        rest = self._size[block] - size
        if rest >= self._rounding if small or self._expandable else rest > SMALL_BYTES:
            self._split(block, size, rest)
        self._is_free[block] = False
        self.allocated_bytes += self._size[block]
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return block

    def free(self, block: int) -> None:
        """Give a block back; it joins free neighbours."""
        size, before, behind = self._size, self._prev[block], self._next[block]
        self.allocated_bytes -= size[block]
        pool = self._free[0 if self._is_small[block] else 1]
        if before != _NONE and self._is_free[before]:
            self._take(pool, before)
            size[before] += size[block]
            self._link(before, behind, block)
            block = before
        if behind != _NONE and self._is_free[behind]:
            self._take(pool, behind)
            size[block] += size[behind]
            self._link(block, self._next[behind], behind)
        self._is_free[block] = True
        insort(pool, (size[block], self._address[block], block))

    def _link(self, block: int, behind: int, gone: int) -> None:
        """Let a block be followed by another, in place of one that is gone."""
        self._next[block] = behind
        if behind != _NONE:
            self._prev[behind] = block
        place = 0 if self._is_small[block] else 1
        if self._last[place] == gone:
            self._last[place] = block

    def _take(self, pool: list[tuple[int, int, int]], block: int) -> None:
        """Remove a block from the free ones."""
        del pool[bisect_left(pool, (self._size[block], self._address[block], block))]

    def _new(self, size: int, address: int, small: bool, before: int, behind: int) -> int:
        self._size.append(size)
        self._address.append(address)
        self._is_small.append(small)
        self._prev.append(before)
        self._next.append(behind)
        self._is_free.append(False)
        return len(self._size) - 1

    def _split(self, block: int, size: int, rest: int) -> None:
        """Split the rest off a block; it is free."""
        small, behind = self._is_small[block], self._next[block]
        new_block = self._new(rest, self._address[block] + size, small, block, behind)
        self._size[block], self._next[block] = size, new_block
        if behind != _NONE:
            self._prev[behind] = new_block
        place = 0 if small else 1
        if self._last[place] == block:
            self._last[place] = new_block
        self._is_free[new_block] = True
        insort(self._free[place], (rest, self._address[new_block], new_block))

    def _grown(self, size: int, small: bool) -> int | None:
        """A block of new memory; None if the device has not enough."""
        if self._expandable:
            return self._expanded(size, small)
        if small:
            wanted = SMALL_SEGMENT_BYTES
        elif size < LEAST_OWN_BYTES:
            wanted = LARGE_SEGMENT_BYTES
        else:
            wanted = -(-size // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES
        if self.reserved_bytes + wanted > self._capacity:
            self._release()
            if self.reserved_bytes + wanted > self._capacity:
                return None
        self._reserve(wanted)
        self._top += wanted
        return self._new(wanted, self._top - wanted, small, _NONE, _NONE)

    def _expanded(self, size: int, small: bool) -> int | None:
        """The last block of a pool's segment, which has grown by whole pages."""
        place, page = (0, SMALL_SEGMENT_BYTES) if small else (1, LARGE_SEGMENT_BYTES)
        last = self._last[place]
        is_free = last != _NONE and self._is_free[last]
        missing = size - (self._size[last] if is_free else 0)
        wanted = -(-missing // page) * page
        if self.reserved_bytes + wanted > self._capacity:
            return None
        self._reserve(wanted)
        if is_free:
            self._take(self._free[place], last)
            self._size[last] += wanted
            return last
        # Pools are far apart, so that their addresses never meet.
        start = place << 60 if last == _NONE else self._address[last] + self._size[last]
        new_block = self._new(wanted, start, small, last, _NONE)
        if last != _NONE:
            self._next[last] = new_block
        self._last[place] = new_block
        return new_block

    def _reserve(self, nbytes: int) -> None:
        self.reserved_bytes += nbytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _release(self) -> None:
        """Give back all segments that are free as a whole."""
        self.retries += 1
        for pool in self._free:
            kept = [
                one for one in pool if self._prev[one[2]] != _NONE or self._next[one[2]] != _NONE
            ]
            self.reserved_bytes -= sum(one[0] for one in pool) - sum(one[0] for one in kept)
            pool[:] = kept


def played(
    nbytes: Sequence[int],
    events: Sequence[int],
    *,
    capacity_bytes: float | None = None,
    expandable: bool = False,
    rounding: int = MIN_BLOCK_BYTES,
) -> AllocatorPeak:
    """The largest amounts while requests are made and freed in order.

    Args:
        nbytes: shape [t], of each request; those of 0 take no memory.
        events: in order; `i` makes request i, `~i` frees it.
        capacity_bytes: as for `CachingAllocator`.
        expandable: as for `CachingAllocator`.
        rounding: as for `CachingAllocator`.
    """
    allocator = CachingAllocator(capacity_bytes, expandable=expandable, rounding=rounding)
    blocks: dict[int, int] = {}
    failed = False
    for event in events:
        if event < 0:
            if (block := blocks.pop(~event, None)) is not None:
                allocator.free(block)
        elif nbytes[event] > 0:
            allocated = allocator.allocate(nbytes[event])
            if allocated is None:
                failed = True
                break
            blocks[event] = allocated
    return AllocatorPeak(
        allocated_bytes=allocator.peak_allocated_bytes,
        reserved_bytes=allocator.peak_reserved_bytes,
        retries=allocator.retries,
        failed=failed,
    )
