"""Blocks and segments of the caching allocator, request by request, with every number by hand."""

from __future__ import annotations

import random

import pytest

from driple.memory.allocator import AllocatorPeak, CachingAllocator, played

KIB, MIB = 2**10, 2**20


def block_of(allocator: CachingAllocator, nbytes: int) -> int:
    """A block that is there."""
    block = allocator.allocate(nbytes)
    assert block is not None
    return block


def test_all_begins_at_nothing() -> None:
    allocator = CachingAllocator()
    assert (allocator.allocated_bytes, allocator.reserved_bytes, allocator.retries) == (0, 0, 0)
    assert (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes) == (0, 0)
    assert played([], []) == AllocatorPeak(allocated_bytes=0, reserved_bytes=0)
    assert not AllocatorPeak(allocated_bytes=0, reserved_bytes=0).failed


def test_amounts_fall_and_peaks_stay() -> None:
    """Two blocks of 3 and 5 MiB share a segment of 20 MiB; one freed, 5 MiB are in use."""
    allocator = CachingAllocator()
    small, _ = block_of(allocator, 3 * MIB), block_of(allocator, 5 * MIB)
    allocator.free(small)
    assert (allocator.allocated_bytes, allocator.peak_allocated_bytes) == (5 * MIB, 8 * MIB)
    assert allocator.reserved_bytes == allocator.peak_reserved_bytes == 20 * MIB


def test_a_small_segment_is_filled_to_the_last_block() -> None:
    """4,096 blocks of 512 B are 2 MiB; one more needs a second segment."""
    allocator = CachingAllocator()
    blocks = [block_of(allocator, 1) for _ in range(4096)]
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (2 * MIB, 2 * MIB)
    block_of(allocator, 1)
    assert allocator.reserved_bytes == 4 * MIB
    for block in blocks:
        allocator.free(block)
    block_of(allocator, MIB)
    block_of(allocator, MIB)
    assert allocator.reserved_bytes == 4 * MIB


def test_a_rest_of_512_bytes_is_split_off_a_small_block() -> None:
    """Of a freed block of 1 KiB, between two that stay, a request of 1 B leaves 512 B free."""
    allocator = CachingAllocator()
    sizes = (KIB, KIB, MIB - 2 * KIB, MIB)
    middle = [block_of(allocator, size) for size in sizes][1]
    allocator.free(middle)
    block_of(allocator, 1)
    assert allocator.allocated_bytes == 2 * MIB - 512
    block_of(allocator, 1)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (2 * MIB, 2 * MIB)


@pytest.mark.parametrize(("rest", "is_split"), [(MIB, False), (MIB + 512, True)])
def test_more_than_1_mib_is_split_off_a_large_block(rest: int, is_split: bool) -> None:
    allocator = CachingAllocator()
    allocator.free(block_of(allocator, 12 * MIB))
    block_of(allocator, 12 * MIB - rest)
    assert allocator.allocated_bytes == (12 * MIB - rest if is_split else 12 * MIB)
    block_of(allocator, MIB + 512)
    assert allocator.reserved_bytes == (12 * MIB if is_split else 32 * MIB)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2), (1, 2, 0)])
@pytest.mark.parametrize("expandable", [False, True])
def test_three_neighbours_join_in_any_order(order: tuple[int, ...], expandable: bool) -> None:
    """Parts of 6, 6 and 8 MiB of one segment hold 20 MiB again, and then 6 and 14 MiB."""
    allocator = CachingAllocator(expandable=expandable)
    parts = [block_of(allocator, size * MIB) for size in (6, 6, 8)]
    assert allocator.reserved_bytes == 20 * MIB
    for i in order:
        allocator.free(parts[i])
    whole = block_of(allocator, 20 * MIB)
    assert allocator.reserved_bytes == allocator.allocated_bytes == 20 * MIB
    allocator.free(whole)
    block_of(allocator, 6 * MIB)
    block_of(allocator, 14 * MIB)
    assert allocator.reserved_bytes == allocator.allocated_bytes == 20 * MIB


def test_neighbours_that_are_in_use_are_not_joined() -> None:
    """The outer ones of three are free: 12 MiB together, of which none holds 7."""
    allocator = CachingAllocator()
    parts = [block_of(allocator, size * MIB) for size in (6, 8, 6)]
    allocator.free(parts[0])
    allocator.free(parts[2])
    block_of(allocator, 7 * MIB)
    assert allocator.reserved_bytes == 40 * MIB


def test_segments_are_no_neighbours() -> None:
    """Two whole segments of 10 MiB that lie side by side do not hold 20 MiB."""
    allocator = CachingAllocator()
    for block in [block_of(allocator, 10 * MIB) for _ in range(2)]:
        allocator.free(block)
    block_of(allocator, 20 * MIB)
    assert allocator.reserved_bytes == 40 * MIB


