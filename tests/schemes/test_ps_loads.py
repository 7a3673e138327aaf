"""Loads of links by parameter servers, and how many steps are simulated, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import DEVICES, link_named
from driple.cluster.topology import Topology
from driple.errors import SettingError
from driple.schemes import ps
from driple.schemes.fair_shares import SharedLink
from driple.schemes.links import LinkEfficiency, ReachedLink
from driple.schemes.ps import ParameterServers
from driple.schemes.scheme import SchemeStep, ServerRates
from driple.schemes.timeline import StepUpdate
from driple.step.plan import Message, Segment, StepPlan

LINK = SharedLink(100.0, sharing=1.0, copy_s_per_byte=0.01)
SHARE, LATENCY_S = 0.5, 0.25


def topology(workers: tuple[int, ...], servers: tuple[int, ...]) -> Topology:
    """Workers and servers on these machines."""
    return Topology(
        workers=(DEVICES["V100"],) * len(workers), worker_machine=workers, server_machine=servers
    )


@pytest.mark.parametrize(
    ("workers", "servers", "bridge", "at_worker", "at_server"),
    [
        # Alone: a link of 100 bytes/s, and copies of as many, one after the other.
        ((0,), (1,), 1e9, 0.02, 0.02),
        # Worker 0 is beside the server; the others share a link, and the server copies for both.
        ((0, 1, 1), (0,), 1e9, 0.02, 0.04),
        # Three on a link get two thirds of it: 3 / 66.7, and three times 1 / 66.7 + 1 / 100.
        ((1, 1, 1), (0,), 1e9, 0.045, 0.075),
        # Half to each of two servers of a machine: both use its link, each copies for itself.
        ((0, 1), (2, 2), 1e9, 0.02, 0.02),
        ((0, 1, 2), (3, 4), 1e9, 0.02, 0.5 * 3 * 0.025),
        # All on one machine: each worker's bytes by its port, all of them by the server's.
        ((0, 0, 0), (0,), 10.0, 0.1, 0.3),
        ((0, 0), (0, 0), 10.0, 0.1, 0.1),
    ],
)
def test_seconds_of_a_byte_of_all_workers(
    workers: tuple[int, ...], servers: tuple[int, ...], bridge: float, at_worker: float,
    at_server: float,
) -> None:  # fmt: skip
    loads = ParameterServers().link_loads(topology(workers, servers), LINK, bridge)
    assert loads == pytest.approx((at_worker, at_server))


def step(
    workers: int, *, synchronous: bool = False, jitter: float = 0.1, are_alike: bool = True
) -> SchemeStep:
    """Workers on machines of their own, each of which pulls 50 bytes and pushes 20."""
    plan = StepPlan(
        pulls=(Message(0, 50.0),),
        segments=(
            Segment(needs=1, duration_s=1.0, busy_s=1.0, memory_s=0.0, sends=(Message(0, 20.0),)),
        ),
    )
    fast = replace(link_named("PCIe3"), bytes_per_s=1e6)
    return SchemeStep(
        topology=topology(tuple(range(workers)), (workers,)),
        plans=(plan,) * workers,
        within=ReachedLink(fast, LinkEfficiency(SHARE, 0.0, 0.0)),
        between=None,
        update=StepUpdate(update_s=(0.0,) * workers, jitter=jitter),
        servers=ServerRates(
            bridge_bytes_per_s=1e6, role_copy_bytes_per_s=1e9, apply_s_per_byte=0.0
        ),
        synchronous=synchronous,
        are_alike=are_alike,
    )


@pytest.mark.parametrize(
    ("workers", "jitter", "are_alike", "steps"),
    [
        (1, 0.1, True, 100),  # at most 100 of each
        (4, 0.1, True, 50),  # 200 of all together
        (12, 0.1, True, 20),  # at least 20 of each
        (1, 0.0, True, 20),  # they repeat
        (1, 0.0, False, 100),
    ],
)
def test_asynchronous_workers_run_as_many_steps_as_averages_need(
    workers: int, jitter: float, are_alike: bool, steps: int
) -> None:
    """Whatever was asked for; the end of the last step of the warm-up is kept before them."""
    plain = step(workers, jitter=jitter, are_alike=are_alike)
    records = ParameterServers().simulate(plain, 3, 0)
    assert max(len(record.step_ends_s) for record in records) == 1 + steps


def test_synchronous_workers_run_the_steps_that_are_asked_for() -> None:
    records = ParameterServers().simulate(step(2, synchronous=True), 7, 0)
    assert [len(record.step_ends_s) for record in records] == [7, 7]


def test_the_network_counts_where_there_is_one_with_its_latency() -> None:
    """50 and 20 bytes at half of 100 bytes/s, a second of computing, two latencies."""
    usual = step(1, synchronous=True, jitter=0.0)
    slow = replace(link_named("10G"), bytes_per_s=100.0)
    network = ReachedLink(slow, LinkEfficiency(SHARE, LATENCY_S, 0.0))
    (within,) = ParameterServers().simulate(usual, 3, 0)
    (between,) = ParameterServers().simulate(replace(usual, between=network), 3, 0)
    assert within.iteration_time_s == pytest.approx(1.0, abs=1e-3)
    assert between.iteration_time_s == pytest.approx(1.4 + 1.0 + 2 * LATENCY_S, rel=1e-6)


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(SettingError, match="parameter servers is not known"):
        ParameterServers().simulate(replace(step(1), within=None), 3, 0)


def test_servers_have_runs_of_their_own() -> None:
    scheme = ParameterServers()
    assert (scheme.runs_like(4).times, scheme.runs_like(4).memory) == ("servers", "single")
    assert scheme.uses_servers
    assert scheme.sharding is not None and not scheme.sharding.updates
    assert scheme.rule("buckets") is None


def test_as_many_pairs_as_are_simulated_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ps, "_MOST_PAIRS", 3)
    assert len(ParameterServers().simulate(step(3, synchronous=True), 3, 0)) == 3
    with pytest.raises(SettingError, match="4 workers on 1 parameter server exchange"):
        ParameterServers().simulate(step(4, synchronous=True), 3, 0)
