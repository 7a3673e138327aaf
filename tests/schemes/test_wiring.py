"""Which links a message crosses: each role's own, those that roles share, or a machine's bridge."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.fair_shares import SharedLink
from driple.schemes.wiring import Wiring

LINK = SharedLink(1e9, sharing=0.3, copy_s_per_byte=1e-10)
MACHINES = st.lists(st.integers(0, 3), min_size=2, max_size=6)


def wiring(machines: list[int]) -> Wiring:
    return Wiring(machines, LINK, 5e9)


@given(MACHINES)
def test_paths_both_ways_use_the_other_direction_of_the_same_ports(machines: list[int]) -> None:
    wired = wiring(machines)
    for here, there in permutations(range(len(machines)), 2):
        out, back = wired.path(here, there), wired.path(there, here)
        assert all(0 <= link < len(wired.links) for link in out)
        assert len(set(out)) == len(out)
        assert {link // 2 for link in out} == {link // 2 for link in back}
        assert not set(out) & set(back)


@given(MACHINES)
def test_no_two_roles_share_a_link_but_that_of_their_machine(machines: list[int]) -> None:
    wired = wiring(machines)
    shared = 2 * (max(machines) + 1)
    owners: dict[int, set[int]] = {}
    for here, there in permutations(range(len(machines)), 2):
        for link in wired.path(here, there):
            owner = machines[here] if link % 2 == 0 else machines[there]
            if link < shared:
                assert link // 2 == owner
            else:
                owners.setdefault(link, set()).add(here if link % 2 == 0 else there)
    assert all(len(roles) == 1 for roles in owners.values())


def test_paths_by_hand() -> None:
    """Roles 0 and 1 on machine 0, role 2 on machine 1: links 0 to 3, ports 4 to 9, roles 10 on."""
    wired = wiring([0, 0, 1])
    assert wired.path(0, 1) == (4, 7)
    assert wired.path(1, 0) == (6, 5)
    assert wired.path(0, 2) == (0, 10, 15)
    assert wired.path(2, 0) == (1, 14, 11)
    assert wired.path(2, 1) == (1, 14, 13)


def test_links_have_their_rates() -> None:
    """A machine's link without copies, which each role makes for itself; bridges without limits."""
    wired = wiring([0, 1, 1])
    assert wired.links[:4] == [SharedLink(1e9, sharing=0.3)] * 4
    assert wired.links[4:10] == [SharedLink(5e9)] * 6
    assert wired.links[10:] == [LINK] * 6


@pytest.mark.parametrize("machines", [[0, 1], [0, 1, 2]])
def test_machines_with_one_role_cross_that_roles_link_alone(machines: list[int]) -> None:
    wired = wiring(machines)
    assert len(wired.path(0, 1)) == 2