def test_of_equal_free_blocks_the_first_in_memory_is_taken() -> None:
    """So that the last one is left whole for its neighbour to join."""
    allocator = CachingAllocator()
    first, second, third = (block_of(allocator, size * MIB) for size in (6, 6, 8))
    allocator.free(third)
    allocator.free(first)
    allocator.allocate(8 * MIB)  # the third again
    allocator.free(second)
    block_of(allocator, 12 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


@pytest.mark.parametrize(("room", "holds"), [(20 * MIB, True), (20 * MIB - 1, False)])
@pytest.mark.parametrize("expandable", [False, True])
def test_a_segment_may_take_just_what_there_is(room: int, holds: bool, expandable: bool) -> None:
    allocator = CachingAllocator(room, expandable=expandable)
    assert (allocator.allocate(5 * MIB) is not None) is holds
    assert allocator.reserved_bytes == (20 * MIB if holds else 0)


def test_what_is_given_back_is_only_what_is_free_as_a_whole() -> None:
    """Of 20 MiB with one block in use, and 2 and 30 MiB that are free, 32 MiB go."""
    allocator = CachingAllocator(60 * MIB)
    kept, gone = block_of(allocator, 5 * MIB), block_of(allocator, 30 * MIB)
    tiny = block_of(allocator, KIB)
    allocator.free(gone)
    allocator.free(tiny)
    assert allocator.reserved_bytes == 52 * MIB
    block_of(allocator, 40 * MIB)
    assert (allocator.reserved_bytes, allocator.retries) == (60 * MIB, 1)
    assert allocator.peak_reserved_bytes == 60 * MIB
    block_of(allocator, 9 * MIB)  # of the rest of the segment that stayed
    assert allocator.reserved_bytes == 60 * MIB
    assert allocator.allocate(KIB) is None
    assert allocator.retries == 2
    allocator.free(kept)


def test_a_segment_that_grows_takes_the_free_end_with_it() -> None:
    """Of 20 MiB 8 are free at the end: 30 MiB need two pages more, which leave 18 free."""
    allocator = CachingAllocator(expandable=True)
    block_of(allocator, 12 * MIB)
    large = block_of(allocator, 30 * MIB)
    assert (allocator.reserved_bytes, allocator.allocated_bytes) == (60 * MIB, 42 * MIB)
    block_of(allocator, 18 * MIB)
    assert allocator.reserved_bytes == allocator.allocated_bytes == 60 * MIB
    block_of(allocator, 2 * MIB)
    assert allocator.reserved_bytes == 80 * MIB
    allocator.free(large)
    block_of(allocator, 30 * MIB)
    assert allocator.reserved_bytes == 80 * MIB


def test_a_full_segment_grows_by_new_pages_that_join() -> None:
    """Two pages of 20 MiB, each full; freed, they hold 40 MiB, and the small pool has its own."""
    allocator = CachingAllocator(expandable=True)
    first, second = block_of(allocator, 20 * MIB), block_of(allocator, 20 * MIB)
    tiny = [block_of(allocator, MIB) for _ in range(3)]
    assert allocator.reserved_bytes == 44 * MIB
    for block in (first, second, *tiny):
        allocator.free(block)
    assert allocator.allocated_bytes == 0
    block_of(allocator, 40 * MIB)
    assert allocator.reserved_bytes == 44 * MIB
    block_of(allocator, 500)
    block_of(allocator, MIB)
    assert allocator.reserved_bytes == 44 * MIB


def test_pages_of_a_segment_follow_each_other() -> None:
    """Full pages of 20 MiB of the large pool, and of 2 MiB of the small one."""
    allocator = CachingAllocator(expandable=True)
    for size, page in ((20 * MIB, 20 * MIB), (MIB, MIB)):
        blocks = [block_of(allocator, size) for _ in range(4)]
        begins = [allocator._address[block] for block in blocks]
        assert [begin - begins[0] for begin in begins] == [i * page for i in range(4)]


def test_a_segment_that_grows_gives_nothing_back() -> None:
    peak = played([30 * MIB, 30 * MIB], [0, 1], capacity_bytes=50 * MIB, expandable=True)
    assert peak == AllocatorPeak(
        allocated_bytes=30 * MIB, reserved_bytes=40 * MIB, retries=0, failed=True
    )


def test_a_growing_segment_splits_512_bytes_off_a_large_block() -> None:
    allocator = CachingAllocator(expandable=True)
    block_of(allocator, 20 * MIB - 512)
    assert allocator.allocated_bytes == 20 * MIB - 512


def test_what_comes_after_a_failure_is_not_played() -> None:
    sizes = [10 * MIB, 40 * MIB, 12 * MIB]
    peak = played(sizes, [0, 1, 2], capacity_bytes=30 * MIB)
    assert peak == AllocatorPeak(
        allocated_bytes=10 * MIB, reserved_bytes=10 * MIB, retries=1, failed=True
    )
    freed = played(sizes, [0, ~0, 2], capacity_bytes=12 * MIB)
    assert freed == AllocatorPeak(allocated_bytes=12 * MIB, reserved_bytes=12 * MIB, retries=1)


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_requests_never_share_a_byte(seed: int, expandable: bool) -> None:
    """Blocks in use do not overlap, and after all is freed a growing pool is one block again."""
    chance = random.Random(seed)
    allocator = CachingAllocator(expandable=expandable)
    live: list[int] = []
    for _ in range(300):
        if live and chance.random() < 0.45:
            allocator.free(live.pop(chance.randrange(len(live))))
        else:
            # Some fill whole pages, so that the next segment begins where they end.
            whole = MIB * chance.choice([1, 20, 40])
            size = whole if chance.random() < 0.4 else int(10 ** chance.uniform(1, 7.6))
            live.append(block_of(allocator, size))
        spans = sorted((allocator._address[i], allocator._size[i]) for i in live)
        ends = [begin + size for begin, size in spans]
        assert all(end <= begin for end, (begin, _) in zip(ends, spans[1:], strict=False))
        assert allocator.allocated_bytes == sum(size for _, size in spans)
    for block in live:
        allocator.free(block)
    assert allocator.allocated_bytes == 0
    free = [size for pool in allocator._free for size, _, _ in pool]
    assert sum(free) == allocator.reserved_bytes
    if expandable:
        assert [len(pool) for pool in allocator._free] == [1, 1]
