"""Every tensor of a small step on one device, with its life, under each thing a scheme may hold.

node   0 root   1-2 block 1   3-4 block 2   5 block 2   6 block 1   7 root
       ------------ forward ------------   ----------- backward ---------
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.graph.step_facts import OptimizerUpdate, TensorRole
from driple.memory.device_tensors import COMMUNICATION, DeviceTensors, device_tensors, host_bytes
from driple.memory.step_memory import StepMemory, Weights
from driple.schemes.scheme import Sharding

Row = tuple[int, int, int, int]  # kind, bytes, made by, freed after

PARAMETER, GRADIENT = int(TensorRole.PARAMETER), int(TensorRole.GRADIENT)
ACTIVATION, TEMPORARY = int(TensorRole.ACTIVATION), int(TensorRole.TEMPORARY)
MIB, END = 2**20, 8
ALL_SHARDED = Sharding(shards_parameters=True, shards_gradients=True, shards_states=True)
ZERO2 = Sharding(shards_gradients=True, shards_states=True)
# 10, 100, 50 (frozen) and 200 elements of 4 bytes; the first is the root's, two are of block 1.
WEIGHTS = Weights(
    nbytes=np.array([40, 400, 200, 800]),
    elements=np.array([10, 100, 50, 200]),
    is_trained=np.array([True, True, False, True]),
    gradient_at=np.array([7, 6, -1, 5]),
    block_of=np.array([0, 1, 1, 2]),
    forward_at=np.array([0, 1, 3]),
    forward_end=np.array([0, 2, 4]),
    backward_at=np.array([-1, 6, 5]),
    complete_at=np.array([7, 6, 5]),
    sharers=np.ones(4),
)
# An activation, a copy for autocast, and the gradients. The update is Adam's.
STEP = StepMemory(
    num_nodes=END,
    nbytes=np.array([1000, 100, 800, 400, 40]),
    made_by=np.array([2, 1, 5, 6, 7]),
    freed_after=np.array([5, 2, END, END, END]),
    roles=np.array([ACTIVATION, TEMPORARY, GRADIENT, GRADIENT, GRADIENT], dtype=np.int8),
    is_cast=np.array([False, True, False, False, False]),
    weights=WEIGHTS,
    update=OptimizerUpdate(state_bytes=2 * 1240, temporary_bytes=1240),
)
# The last parameter, and the frozen one, in half precision.
HALF = replace(
    STEP,
    weights=replace(WEIGHTS, nbytes=np.array([40, 400, 100, 400])),
    update=OptimizerUpdate(state_bytes=2 * 840, temporary_bytes=840),
)
WHOLE_PARAMETERS = [(PARAMETER, nbytes, -1, END) for nbytes in (40, 400, 200, 800)]
OWN = [(ACTIVATION, 1000, 2, 5), (TEMPORARY, 100, 1, 2)]
GRADIENTS = [(GRADIENT, 800, 5, END), (GRADIENT, 400, 6, END), (GRADIENT, 40, 7, END)]
# Of blocks: one ahead in both passes; the root stays from its first use to its last.
GATHERED = [
    (COMMUNICATION, 40, 0, 7), (COMMUNICATION, 600, 1, 2), (COMMUNICATION, 800, 1, 4),
    (COMMUNICATION, 800, 5, 5), (COMMUNICATION, 600, 5, 6),
]  # fmt: skip
# Gradients until their block is reduced, and a flat copy of each block's.
REDUCED = [
    (kind, nbytes, node, node)
    for kind in (GRADIENT, COMMUNICATION)
    for nbytes, node in ((40, 7), (400, 6), (800, 5))
]


def rows_of(tensors: DeviceTensors, kind: int | None = None) -> list[Row]:
    """The tensors in one order, of all kinds or one."""
    columns = (tensors.kinds, tensors.nbytes, tensors.made_by, tensors.freed_after)
    rows: list[Row] = sorted(zip(*(column.tolist() for column in columns), strict=True))
    return [row for row in rows if kind is None or row[0] == kind]


def test_a_whole_model_with_its_buckets() -> None:
    """The sizes of Adam's two states, and of what its update makes, are those of parameters."""
    tensors = device_tensors(STEP, Sharding(keeps_buckets=True), 1, 4)
    buckets = [(COMMUNICATION, 1240, -1, END)]
    assert rows_of(tensors) == sorted([*WHOLE_PARAMETERS, *OWN, *GRADIENTS, *buckets])
    assert tensors.states.tolist() == [40, 400, 800, 40, 400, 800]
    assert tensors.temporary.tolist() == [40, 400, 800]
    assert tensors.num_nodes == END
    assert tensors.kept_bytes(GRADIENT) == 1240 and tensors.kept_bytes(ACTIVATION) == 0


