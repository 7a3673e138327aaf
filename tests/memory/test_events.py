"""Requests of two steps: what is made is freed, and bytes at each node are what lives there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.graph.step_facts import TensorRole
from driple.memory.device_tensors import COMMUNICATION, DeviceTensors
from driple.memory.events import NUM_KINDS, bytes_by_kind, played_steps

KIB = 1024
BLOCK = 512


@st.composite
def steps(draw: st.DrawFn) -> DeviceTensors:
    """Tensors that live from some node, or from before the step, to some other one."""
    nodes = draw(st.integers(1, 6))
    rows = draw(
        st.lists(
            st.tuples(st.integers(1, 10_000), st.integers(-1, nodes - 1), st.integers(0, nodes),
                      st.integers(0, NUM_KINDS - 1)),
            min_size=1, max_size=8,
        )
    )  # fmt: skip
    states = draw(st.lists(st.integers(1, 10_000), max_size=3))
    temporary = draw(st.lists(st.integers(1, 10_000), max_size=3))
    return made(nodes, rows, states, temporary)


def made(
    nodes: int, rows: list[tuple[int, int, int, int]], states: list[int], temporary: list[int]
) -> DeviceTensors:
    """(bytes, node that makes it, last node, kind) of each tensor; -1 is before the step."""
    nbytes, made_by, freed_after, kinds = zip(*rows, strict=True)
    return DeviceTensors(
        num_nodes=nodes,
        nbytes=np.array(nbytes, dtype=np.int64),
        made_by=np.array(made_by, dtype=np.int64),
        freed_after=np.maximum(np.array(made_by), np.array(freed_after)).astype(np.int64),
        kinds=np.array(kinds, dtype=np.int8),
        states=np.array(states, dtype=np.int64),
        temporary=np.array(temporary, dtype=np.int64),
    )


def blocks(nbytes: int) -> int:
    """Rounded up to blocks of 512 bytes."""
    return -(-nbytes // BLOCK) * BLOCK


@given(steps())
def test_bytes_at_a_node_are_those_of_what_lives_there(tensors: DeviceTensors) -> None:
    """A tensor before the step lives from its start on; states live all the time."""
    by_kind = bytes_by_kind(tensors)
    rows = list(zip(tensors.nbytes, tensors.made_by, tensors.freed_after, tensors.kinds,
                    strict=True))  # fmt: skip
    states = sum(blocks(int(size)) for size in tensors.states)
    temporary = sum(blocks(int(size)) for size in tensors.temporary)
    for node in range(tensors.num_nodes + 1):
        for kind in range(NUM_KINDS):
            alive = sum(
                blocks(int(size)) for size, first, last, own in rows
                if own == kind and first <= node <= last
            )  # fmt: skip
            alive += states if kind == TensorRole.OPTIMIZER_STATE else 0
            at_end = node == tensors.num_nodes
            alive += temporary if kind == TensorRole.TEMPORARY and at_end else 0
            assert by_kind[node, kind] == alive


@given(steps())
def test_the_allocator_peaks_at_what_lives_in_the_second_step(tensors: DeviceTensors) -> None:
    """No less than at any node, and no more than all tensors at once."""
    peak = played_steps(tensors)
    everything = [*tensors.nbytes.tolist(), *tensors.states.tolist(), *tensors.temporary.tolist()]
    assert not peak.failed and peak.retries == 0
    assert peak.allocated_bytes <= sum(blocks(size) for size in everything)
    assert peak.reserved_bytes >= peak.allocated_bytes
    inner = tensors.freed_after >= tensors.num_nodes
    outlives = inner & (tensors.made_by >= 0)
    leaves = (tensors.made_by < 0) & ~inner  # such as a batch, which is held over all steps
    if not (outlives | leaves).any():
        assert peak.allocated_bytes == bytes_by_kind(tensors).sum(axis=1).max()


def test_what_outlives_the_step_is_freed_before_the_next() -> None:
    """A gradient of 4 KiB beside 2 KiB of parameters, in both steps: never 10 KiB."""
    tensors = made(
        2, [(2 * KIB, -1, 2, TensorRole.PARAMETER), (4 * KIB, 1, 2, TensorRole.GRADIENT)], [], []
    )
    assert played_steps(tensors).allocated_bytes == 6 * KIB


def test_states_are_made_by_the_first_update_and_live_beside_the_second_step() -> None:
    """3 KiB of states, 1 KiB of an update's own, and 5 KiB of activations that the update lacks."""
    rows = [
        (2 * KIB, -1, 2, int(TensorRole.PARAMETER)),
        (5 * KIB, 0, 1, int(TensorRole.ACTIVATION)),
    ]
    assert played_steps(made(2, rows, [3 * KIB], [KIB])).allocated_bytes == 10 * KIB
    assert played_steps(made(2, rows, [3 * KIB], [9 * KIB])).allocated_bytes == 14 * KIB
    assert played_steps(made(2, rows, [], [])).allocated_bytes == 7 * KIB


def test_a_device_without_room_fails() -> None:
    tensors = made(1, [(3 * 2**20, -1, 1, int(TensorRole.PARAMETER))], [], [])
    assert played_steps(tensors, capacity_bytes=2.0**20).failed
    assert not played_steps(tensors, capacity_bytes=2.0**30).failed


def test_the_same_requests_are_played_once_and_others_anew() -> None:
    rows = [(3 * KIB, -1, 1, int(TensorRole.PARAMETER))]
    first_peak = played_steps(made(1, rows, [], []))
    assert played_steps(made(1, rows, [], [])) is first_peak
    for other in (
        made(1, [(4 * KIB, -1, 1, int(TensorRole.PARAMETER))], [], []),
        made(1, rows, [KIB], []),
        made(1, rows, [], [KIB]),
    ):
        assert played_steps(other) != first_peak
    assert played_steps(made(1, rows, [], []), rounding=4 * KIB).allocated_bytes == 4 * KIB
    assert played_steps(made(1, rows, [], []), expandable=True) is not first_peak


@pytest.mark.parametrize("rounding", [1, 64, 512, 4096])
def test_tensors_take_multiples_of_the_rounding(rounding: int) -> None:
    tensors = made(1, [(100, -1, 1, COMMUNICATION)], [700], [])
    by_kind = bytes_by_kind(tensors, rounding)
    assert by_kind[0, COMMUNICATION] == -(-100 // rounding) * rounding
    assert by_kind[0, TensorRole.OPTIMIZER_STATE] == -(-700 // rounding) * rounding
