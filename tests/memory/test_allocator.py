"""The model of PyTorch's caching allocator: cases by hand, and laws on random requests."""

from __future__ import annotations

import random

import pytest

from driple.memory.allocator import CachingAllocator, played

KIB, MIB = 2**10, 2**20


def _random_events(seed: int, count: int = 400) -> tuple[list[int], list[int]]:
    """Sizes from bytes to 60 MiB, freed in random order."""
    chance = random.Random(seed)
    sizes = [int(10 ** chance.uniform(0, 7.8)) for _ in range(count)]
    events, live = [], []
    for i in range(count):
        events.append(i)
        live.append(i)
        if len(live) > 40:
            events.append(~live.pop(chance.randrange(len(live))))
    return sizes, events


@pytest.mark.parametrize(
    ("nbytes", "allocated", "reserved"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB, 12 * MIB),  # a rest of at most 1 MiB stays with the block: 2 - 512
        (50 * MIB, 50 * MIB, 50 * MIB),
    ],
)
def test_one_request_takes_the_segment_of_its_class(
    nbytes: int, allocated: int, reserved: int
) -> None:
    """Segments of 2 MiB up to 1 MiB, of 20 MiB below 10 MiB, then rounded up to 2 MiB."""
    peak = played([nbytes], [0])
    assert peak.reserved_bytes == reserved
    expected = 10 * MIB + 512 if nbytes == 10 * MIB + 1 else allocated
    assert peak.allocated_bytes == expected


def test_a_small_rest_of_a_large_block_is_not_split_off() -> None:
    """Of a freed block of 12 MiB, a request of 11.5 MiB takes all: the rest is below 1 MiB."""
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB)
    assert block is not None
    allocator.free(block)
    allocator.allocate(11 * MIB + 512 * KIB)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (12 * MIB, 12 * MIB)


def test_the_smallest_free_block_that_holds_a_request_is_taken() -> None:
    """Of free blocks of 40 and 20 MiB, a request of 18 MiB splits the one of 20."""
    allocator = CachingAllocator()
    blocks = [allocator.allocate(size * MIB) for size in (40, 20)]
    for block in blocks:
        assert block is not None
        allocator.free(block)
    allocator.allocate(18 * MIB)
    allocator.allocate(40 * MIB)
    assert allocator.reserved_bytes == 60 * MIB


def test_freed_neighbours_join() -> None:
    """Two halves of a segment hold a request of its whole size again, in any order of frees."""
    for order in ((0, 1), (1, 0)):
        allocator = CachingAllocator()
        whole = allocator.allocate(20 * MIB)
        assert whole is not None
        allocator.free(whole)
        halves = [allocator.allocate(10 * MIB) for _ in range(2)]
        assert allocator.reserved_bytes == 20 * MIB
        for i in order:
            half = halves[i]
            assert half is not None
            allocator.free(half)
        allocator.allocate(20 * MIB)
        assert allocator.reserved_bytes == 20 * MIB


def test_pools_do_not_share_segments() -> None:
    """A free segment of 20 MiB does not serve a request of 1 KiB."""
    allocator = CachingAllocator()
    block = allocator.allocate(20 * MIB)
    assert block is not None
    allocator.free(block)
    allocator.allocate(KIB)
    assert allocator.reserved_bytes == 22 * MIB


def test_a_full_device_gives_free_segments_back_first() -> None:
    """With room for 64 MiB, a free segment of 40 MiB makes way for a request of 50 MiB."""
    allocator = CachingAllocator(64 * MIB)
    block = allocator.allocate(40 * MIB)
    assert block is not None
    allocator.free(block)
    assert allocator.allocate(50 * MIB) is not None
    assert (allocator.retries, allocator.reserved_bytes) == (1, 50 * MIB)
    assert allocator.allocate(20 * MIB) is None


def test_segments_that_grow_hold_what_fragments_do_not() -> None:
    """Two freed neighbours of 30 MiB hold 60 MiB only where segments grow."""
    sizes, events = [30 * MIB, 30 * MIB, 60 * MIB], [0, 1, ~0, ~1, 2]
    assert played(sizes, events).reserved_bytes == 120 * MIB
    assert played(sizes, events, expandable=True).reserved_bytes == 60 * MIB


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_laws(seed: int, expandable: bool) -> None:
    """Requested <= allocated <= reserved; all is free at the end; the same again is the same."""
    sizes, events = _random_events(seed)
    allocator = CachingAllocator(expandable=expandable)
    blocks: dict[int, int] = {}
    for event in events:
        if event >= 0:
            placed = allocator.allocate(sizes[event])
            assert placed is not None
            blocks[event] = placed
        else:
            allocator.free(blocks.pop(~event))
        requested = sum(sizes[i] for i in blocks)
        assert requested <= allocator.allocated_bytes <= allocator.reserved_bytes
    for block in blocks.values():
        allocator.free(block)
    assert allocator.allocated_bytes == 0
    first, again = (played(sizes, events, expandable=expandable) for _ in range(2))
    assert first == again
    assert first.reserved_bytes == allocator.peak_reserved_bytes


def test_a_limit_is_never_passed() -> None:
    """Reserved memory stays within the device's, or a request fails."""
    sizes, events = _random_events(7)
    free = played(sizes, events)
    for share in (0.7, 0.9, 1.0, 1.1):
        limit = share * free.reserved_bytes
        peak = played(sizes, events, capacity_bytes=limit)
        assert peak.reserved_bytes <= limit
        assert peak.failed or peak.allocated_bytes == free.allocated_bytes
    assert played(sizes, events, capacity_bytes=free.allocated_bytes * 0.99).failed


def test_nothing_is_no_request() -> None:
    """A request of no bytes is refused by the allocator, and left out when events are played."""
    with pytest.raises(ValueError, match="1 byte or more"):
        CachingAllocator().allocate(0)
    assert played([0, 512], [0, 1, ~0, ~1]).reserved_bytes == 2 * MIB


def test_blocks_of_tensorflow_are_multiples_of_256_bytes() -> None:
    """`kMinAllocationSize` of BFC; PyTorch's are multiples of 512."""
    sizes, events = [257, 100], [0, 1]
    assert played(sizes, events, expandable=True, rounding=256).allocated_bytes == 768
    assert played(sizes, events).allocated_bytes == 1024
