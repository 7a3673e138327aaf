"""Times of single collectives by hand: steps, protocols, rings, trees, switches, own parts.

Microseconds on paper: a step within a machine takes 4, one between machines 14. A collective starts
in 8.4 (Simple), 6.7 (LL, a fifth of the steps' time) or 14 (LL128, half of it).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.schemes.collectives import CollectiveKind, DeviceGroup, Hop

WITHIN = Hop(bytes_per_s=1e11, latency_s=4e-6)
BETWEEN = Hop(bytes_per_s=1e10, latency_s=14e-6)
MACHINE = DeviceGroup(count=8, within=WITHIN)
CLUSTER = DeviceGroup(count=16, machines=4, within=WITHIN, between=BETWEEN)


def in_order(group: DeviceGroup) -> DeviceGroup:
    """The same devices over hops that keep 128 bytes together."""
    hops = {
        name: replace(hop, in_order=True)
        for name in ("within", "between")
        if (hop := getattr(group, name)) is not None
    }
    return replace(group, **hops)


def microseconds(group: DeviceGroup, kind: CollectiveKind, size_bytes: float) -> float:
    """Of one collective."""
    return 1e6 * float(group.seconds(kind, np.array([size_bytes]))[0])


@pytest.mark.parametrize(
    ("kind", "size_bytes", "took_us"),
    [
        ("all_gather", 0.0, 6.7 + 28 / 5),  # LL, seven steps
        ("all_gather", 8e4, 6.7 + 28 / 5 + 1.4),  # 7e4 bytes at half the rate
        ("reduce_scatter", 8e9, 8.4 + 28 + 70_000),  # Simple
        ("all_reduce", 0.0, 6.7 + 56 / 5),
        ("all_reduce", 8e9, 8.4 + 56 + 140_000),
        ("broadcast", 8e9, 8.4 + 28 + 80_000),  # all bytes pass each device
        ("broadcast", 0.0, 6.7 + 28 / 5),
        ("all_to_all", 0.0, 8.4 + 4),
        ("all_to_all", 8e6, 8.4 + 4 + 70),
    ],
)
def test_eight_devices_of_a_machine(
    kind: CollectiveKind, size_bytes: float, took_us: float
) -> None:
    assert microseconds(MACHINE, kind, size_bytes) == pytest.approx(took_us, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "size_bytes", "took_us"),
    [
        ("all_gather", 0.0, 6.7 + (12 * 4 + 3 * 14) / 5),  # 15 steps, three between machines
        ("all_gather", 1.6e10, 8.4 + 90 + 1_500_000),
        ("broadcast", 0.0, 6.7 + (3 * 4 + 2 * 14) / 5),  # a tree: log2(4) steps between machines
        ("all_reduce", 0.0, 6.7 + 2 * 40 / 5),
        ("all_reduce", 1e3, 6.7 + 2 * 40 / 5 + 2e3 / (0.92 / 3.8 * 1e4)),  # tree, LL
        ("all_reduce", 3e5, 8.4 + 80 + 6e5 / 9.2e3),  # tree, Simple
        ("all_reduce", 1.6e10, 8.4 + 180 + 3_000_000),  # ring, Simple
        ("all_to_all", 1e6, 8.4 + 14 + 300),  # of each four devices 12 / 16 leaves the machine
    ],
)
def test_sixteen_devices_on_four_machines(
    kind: CollectiveKind, size_bytes: float, took_us: float
) -> None:
    assert microseconds(CLUSTER, kind, size_bytes) == pytest.approx(took_us, rel=1e-9)


def test_hops_that_keep_128_bytes_together_take_a_third_protocol() -> None:
    """A ring reaches 92 % of the rate, trees 7 / 9 of their 92 %; one hop without it forbids it."""
    ring_us = 14 + 28 / 2 + 7e6 / 0.92e5
    assert microseconds(in_order(MACHINE), "all_gather", 8e6) == pytest.approx(ring_us, rel=1e-9)
    tree_us = 14 + 80 / 2 + 6e5 / (0.92 * 7 / 9 * 1e4)
    assert microseconds(in_order(CLUSTER), "all_reduce", 3e5) == pytest.approx(tree_us, rel=1e-9)
    half = replace(CLUSTER, within=replace(WITHIN, in_order=True))
    assert microseconds(half, "all_reduce", 3e5) == microseconds(CLUSTER, "all_reduce", 3e5)


def test_the_fullest_machine_counts_where_devices_do_not_divide() -> None:
    """Five devices on two machines: three on one, so two steps within and one between."""
    group = replace(CLUSTER, count=5, machines=2)
    assert group.per_machine == 3
    assert microseconds(group, "all_reduce", 0.0) == pytest.approx(6.7 + 2 * (8 + 14) / 5)
    assert microseconds(group, "all_gather", 0.0) == pytest.approx(6.7 + (3 * 4 + 14) / 5)
    # Three devices each send two of five parts through their machine's adapter.
    assert microseconds(group, "all_to_all", 1e6) == pytest.approx(8.4 + 14 + 120)


def test_only_hops_that_are_crossed_count() -> None:
    """A device for each machine uses no hop within, one machine none between."""
    alone = DeviceGroup(count=4, machines=4, within=WITHIN, between=BETWEEN)
    assert alone.hops == (BETWEEN,)
    assert CLUSTER.hops == (WITHIN, BETWEEN)
    both = replace(MACHINE, between=BETWEEN)
    assert both.hops == (WITHIN,)
    cases: list[tuple[CollectiveKind, float]] = [
        ("all_gather", 0.0), ("all_reduce", 1e9), ("all_to_all", 1e6),
    ]  # fmt: skip
    for kind, size_bytes in cases:
        assert microseconds(alone, kind, size_bytes) == microseconds(
            replace(alone, within=None), kind, size_bytes
        )
        assert microseconds(both, kind, size_bytes) == microseconds(MACHINE, kind, size_bytes)
    assert microseconds(alone, "all_gather", 0.0) == pytest.approx(6.7 + 3 * 14 / 5)


def test_an_all_to_all_takes_the_slower_of_what_stays_and_what_leaves() -> None:
    fast = replace(CLUSTER, between=replace(BETWEEN, bytes_per_s=1e14))
    # Three of sixteen parts stay within the machine: 1.875e8 bytes at 1e11 bytes/s.
    assert microseconds(fast, "all_to_all", 1e9) == pytest.approx(8.4 + 14 + 1875)


@pytest.mark.parametrize(
    ("count", "machines", "kind", "is_switched"),
    [
        (4, 1, "all_reduce", False), (5, 1, "all_reduce", True), (8, 1, "all_reduce", True),
        (8, 1, "all_gather", False), (8, 1, "broadcast", False), (16, 2, "all_reduce", False),
        (8, 8, "all_reduce", False),
    ],
)  # fmt: skip
def test_a_switch_sums_for_five_devices_of_a_machine_or_more(
    count: int, machines: int, kind: CollectiveKind, is_switched: bool
) -> None:
    """Each byte then passes once, 25 us later; rings are as fast for fewer devices."""
    usual = DeviceGroup(count=count, machines=machines, within=WITHIN, between=BETWEEN)
    switch = replace(usual, within=replace(WITHIN, switch_bytes_per_s=2e11))
    size_bytes = 8e9
    expected_us = microseconds(usual, kind, size_bytes)
    if is_switched:
        assert expected_us > 40_100
        expected_us = 8.4 + 25 + 40_000
    assert microseconds(switch, kind, size_bytes) == pytest.approx(expected_us, rel=1e-9)


def test_a_slow_switch_is_not_used() -> None:
    slow = replace(MACHINE, within=replace(WITHIN, switch_bytes_per_s=1e9))
    assert microseconds(slow, "all_reduce", 8e9) == microseconds(MACHINE, "all_reduce", 8e9)


@pytest.mark.parametrize(
    ("kind", "copied_us"),
    [("all_gather", 5000), ("reduce_scatter", 5000), ("all_reduce", 2500), ("broadcast", 0)],
)
def test_a_device_copies_its_own_part_beside_what_it_sends(
    kind: CollectiveKind, copied_us: float
) -> None:
    """Half of an eighth of 8e9 bytes at 1e11 bytes/s; of an all-reduce half of that."""
    copying = replace(MACHINE, within=replace(WITHIN, own_part=0.5))
    more_us = microseconds(copying, kind, 8e9) - microseconds(MACHINE, kind, 8e9)
    assert more_us == pytest.approx(copied_us, abs=1e-6)


def test_the_hop_that_starts_slowest_and_copies_most_counts() -> None:
    group = replace(
        CLUSTER,
        within=replace(WITHIN, start=3.0, own_part=0.2),
        between=replace(BETWEEN, start=2.0, own_part=0.4),
    )
    assert microseconds(group, "all_gather", 0.0) == pytest.approx(3 * 6.7 + 90 / 5)
    assert microseconds(group, "all_to_all", 0.0) == pytest.approx(3 * 8.4 + 14)
    large_us = 3 * 8.4 + 90 + (1.5e10 + 0.4 * 1e9) / 1e4
    assert microseconds(group, "all_gather", 1.6e10) == pytest.approx(large_us, rel=1e-9)


def test_times_of_several_tensors_keep_their_order_and_shape() -> None:
    sizes = np.array([8e9, 0.0, 8e4])
    took_s = MACHINE.seconds("all_gather", sizes)
    alone_us = [microseconds(MACHINE, "all_gather", size) for size in sizes.tolist()]
    assert (1e6 * took_s).tolist() == pytest.approx(alone_us)
    assert MACHINE.seconds("all_gather", np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(
    ("name", "refused", "accepted"),
    [
        ("latency_s", -1e-9, 0.0), ("start", 0.0, 0.5), ("own_part", -0.1, 0.0),
        ("switch_bytes_per_s", -1.0, 0.5), ("bytes_per_s", 0.0, 0.5),
    ],
)  # fmt: skip
def test_numbers_of_a_hop_are_refused_below_their_bounds(
    name: str, refused: float, accepted: float
) -> None:
    with pytest.raises(ConfigError, match=f"{name} of a hop"):
        replace(WITHIN, **{name: refused})  # type: ignore[arg-type]
    hop = replace(WITHIN, **{name: accepted})  # type: ignore[arg-type]
    assert getattr(hop, name) == accepted


def test_a_usual_hop_has_no_switch_and_copies_nothing() -> None:
    usual = Hop(bytes_per_s=1e11, latency_s=4e-6, in_order=False, start=1.0, own_part=0.0,
                switch_bytes_per_s=0.0)  # fmt: skip
    assert usual == WITHIN
    assert DeviceGroup(count=1) == DeviceGroup(count=1, machines=1, within=None, between=None)


def test_a_group_of_a_device_a_machine_needs_only_the_hop_between() -> None:
    assert DeviceGroup(count=3, machines=3, between=BETWEEN).per_machine == 1
    with pytest.raises(ConfigError, match="one between machines"):
        DeviceGroup(count=2, machines=2, within=WITHIN)
    with pytest.raises(ConfigError, match="a hop within"):
        DeviceGroup(count=3, machines=2, between=BETWEEN)
    with pytest.raises(ConfigError, match="machines of a group"):
        DeviceGroup(count=3, machines=0, within=WITHIN)