def test_a_model_in_shards_is_gathered_block_by_block() -> None:
    """Of four devices; products read what was gathered, so autocast makes no copy."""
    shards = [(PARAMETER, 10, -1, END), (PARAMETER, 150, -1, END), (PARAMETER, 200, -1, END)]
    own = [(GRADIENT, 10, 7, END), (GRADIENT, 100, 6, END), (GRADIENT, 200, 5, END)]
    tensors = device_tensors(STEP, ALL_SHARDED, 4, 4)
    assert rows_of(tensors) == sorted([OWN[0], *shards, *GATHERED, *REDUCED, *own])
    assert tensors.states.tolist() == [10, 100, 200] * 2
    assert tensors.temporary.tolist() == [10, 100, 200]
    twice = device_tensors(replace(STEP, passes=2), ALL_SHARDED, 4, 4)
    before = [(kind, nbytes, -1, END) for kind, nbytes, _, _ in own]
    assert rows_of(twice) == sorted([OWN[0], *shards, *GATHERED, *REDUCED, *before])


@pytest.mark.parametrize(
    ("within", "kept"), [(199, []), (200, [2]), (399, [2]), (400, [2, 1]), (10**9, [2, 1])]
)
def test_blocks_that_are_used_again_soon_stay(within: int, kept: list[int]) -> None:
    """200 elements of block 2 lie between its uses, and twice as many between those of block 1."""
    near = replace(ALL_SHARDED, reuse_elements=within)
    first, rest = GATHERED[:1], GATHERED[1:]
    lasting = {1: (COMMUNICATION, 600, 1, 6), 2: (COMMUNICATION, 800, 3, 5)}
    expected = {
        0: [*first, *rest],
        1: [*first, lasting[2], (COMMUNICATION, 600, 1, 2), (COMMUNICATION, 600, 6, 6)],
        2: [*first, lasting[2], lasting[1]],
    }[len(kept)]
    flat = [row for row in REDUCED if row[0] == COMMUNICATION]
    tensors = device_tensors(STEP, near, 4, 4)
    assert rows_of(tensors, COMMUNICATION) == sorted([*expected, *flat])


def test_a_bucket_is_reduced_when_its_last_gradient_is_ready() -> None:
    """All three gradients are in the first bucket of 1 MiB; then a quarter of each stays."""
    tensors = device_tensors(STEP, ZERO2, 4, 4)
    until = [(GRADIENT, 800, 5, 7), (GRADIENT, 400, 6, 7), (GRADIENT, 40, 7, 7)]
    flat, own = (COMMUNICATION, 1240, 7, 7), (GRADIENT, 310, 7, END)
    assert rows_of(tensors) == sorted([*WHOLE_PARAMETERS, *OWN, *until, flat, own])
    twice = device_tensors(replace(STEP, passes=3), ZERO2, 4, 4)
    assert (GRADIENT, 310, -1, END) in rows_of(twice)
    on_host = device_tensors(STEP, replace(ZERO2, states_on_host=True), 4, 4)
    assert rows_of(on_host) == sorted([*WHOLE_PARAMETERS, *OWN, *until, flat])
    assert not len(on_host.states) and not len(on_host.temporary)


