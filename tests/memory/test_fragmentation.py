"""A job whose tensors fit, and whose allocator cannot place them, is not said to fit."""

from __future__ import annotations

import numpy as np

from driple.graph.step_facts import TensorRole
from driple.memory.estimate import memory_of_step
from driple.memory.memory_estimate import MemoryEstimate
from driple.memory.place import MemoryPlace
from driple.memory.step_memory import StepMemory
from tests.simulate.jobs import net

GIB = 2**30
BLOCKS = 15


def estimate(capacity_gib: float, *, split: bool) -> MemoryEstimate:
    """Memory of a step that makes a tensor of 1 GiB and frees it, 15 times, and keeps others.

    Each tensor that is kept takes 0.6 GiB. Where blocks are split, it is made after the one of
    1 GiB is freed, in its block: the rest of the block is too small for all that follows, and the
    block cannot be given back.
    """
    kept = np.arange(BLOCKS)
    nbytes = np.concatenate([np.full(BLOCKS, GIB), np.full(BLOCKS, int(0.6 * GIB))])
    made_by = np.concatenate([2 * kept, 2 * kept + 1 if split else np.zeros(BLOCKS, int)])
    freed_after = np.concatenate([2 * kept, np.full(BLOCKS, 2 * BLOCKS)])
    step = StepMemory(
        num_nodes=2 * BLOCKS,
        nbytes=nbytes,
        made_by=made_by,
        freed_after=freed_after,
        roles=np.full(2 * BLOCKS, TensorRole.ACTIVATION, dtype=np.int8),
        is_cast=np.zeros(2 * BLOCKS, dtype=np.bool_),
        weights=StepMemory.of(net(1)).weights,
    )
    place = MemoryPlace(scheme="ddp", capacity_bytes=capacity_gib * GIB)
    return memory_of_step(step, place)


def test_a_block_that_the_allocator_cannot_place_is_a_failure_below_the_limit() -> None:
    """The sum is two thirds of the memory in both orders; in one the blocks leave no room."""
    placed, broken = estimate(16, split=False), estimate(16, split=True)
    for outcome in (placed, broken):
        assert outcome.allocated is not None and outcome.usable_bytes is not None
        assert outcome.allocated.value < 0.75 * outcome.usable_bytes
        assert outcome.margin_bytes is not None and outcome.margin_bytes > 2 * GIB
    assert (placed.fits, broken.fits) == ("yes", "likely not")


def test_with_room_for_all_blocks_the_same_step_fits() -> None:
    assert estimate(24, split=True).fits == "yes"
