"""Links that all devices of a step cross, and what is held by default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import DEVICES, link_named
from driple.cluster.topology import Topology
from driple.errors import SettingError
from driple.schemes.links import LinkEfficiency, ReachedLink
from driple.schemes.scheme import (
    RunsLike,
    SchemeStep,
    ServerRates,
    Sharding,
    bytes_of,
    group_of,
    link_of,
    messages_of,
)
from driple.schemes.timeline import StepUpdate
from driple.step.plan import Message, Segment, StepPlan

SENT = tuple(Message(number, 10.0 * number) for number in range(3))
PLAN = StepPlan(
    pulls=(),
    segments=tuple(
        Segment(needs=0, duration_s=1.0, busy_s=1.0, memory_s=0.0, sends=sends)
        for sends in (SENT[:2], (), SENT[2:])
    ),
)
SERVERS = ServerRates(bridge_bytes_per_s=1.0, role_copy_bytes_per_s=1.0, apply_s_per_byte=0.0)


def link(name: str, bytes_per_s: float, sharing: float = 0.0) -> ReachedLink:
    """A link that reaches all of a rate."""
    nominal = replace(link_named(name), bytes_per_s=bytes_per_s)
    return ReachedLink(nominal, LinkEfficiency(1.0, 1e-6, sharing))


def step(machines: int, devices: int, *, network: float = 8e9, sharing: float = 0.0) -> SchemeStep:
    """A step on machines of so many devices, 16e9 bytes/s within."""
    count = machines * devices
    return SchemeStep(
        topology=Topology(
            workers=(DEVICES["V100"],) * count,
            worker_machine=tuple(worker // devices for worker in range(count)),
            within=link_named("PCIe3"),
            between=link_named("100G") if machines > 1 else None,
        ),
        plans=(PLAN,) * count,
        within=link("PCIe3", 16e9, sharing),
        between=link("100G", network) if machines > 1 else None,
        update=StepUpdate(update_s=(0.0,) * count),
        servers=SERVERS,
        synchronous=True,
        are_alike=True,
    )


def test_devices_of_a_machine_cross_its_link_alone() -> None:
    inside, alone = step(1, 4), step(1, 1)
    assert link_of(inside, between=False) is inside.within
    assert link_of(inside, between=True) is None
    assert link_of(alone, between=False) is None
    group = group_of(inside)
    assert (group.count, group.machines, group.between) == (4, 1, None)
    assert group.within is not None and group.within.bytes_per_s == 16e9
    assert group_of(alone).hops == ()


def test_a_link_that_devices_share_loses_rate_by_their_number() -> None:
    """Four users of a single bottleneck get half of the rate of two."""
    group = group_of(step(1, 4, sharing=1.0))
    assert group.within is not None and group.within.bytes_per_s == 8e9


def test_machines_cross_the_network() -> None:
    several, apart = step(2, 4), step(2, 1)
    assert link_of(several, between=False) is several.within
    assert link_of(several, between=True) is several.between
    assert link_of(apart, between=False) is None
    group = group_of(several)
    assert (group.count, group.machines) == (8, 2)
    assert group.between is not None and group.between.bytes_per_s == 8e9
    assert group_of(apart).within is None


@pytest.mark.parametrize(
    ("devices", "network", "efficiency", "rate"),
    [
        (2, 8e9, None, 6e9),  # two links of 3e9 to the host
        (4, 8e9, None, 8e9),  # four carry more than the network does
        (2, 8e9, 0.9, 8e9),  # stated: whatever the devices' links carry
    ],
)
def test_a_network_is_no_faster_than_the_links_to_the_host_together(
    devices: int, network: float, efficiency: float | None, rate: float
) -> None:
    plain = step(2, devices, network=network)
    assert plain.between is not None
    stated = replace(plain.between, link=replace(plain.between.link, efficiency=efficiency))
    group = group_of(replace(plain, between=stated, host=link("PCIe3", 3e9)))
    assert group.between is not None and group.between.bytes_per_s == rate


def test_links_that_are_crossed_must_be_known() -> None:
    with pytest.raises(SettingError, match="within a machine is not known"):
        group_of(replace(step(1, 2), within=None))
    with pytest.raises(SettingError, match="between machines is not known"):
        group_of(replace(step(2, 1), between=None))
    assert group_of(replace(step(2, 1), within=None)).count == 2


def test_messages_of_a_step_in_order() -> None:
    assert messages_of(PLAN) == list(SENT)
    assert bytes_of(SENT).tolist() == [0.0, 10.0, 20.0]
    assert bytes_of([]).shape == (0,)


def test_a_device_holds_all_and_updates_it_by_default() -> None:
    plain = Sharding()
    assert plain == Sharding(
        shards_parameters=False, shards_gradients=False, shards_states=False, updates=True,
        keeps_buckets=False, within_machine=False, states_on_host=False, parameters_on_host=False,
        bucket_elements=None, has_wide_shards=False, has_wide_gradients=False, reuse_elements=0,
        updates_in_backward=False,
    )  # fmt: skip
    assert plain.is_whole
    for name in ("shards_parameters", "shards_gradients", "shards_states"):
        assert not Sharding(**{name: True}).is_whole
    assert Sharding(within_machine=True, updates=False).is_whole


def test_shards_are_of_all_devices_or_of_those_of_a_machine() -> None:
    assert Sharding(shards_states=True).num_shards(16, 8) == 16
    assert Sharding(shards_states=True, within_machine=True).num_shards(16, 8) == 8


def test_steps_have_defaults_of_plain_programs() -> None:
    plain = step(1, 2)
    assert (plain.host, plain.share, plain.program) == (None, 1.0, "buckets")
    assert SERVERS.copy_s_per_byte == ()
    assert not RunsLike(times="ring", memory="ddp").is_nearest_memory
