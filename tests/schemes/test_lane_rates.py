"""Rates in many runs at once are those of `fair_shares`, run by run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.fair_shares import FairShares, SharedLink
from driple.schemes.lane_rates import LaneRates
from driple.schemes.wiring import Wiring

WORKERS, SERVERS, LANES, SLOTS = 3, 2, 2, 2
ROWS = 2 * LANES * WORKERS
_SERVED = st.sampled_from([(), (0,), (1,), (0, 1), (1, 0)])
CHOICES = st.lists(_SERVED, min_size=ROWS, max_size=ROWS)


def by_lanes(wiring: Wiring, chosen: list[tuple[int, ...]]) -> list[list[float]]:
    """Rate of each slot of each row: gradients of lanes and workers, then parameters."""
    rates = LaneRates(wiring, WORKERS, SERVERS, LANES, SLOTS)
    servers = np.array([[*row, *[SERVERS] * (SLOTS - len(row))] for row in chosen], np.intp)
    rates.place(np.arange(ROWS), servers)
    rate = np.full((SLOTS, ROWS), 7.0)
    rates.share(rate, np.ones(ROWS, dtype=np.bool_))
    return [list(rate[: len(row), i]) for i, row in enumerate(chosen)]


def one_by_one(
    wiring: Wiring, chosen: list[tuple[int, ...]], lane: int
) -> dict[tuple[int, int], float]:
    """The same of one lane, by row and slot."""
    shares = FairShares(wiring.links, [link // 2 for link in range(len(wiring.links))])
    groups, keys, number = [], [], 0
    for way in range(2):
        for worker in range(WORKERS):
            row = (way * LANES + lane) * WORKERS + worker
            group = []
            for slot, server in enumerate(chosen[row]):
                ends = (worker, WORKERS + server)
                path = wiring.path(*(ends if way == 0 else ends[::-1]))
                shares.add_stream(path, (0, worker))
                keys.append((row, slot))
                group.append(number)
                number += 1
            groups.append(tuple(group))
    if not number:
        return {}
    # Several groups side by side: one group alone would go by strict priority.
    numbers, rates = shares.rates((*groups, ()))
    return {keys[i]: rate for i, rate in zip(numbers, rates, strict=True)}


@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize("machines", [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2], [0, 0, 0, 0, 0],
                                      [0, 1, 2, 3, 3]])  # fmt: skip
@given(chosen=CHOICES)
def test_lanes_share_as_runs_by_themselves(
    machines: list[int], sharing: float, chosen: list[tuple[int, ...]]
) -> None:
    wiring = Wiring(machines, SharedLink(10.0, sharing=sharing, copy_s_per_byte=0.01), 30.0)
    rates = by_lanes(wiring, chosen)
    for lane in range(LANES):
        for (row, slot), rate in one_by_one(wiring, chosen, lane).items():
            assert rates[row][slot] == pytest.approx(rate, rel=1e-9, abs=1e-9)


def test_lanes_without_a_change_keep_their_rates() -> None:
    wiring = Wiring([0, 1, 2, 3, 4], SharedLink(10.0), 30.0)
    rates = LaneRates(wiring, WORKERS, SERVERS, LANES, SLOTS)
    servers = np.full((ROWS, SLOTS), SERVERS, np.intp)
    servers[:, 0] = 0
    rates.place(np.arange(ROWS), servers)
    rate = np.full((SLOTS, ROWS), 7.0)
    changed = np.tile(np.repeat([True, False], WORKERS), 2)
    rates.share(rate, changed)
    assert (rate[:, ~changed] == 7.0).all()
    assert rate[0, changed] == pytest.approx(10 / 3)
    assert (rate[1, changed] == 0.0).all()


def test_rows_without_servers_send_nothing() -> None:
    wiring = Wiring([0, 1, 2, 3, 4], SharedLink(10.0), 30.0)
    assert by_lanes(wiring, [()] * ROWS) == [[]] * ROWS
