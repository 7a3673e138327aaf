"""Who exchanges with whom in a split model: groups, machines and shares of links, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from driple.catalog import DEVICES, Link, link_named
from driple.cluster.schemes import SPLIT, Degrees
from driple.cluster.topology import Topology
from driple.errors import SettingError
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.links import LinkEfficiency, ReachedLink
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import SchemeStep, ServerRates, Sharding
from driple.schemes.split import (
    SplitGroups,
    SplitScheme,
    split_groups,
    states_rule,
    states_sharding,
)
from driple.schemes.timeline import StepUpdate
from driple.step.exchange import BUCKETS
from driple.step.plan import Segment, StepPlan

PLAN = StepPlan(pulls=(), segments=(Segment(needs=0, duration_s=1.0, busy_s=1.0, memory_s=0.0),))
WITHIN, BETWEEN = link_named("PCIe3"), link_named("100G")


def reached(link: Link, bytes_per_s: float) -> ReachedLink:
    """A link that reaches all of a rate."""
    return ReachedLink(replace(link, bytes_per_s=bytes_per_s), LinkEfficiency(1.0, 1e-6, 0.0))


def step(machines: int, devices: int, *, named: bool = True, **degrees: Any) -> SchemeStep:
    """A step on machines of so many devices, 16e9 bytes/s within and 8e9 between."""
    places = tuple(machine for machine in range(machines) for _ in range(devices))
    topology = Topology(
        workers=(DEVICES["V100"],) * len(places),
        worker_machine=places,
        within=WITHIN,
        between=BETWEEN if machines > 1 else None,
        scheme=SPLIT,
        degrees=Degrees(**degrees),
    )
    return SchemeStep(
        topology=topology,
        plans=(PLAN,) * len(places),
        within=reached(WITHIN, 16e9) if named else None,
        between=reached(BETWEEN, 8e9) if machines > 1 else None,
        update=StepUpdate(update_s=(0.0,) * len(places)),
        servers=ServerRates(bridge_bytes_per_s=1e9, role_copy_bytes_per_s=1e9, apply_s_per_byte=0),
        synchronous=True,
        are_alike=True,
    )


def rates(group: DeviceGroup) -> tuple[int, int, float | None, float | None]:
    """Devices, machines, GB/s within and between."""
    within, between = group.within, group.between
    return (
        group.count,
        group.machines,
        None if within is None else within.bytes_per_s / 1e9,
        None if between is None else between.bytes_per_s / 1e9,
    )


def test_a_group_within_a_machine_has_its_link_alone() -> None:
    """Two machines of eight in tensor groups of four: replicas lie on both, four share a link."""
    groups = split_groups(step(2, 8, tensor=4))
    assert rates(groups.tensor) == (4, 1, 16, None)
    assert rates(groups.context) == rates(groups.expert) == (1, 1, None, None)
    assert rates(groups.replicas) == (4, 2, 16, 8 / 4)
    assert rates(groups.expert_replicas) == (16, 2, 16, 8)
    assert groups.handing == ()


def test_groups_wider_than_a_machine_cross_the_network() -> None:
    """Of machines of two, a tensor group of four lies on two, and its replica is on others."""
    groups = split_groups(step(4, 2, tensor=4))
    assert rates(groups.tensor) == (4, 2, 16, 8)
    assert rates(groups.replicas) == (2, 2, None, 4)


def test_context_groups_lie_around_tensor_groups() -> None:
    """Two tensor groups of two make a context group of a machine of four."""
    groups = split_groups(step(2, 4, tensor=2, context=2))
    assert rates(groups.tensor) == (2, 1, 16, None)
    assert rates(groups.context) == (2, 1, 16, None)
    assert rates(groups.replicas) == (4, 2, 16, 4)
    wide = split_groups(step(2, 4, tensor=2, context=4))
    assert rates(wide.context) == (4, 2, 16, 4)


def test_experts_are_shared_by_neighbours_and_their_replicas_lie_apart() -> None:
    groups = split_groups(step(2, 8, expert=4))
    assert rates(groups.expert) == (4, 1, 16, None)
    assert rates(groups.expert_replicas) == (4, 2, 16, 2)
    assert rates(groups.replicas) == (16, 2, 16, 8)


def handed(groups: SplitGroups) -> list[float]:
    """GB/s from each stage to the next."""
    return [hop.bytes_per_s / 1e9 for hop in groups.handing]


@pytest.mark.parametrize(
    ("machines", "devices", "pipeline", "gb_per_s"),
    [
        (1, 8, 2, [16]),
        (1, 8, 4, [16, 16, 16]),
        (2, 4, 2, [8 / 4]),  # all four devices of a machine hand on at once
        (2, 4, 4, [16, 4, 16]),  # two do
        (4, 2, 2, [8 / 2]),  # of each machine two of the four of a stage
        (2, 3, 3, [8 / 2, 8 / 2]),  # one of two crosses: both wait for it
    ],
)
def test_stages_hand_on_over_the_network_where_any_device_crosses_it(
    machines: int, devices: int, pipeline: int, gb_per_s: list[float]
) -> None:
    assert handed(split_groups(step(machines, devices, pipeline=pipeline))) == gb_per_s


def test_the_last_device_of_an_interleaved_pipeline_hands_to_the_first_over_the_slowest() -> None:
    """Of eight stages on four devices: three hops, the slowest one back, three hops."""
    groups = split_groups(step(2, 2, pipeline=4, virtual=2))
    assert handed(groups) == [16, 8, 16, 8, 16, 8, 16]
    one_machine = split_groups(step(1, 2, pipeline=2, virtual=3))
    assert handed(one_machine) == [16] * 5


def test_what_stages_hand_on_takes_latency_and_bytes() -> None:
    groups = split_groups(step(2, 2, pipeline=4))
    assert groups.handed_s(8e9, 0) == pytest.approx(1e-6 + 0.5)
    assert groups.handed_s(8e9, 1) == pytest.approx(1e-6 + 1.0)


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(SettingError, match="is not known"):
        split_groups(step(1, 4, named=False, pipeline=2))


def test_groups_of_one_are_by_default() -> None:
    alone = DeviceGroup(count=1)
    groups = SplitGroups(tensor=DeviceGroup(count=2, within=Hop(bytes_per_s=1.0, latency_s=0.0)),
                         replicas=alone)  # fmt: skip
    assert groups.context == groups.expert == groups.expert_replicas == alone
    assert groups.handing == ()
    assert groups.named("tensor") is groups.tensor
    assert groups.named("context") is groups.context
    assert groups.named("expert") is groups.expert


@pytest.mark.parametrize(
    ("states", "parameters", "gradients", "own"),
    [
        ("ddp", False, False, False), ("zero1", False, False, True),
        ("zero2", False, True, True), ("fsdp", True, True, True),
    ],
)  # fmt: skip
def test_what_replicas_share_out(states: str, parameters: bool, gradients: bool, own: bool) -> None:
    """Gradients that are whole stay in fp32, as Megatron adds them up."""
    shared = states_sharding(states)
    assert (shared.shards_parameters, shared.shards_gradients, shared.shards_states) == (
        parameters, gradients, own,
    )  # fmt: skip
    held = SplitScheme().sharding_of(Degrees(tensor=2, states=states))
    assert held is not None
    assert (held.shards_parameters, held.shards_gradients, held.shards_states) == (
        parameters, gradients, own,
    )  # fmt: skip
    if not gradients:
        assert held == Sharding(has_wide_gradients=True, shards_states=own)
    own_rule = scheme_named(states).rule("buckets")
    assert states_rule(states) == (BUCKETS if own_rule is None else own_rule)


def test_a_split_scheme_has_runs_of_its_own_and_is_not_planned_by_name() -> None:
    like = SplitScheme().runs_like(8)
    assert (like.times, like.memory, like.is_nearest_memory) == ("split", "single", True)
    assert SplitScheme.name == SPLIT


def test_workers_of_a_stage_have_records_in_their_order() -> None:
    """Stages of 1 and 3 seconds, whose updates differ by device."""
    segments = [replace(PLAN.segments[0], duration_s=own_s, busy_s=own_s) for own_s in (1.0, 3.0)]
    plans = [replace(PLAN, segments=(segments[stage],)) for stage in (0, 0, 1, 1)]
    usual = step(1, 4, pipeline=2)
    changed = replace(
        usual, plans=tuple(plans), update=StepUpdate(update_s=(0.125, 0.25, 0.5, 0.0625))
    )
    records = SplitScheme().simulate(changed, 3, 0)
    assert len(records) == 4
    computed = [sum(one.end_s - one.start_s for one in record.computing if one.busy_share > 0.99)
                for record in records]  # fmt: skip
    expected = 3 * np.array([1.125, 1.25, 3.5, 3.0625])
    assert computed == pytest.approx(expected.tolist(), rel=1e-6)