@pytest.mark.parametrize(
    ("elements", "buckets"),
    [(200, [(800, 5), (440, 7)]), (201, [(1200, 6), (40, 7)]), (311, [(1240, 7)])],
)
def test_a_buffer_of_its_own_is_full_at_its_elements(
    elements: int, buckets: list[tuple[int, int]]
) -> None:
    """4 bytes an element; a gradient is copied there at once."""
    tensors = device_tensors(STEP, replace(ZERO2, bucket_elements=elements), 4, 4)
    buffer = (COMMUNICATION, 4 * elements, -1, END)
    flat = [(COMMUNICATION, nbytes, node, node) for nbytes, node in buckets]
    own = [(GRADIENT, nbytes // 4, node, END) for nbytes, node in buckets]
    at_once = [(GRADIENT, nbytes, node, node) for nbytes, node in ((800, 5), (400, 6), (40, 7))]
    assert rows_of(tensors) == sorted([*WHOLE_PARAMETERS, *OWN, buffer, *flat, *own, *at_once])
    alone = device_tensors(STEP, replace(ZERO2, bucket_elements=elements), 1, 1)
    assert rows_of(alone) == sorted([*WHOLE_PARAMETERS, *OWN, buffer, *GRADIENTS])


@pytest.mark.parametrize(
    ("first", "second", "buckets"),
    [
        (MIB, 8, [MIB, 48]),
        (MIB - 4, 8, [MIB + 4, 40]),
        (2 * MIB, 25 * MIB, [2 * MIB, 25 * MIB, 40]),
        (2 * MIB, 25 * MIB - 4, [2 * MIB, 25 * MIB + 36]),
    ],
)
def test_buckets_are_full_at_1_and_25_mib(first: int, second: int, buckets: list[int]) -> None:
    """The gradient that fills a bucket belongs to it; those that are ready first come first."""
    nbytes = np.array([40, second, 200, first])
    step = replace(STEP, weights=replace(WEIGHTS, nbytes=nbytes, elements=nbytes // 4))
    tensors = device_tensors(step, Sharding(keeps_buckets=True), 1, 2)
    expected = [(COMMUNICATION, size, -1, END) for size in buckets]
    assert rows_of(tensors, COMMUNICATION) == sorted(expected)


def test_an_update_in_the_backward_pass_frees_each_gradient_at_once() -> None:
    """And makes temporary tensors of one parameter at a time; not where passes add up."""
    for sharding in (Sharding(updates_in_backward=True), replace(ZERO2, updates_in_backward=True)):
        tensors = device_tensors(STEP, sharding, 1, 1)
        gone = [(GRADIENT, nbytes, node, node) for nbytes, node in ((800, 5), (400, 6), (40, 7))]
        assert rows_of(tensors) == sorted([*WHOLE_PARAMETERS, *OWN, *gone])
        assert tensors.temporary.tolist() == [800]
        twice = device_tensors(replace(STEP, passes=2), sharding, 1, 1)
        assert rows_of(twice) == sorted([*WHOLE_PARAMETERS, *OWN, *GRADIENTS])
        assert twice.temporary.tolist() == [40, 400, 800]
    sharded = replace(ALL_SHARDED, updates_in_backward=True)
    kept = rows_of(device_tensors(STEP, sharded, 4, 4), GRADIENT)
    assert kept == sorted(row for row in REDUCED if row[0] == GRADIENT)


def test_servers_update_elsewhere() -> None:
    tensors = device_tensors(STEP, Sharding(updates=False), 1, 4)
    assert rows_of(tensors) == sorted([*WHOLE_PARAMETERS, *OWN, *GRADIENTS])
    assert tensors.states.sum() == 0 and tensors.temporary.sum() == 0


def test_one_device_shares_nothing_out() -> None:
    """Unless something is on the host; and parameters that no table shows are whole as well."""
    alone = device_tensors(STEP, ALL_SHARDED, 1, 1)
    assert rows_of(alone) == sorted([*WHOLE_PARAMETERS, *OWN, *GRADIENTS])
    assert rows_of(device_tensors(STEP, ALL_SHARDED, 2, 2)) != rows_of(alone)
    on_host = device_tensors(STEP, replace(ALL_SHARDED, states_on_host=True), 1, 1)
    assert [row[1] for row in rows_of(on_host, PARAMETER)] == [40, 600, 800]
    assert not len(on_host.states)
    assert rows_of(on_host, GRADIENT) == sorted(row for row in REDUCED if row[0] == GRADIENT)
    streamed = device_tensors(STEP, replace(ALL_SHARDED, parameters_on_host=True), 1, 1)
    assert rows_of(streamed, PARAMETER) == []
    assert streamed.states.sum() == 2480
    empty = Weights(**{name: getattr(WEIGHTS, name)[:0] for name in WEIGHTS.__slots__})
    unknown = replace(STEP, weights=empty)
    for sharding in (ALL_SHARDED, ZERO2):
        tensors = device_tensors(unknown, sharding, 4, 4)
        assert rows_of(tensors) == sorted([*OWN, *GRADIENTS])
        assert tensors.states.tolist() == [2480] and tensors.temporary.tolist() == [1240]


def test_experts_are_shared_out_among_fewer_devices() -> None:
    """Of a parameter of which half of the devices have no copy, 2 of 4 have a half each."""
    experts = replace(WEIGHTS, sharers=np.array([1.0, 1.0, 1.0, 0.5]))
    tensors = device_tensors(replace(STEP, weights=experts), ALL_SHARDED, 4, 4)
    assert [row[1] for row in rows_of(tensors, PARAMETER)] == [10, 150, 400]
    assert tensors.states.tolist() == [10, 100, 400] * 2
    assert tensors.temporary.tolist() == [10, 100, 400]
    assert (GRADIENT, 400, 5, END) in rows_of(tensors)
    few = replace(WEIGHTS, sharers=np.array([1.0, 1.0, 1.0, 0.1]))  # no fewer than one has it
    whole = device_tensors(replace(STEP, weights=few), ZERO2, 4, 4)
    assert (GRADIENT, 10 + 100 + 800, 7, END) in rows_of(whole)


def test_masters_are_copies_in_single_precision() -> None:
    """Of what is trained in half: 800 bytes more states and temporary, which grow by 1240/840."""
    tensors = device_tensors(HALF, Sharding(), 1, 4, masters=True)
    assert [row[1] for row in rows_of(tensors, PARAMETER)] == [40, 100, 400, 400]
    assert tensors.states.sum() == 2480 + 800
    assert tensors.temporary.sum() == 1240 + 800
    alone = device_tensors(HALF, ALL_SHARDED, 1, 1, masters=True)
    assert alone.states.sum() == 2480 + 800
    plain = device_tensors(HALF, Sharding(), 1, 4)
    assert plain.states.sum() == 2 * 840 and plain.temporary.sum() == 840


def test_shards_of_masters_are_wide_and_gathered_in_half() -> None:
    """The frozen parameter stays as it is."""
    tensors = device_tensors(HALF, ALL_SHARDED, 4, 4, masters=True)
    assert [row[1] for row in rows_of(tensors, PARAMETER)] == [10, 125, 200]
    assert tensors.states.sum() == 620 and tensors.temporary.sum() == 310
    gathered = [row[1] for row in rows_of(tensors, COMMUNICATION)]
    assert sorted(gathered) == sorted([20, 300, 300, 400, 400, 20, 200, 400])
    assert [row for row in rows_of(tensors, GRADIENT) if row[3] == END] == [
        (GRADIENT, 10, 7, END), (GRADIENT, 100, 6, END), (GRADIENT, 200, 5, END),
    ]  # fmt: skip


def test_wide_shards_are_in_place_of_copies() -> None:
    wide = replace(ALL_SHARDED, has_wide_shards=True)
    tensors = device_tensors(HALF, wide, 4, 4)
    assert [row[1] for row in rows_of(tensors, PARAMETER)] == [10, 125, 200]
    assert tensors.states.sum() == (1680 - 800) / 4
    assert tensors.temporary.tolist() == [1, 4, 7]  # quarters of 1, 13 and 26, rounded up
    assert rows_of(device_tensors(HALF, wide, 1, 1), PARAMETER)[-1] == (PARAMETER, 400, -1, END)
    small = replace(HALF, update=OptimizerUpdate(state_bytes=700, temporary_bytes=700))
    assert device_tensors(small, wide, 4, 4).states.sum() == 0
    assert device_tensors(small, wide, 4, 4).temporary.sum() == 0


def test_wide_gradients_stay_in_single_precision() -> None:
    """In place of those that outlive the step; a gradient of a pass is a tensor like others."""
    short = replace(HALF, freed_after=np.array([5, 2, 6, END, END]))
    tensors = device_tensors(short, Sharding(has_wide_gradients=True), 1, 4)
    assert rows_of(tensors, GRADIENT) == sorted(
        [(GRADIENT, 800, 5, 6), *((GRADIENT, nbytes, -1, END) for nbytes in (40, 400, 800))]
    )
    assert rows_of(tensors, ACTIVATION) == [OWN[0]] and rows_of(tensors, TEMPORARY) == [OWN[1]]
    assert tensors.states.sum() == 1680 and tensors.temporary.sum() == 40


@pytest.mark.parametrize(
    ("sharding", "shards", "nbytes"),
    [
        (Sharding(), 4, 0),
        (ALL_SHARDED, 4, 0),
        (Sharding(states_on_host=True), 4, 2480),
        (Sharding(states_on_host=True, shards_states=True), 4, 620),
        (replace(ZERO2, states_on_host=True), 4, 620 + 310),
        (replace(ZERO2, states_on_host=True), 3, 2 * (14 + 134 + 267) + 414),
        (replace(ALL_SHARDED, parameters_on_host=True), 4, 360),
        (replace(ALL_SHARDED, parameters_on_host=True), 7, 206),
        (replace(ALL_SHARDED, states_on_host=True, parameters_on_host=True), 4, 620 + 310 + 360),
    ],
)
def test_bytes_on_the_host(sharding: Sharding, shards: int, nbytes: int) -> None:
    """States of 2,480 bytes, gradients of 1,240 and parameters of 1,440, each shard rounded up."""
    assert host_bytes(STEP, sharding, shards) == nbytes


def test_gradients_on_the_host_are_in_single_precision() -> None:
    sharding = replace(ZERO2, states_on_host=True)
    assert host_bytes(HALF, sharding, 4) == 420 + 310


def test_wide_gradients_beside_shards_leave_the_copies_of_autocast_out() -> None:
    """Gradients of 4 bytes last from before the step; the one copy is still told from the rest."""
    wide = replace(ALL_SHARDED, shards_gradients=False, has_wide_gradients=True)
    tensors = device_tensors(HALF, wide, 4, 4)
    lasting = [(GRADIENT, nbytes, -1, END) for nbytes in (40, 400, 800)]
    assert rows_of(tensors, GRADIENT) == sorted(lasting)
    assert rows_of(tensors, ACTIVATION) == [OWN[0]] and not rows_of(tensors, TEMPORARY)


def test_an_optimizer_without_states_has_none() -> None:
    plain = replace(STEP, update=OptimizerUpdate(temporary_bytes=1240))
    tensors = device_tensors(plain, Sharding(), 1)
    assert tensors.states.tolist() == [] and tensors.temporary.tolist() == [40, 400, 800]


def test_a_block_that_is_not_gathered_again_does_not_end_the_search() -> None:
    """Here block 2 stays, as a root does; blocks 0 and 1 before it are used again."""
    weights = replace(WEIGHTS, backward_at=np.array([7, 6, -1]))
    near = replace(ALL_SHARDED, reuse_elements=10**9)
    tensors = device_tensors(replace(STEP, weights=weights), near, 4, 4)
    flat = [row for row in REDUCED if row[0] == COMMUNICATION]
    stay = [(COMMUNICATION, 40, 0, 7), (COMMUNICATION, 600, 1, 6), (COMMUNICATION, 800, 3, 5)]
    assert rows_of(tensors, COMMUNICATION) == sorted([*stay, *flat])
