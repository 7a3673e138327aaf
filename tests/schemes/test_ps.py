"""Closed forms of small clusters, and what must hold in all of them."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from driple.errors import ConfigError, SimulationError
from driple.schemes.engine import EventQueue
from driple.schemes.fair_shares import SharedLink, max_min_rates
from driple.schemes.network import SharedNetwork
from driple.schemes.ps import ClusterSpec, simulate_cluster, spread
from driple.step.plan import Message, Segment, StepPlan

MB = 1e6


def plan(pull_mb: float, compute_s: float, push_mb: float) -> StepPlan:
    """One message of parameters, one segment, one message of gradients."""
    return StepPlan(
        pulls=(Message(0, pull_mb * MB),),
        segments=(
            Segment(
                needs=1,
                duration_s=compute_s,
                busy_s=compute_s,
                memory_s=compute_s / 2,
                sends=(Message(0, push_mb * MB),),
            ),
        ),
    )


def cluster(workers: int, servers: int = 1, *, rate_mb: float = 100, **more: Any) -> ClusterSpec:
    """Every role on a machine of its own."""
    return ClusterSpec(
        worker_machine=tuple(range(workers)),
        server_machine=tuple(range(workers, workers + servers)),
        link_bytes_per_s=rate_mb * MB,
        bridge_bytes_per_s=1e15,
        **more,
    )


def test_events_run_in_order_of_time_priority_and_arrival() -> None:
    queue, seen = EventQueue(), []
    for name, time_s, priority in (("c", 2, 0), ("b", 1, 1), ("a", 1, 0), ("d", 2, 0)):
        queue.at(time_s, lambda name=name: seen.append(name), priority)
    queue.run()
    assert seen == ["a", "b", "c", "d"]
    assert (queue.now_s, queue.num_events) == (2, 4)


def test_one_worker_pulls_computes_and_pushes() -> None:
    """50 MB in at 100 MB/s, 0.3 s, 20 MB out: 0.5 + 0.3 + 0.2 s."""
    (record,) = simulate_cluster(cluster(1), [plan(50, 0.3, 20)], num_steps=4)
    assert record.step_ends_s == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert record.iteration_time_s == pytest.approx(1.0)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_share_the_servers_link(workers: int) -> None:
    """All pull together: each gets its share of the server's 100 MB/s."""
    spec = cluster(workers, synchronous=True)
    records = simulate_cluster(spec, [plan(50, 0.3, 20)] * workers, num_steps=3)
    for record in records:
        assert record.iteration_time_s == pytest.approx(workers * (0.5 + 0.2) + 0.3)


def test_synchronous_workers_wait_for_the_slowest() -> None:
    spec = cluster(2, synchronous=True, rate_mb=1000)
    slow, fast = simulate_cluster(spec, [plan(10, 2.0, 10), plan(10, 0.5, 10)], num_steps=3)
    assert slow.step_ends_s == pytest.approx(fast.step_ends_s)
    assert slow.iteration_time_s == pytest.approx(0.02 + 2.0 + 0.01)


def test_asynchronous_workers_do_not() -> None:
    spec = cluster(2, rate_mb=1e6)
    slow, fast = simulate_cluster(spec, [plan(10, 2.0, 10), plan(10, 0.5, 10)], num_steps=3)
    times = (slow.iteration_time_s, fast.iteration_time_s)
    assert times == pytest.approx((2.0, 0.5), abs=1e-3)


def test_two_servers_send_side_by_side() -> None:
    """Four workers share the link of one server, or of two, which halves the transfers' time."""
    work = (Segment(needs=2, duration_s=0.1, busy_s=0.1, memory_s=0),)
    times = []
    for servers in (1, 2):
        halves = StepPlan(pulls=(Message(0, 10 * MB), Message(servers - 1, 10 * MB)), segments=work)
        spec = cluster(4, servers, synchronous=True)
        times.append(simulate_cluster(spec, [halves] * 4, num_steps=2)[0].iteration_time_s)
    assert times == pytest.approx([0.9, 0.5])


def test_roles_of_one_machine_use_its_bridge_and_share_its_link() -> None:
    """Worker 0 is beside the server; workers 1 and 2 share a link into another machine."""
    spec = ClusterSpec(
        worker_machine=(0, 1, 1),
        server_machine=(0,),
        link_bytes_per_s=100 * MB,
        bridge_bytes_per_s=1000 * MB,
        synchronous=True,
    )
    records = simulate_cluster(spec, [plan(50, 0.1, 0)] * 3, num_steps=1)
    assert records[0].computing[0].start_s == pytest.approx(0.05)
    assert records[1].step_ends_s == records[2].step_ends_s == pytest.approx([1.1])
    assert max(rate for at, rate in records[1].rx if at < 1.0) == pytest.approx(50 * MB)


def test_a_role_copies_what_crosses_its_machines_link() -> None:
    """Link and copies of 100 MB/s each are 50 MB/s; a link takes what two workers copy."""
    spec = ClusterSpec(
        worker_machine=(0, 0),
        server_machine=(1, 2),
        link_bytes_per_s=100 * MB,
        bridge_bytes_per_s=1000 * MB,
        role_copy_bytes_per_s=100 * MB,
    )
    pulls = (Message(0, 20 * MB), Message(1, 20 * MB))
    segment = Segment(needs=2, duration_s=0.1, busy_s=0.1, memory_s=0)
    records = simulate_cluster(spec, [StepPlan(pulls=pulls, segments=(segment,))] * 2, num_steps=1)
    for record in records:
        assert max(rate for _, rate in record.rx) == pytest.approx(50 * MB)
        assert record.step_ends_s == pytest.approx([0.9])


def test_copies_of_roles_do_not_slow_a_machines_bridge() -> None:
    """The rate of a bridge was measured from end to end."""
    spec = ClusterSpec(
        worker_machine=(0,),
        server_machine=(0,),
        link_bytes_per_s=100 * MB,
        bridge_bytes_per_s=100 * MB,
        role_copy_bytes_per_s=1 * MB,
    )
    (record,) = simulate_cluster(spec, [plan(50, 0.3, 20)], num_steps=3)
    assert record.iteration_time_s == pytest.approx(1.0)


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("sharing", [0.0, 0.2, 1.0])
def test_more_workers_pass_no_more_bytes_over_a_full_link(
    sharing: float, *, synchronous: bool
) -> None:
    """Of the server's link, and never more than its nominal rate."""
    passed = []
    for count in (2, 3, 4, 8):
        spec = cluster(count, synchronous=synchronous, link_sharing=sharing)
        records = simulate_cluster(spec, [plan(50, 0.001, 50)] * count, num_steps=20)
        last_s = min(record.step_ends_s[-1] for record in records)
        for side in ("rx", "tx"):
            ends = [np.interp(last_s, *_bytes_until(getattr(record, side))) for record in records]
            assert sum(ends) <= 100 * MB * last_s * (1 + 1e-9)
        rate_s = [1 / record.iteration_time_s for record in records]
        passed.append(50 * MB * sum(rate_s))
    assert all(more <= few * 1.01 for few, more in pairwise(passed))
    most = SharedLink(100 * MB, sharing).capacity(8)
    if synchronous:
        assert passed[-1] <= most * 1.01
    else:
        assert passed[-1] == pytest.approx(most, rel=0.05)


def _bytes_until(rates: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Times of changes, and bytes passed until then."""
    times, passed = [rates[0][0]], [0.0]
    for (start_s, rate), (end_s, _) in pairwise([*rates, (rates[-1][0] + 1e6, 0.0)]):
        times.append(end_s)
        passed.append(passed[-1] + rate * (end_s - start_s))
    return times, passed


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_more_servers_with_even_shares_slow_a_step_by_latency_at_most(
    seed: int, *, synchronous: bool
) -> None:
    """Every variable in equal parts on all servers; each on its own machine, or all on one."""
    random = np.random.default_rng(seed)
    sizes, forward_s = random.lognormal(2, 1, 5) * MB, random.lognormal(-4, 1, 5)
    workers, message_s = int(random.integers(1, 5)), float(random.choice([0, 1e-4, 1e-3]))
    rates = {
        "link_bytes_per_s": float(random.choice([50, 200, 1000])) * MB,
        "bridge_bytes_per_s": 500 * MB,
        "role_copy_bytes_per_s": 2000 * MB,
        "apply_s_per_byte": 5e-10,
        "link_sharing": 0.05,
    }

    def parts(number: int, count: int) -> tuple[Message, ...]:
        return tuple(Message(server, sizes[number] / count) for server in range(count))

    def step_s(count: int, *, one_machine: bool) -> float:
        segments = [
            Segment(needs=(i + 1) * count, duration_s=forward_s[i], busy_s=0, memory_s=0)
            for i in range(5)
        ] + [
            Segment(needs=5 * count, duration_s=2 * forward_s[i], busy_s=0, memory_s=0,
                    sends=parts(i, count))
            for i in reversed(range(5))
        ]  # fmt: skip
        pulls = tuple(one for i in range(5) for one in parts(i, count))
        plans = [StepPlan(pulls=pulls, segments=tuple(segments))] * workers
        machines = range(workers + count) if not one_machine else (0,) * (workers + count)
        spec = ClusterSpec(
            worker_machine=tuple(machines[:workers]),
            server_machine=tuple(machines[workers:]),
            message_s=message_s,
            synchronous=synchronous,
            **rates,
        )
        spec = spec if synchronous else spread(spec, plans)
        records = simulate_cluster(spec, plans, num_steps=30, warm_up=5)
        return float(np.mean([record.iteration_time_s for record in records]))

    for one_machine in (False, True):
        single = step_s(1, one_machine=one_machine)
        for count in (2, 8):
            many = step_s(count, one_machine=one_machine)
            # Asynchronous workers meet at other moments.
            most = 1.005 if synchronous else 1.03
            assert many <= most * single + 2 * message_s, (count, one_machine)


def test_a_link_loses_capacity_by_its_users_and_not_by_their_messages() -> None:
    """Three users of a link of 10 bytes/s pass 10 * 2 / 3; two users with two streams each, 10."""

    def end_s(users: int, streams: int) -> float:
        queue = EventQueue()
        network = SharedNetwork(queue, [SharedLink(10.0, sharing=1.0)], 0)
        for user in range(users):
            for _ in range(streams):
                network.send(network.stream((0,), user=user), 50.0 / streams, lambda: None)
        queue.run()
        return queue.now_s

    assert end_s(3, 1) == pytest.approx(15.0 * 1.5)
    assert end_s(2, 2) == end_s(2, 1) == pytest.approx(10.0)


def test_parameters_and_gradients_are_copied_to_and_from_the_device() -> None:
    """50 MB in, 0.3 s, 20 MB out at 100 MB/s, and as many bytes at 1 GB/s."""
    spec = cluster(1, copy_s_per_byte=(1e-9,))
    (record,) = simulate_cluster(spec, [plan(50, 0.3, 20)], num_steps=3)
    assert record.iteration_time_s == pytest.approx(1.0 + 0.05 + 0.02)


def test_the_fast_worker_goes_on_until_the_slow_one_has_done_its_steps() -> None:
    """Neither ever has the server to itself: ten steps of the slow one are all alike."""
    fast, slow = simulate_cluster(cluster(2), [plan(20, 0.1, 0), plan(20, 0.8, 0)], num_steps=20)
    assert len(slow.step_ends_s) == 10
    assert len(fast.step_ends_s) > 20
    assert abs(fast.step_ends_s[-1] - slow.step_ends_s[-1]) < 0.5
    assert np.diff(slow.step_ends_s) == pytest.approx(1.1, rel=0.1)


def test_workers_alike_do_as_many_steps() -> None:
    """None begins a step when another has done all; who asked last ends last."""
    for record in simulate_cluster(cluster(3), [plan(20, 0.1, 10)] * 3, num_steps=20):
        assert len(record.step_ends_s) in {19, 20}


def test_requests_of_asynchronous_workers_are_answered_in_turn() -> None:
    """0.4 s in for each, one after another, then 0.2 s: the server is busy all the time."""
    records = simulate_cluster(cluster(3), [plan(40, 0.2, 0)] * 3, num_steps=5)
    assert [record.step_ends_s[0] for record in records] == pytest.approx([0.6, 1.0, 1.4])
    for record in records:
        assert np.diff(record.step_ends_s) == pytest.approx(3 * 0.4)


def test_a_worker_hears_from_servers_in_the_order_of_need() -> None:
    """Two servers could each fill its link: the second message waits for the first."""
    pulls = (Message(0, 10 * MB), Message(1, 10 * MB))
    work = tuple(
        Segment(needs=n, duration_s=0.1, busy_s=0.1, memory_s=0) for n in (1, 2)
    )  # fmt: skip
    for synchronous in (True, False):
        spec = cluster(1, 2, synchronous=synchronous)
        (record,) = simulate_cluster(spec, [StepPlan(pulls=pulls, segments=work)], num_steps=2)
        assert record.computing[0].start_s == pytest.approx(0.1)
        assert record.iteration_time_s == pytest.approx(0.1 + 0.1 + 0.1)


def test_a_spread_start_and_a_warm_up_leave_nothing_of_the_start() -> None:
    """Two workers need 0.5 s of a link each way, and fill it by turns: 1.0 s, from any start."""
    plans = [plan(50, 0.0, 50)] * 2
    spec = spread(cluster(2), plans)
    assert spec.starts_s == pytest.approx((0.0, 0.5))
    for num_steps in (2, 6, 40):
        records = simulate_cluster(spec, plans, num_steps, warm_up=3)
        for record in records:
            assert len(record.step_ends_s) >= 2
            assert record.iteration_time_s == pytest.approx(1.0)
            assert record.step_ends_s[0] >= 3.0 - 1e-9


def test_computing_overlaps_with_what_still_comes() -> None:
    """Two layers: the second's parameters come while the first computes."""
    layers = StepPlan(
        pulls=(Message(0, 10 * MB), Message(0, 10 * MB)),
        segments=(
            Segment(needs=1, duration_s=0.1, busy_s=0.1, memory_s=0),
            Segment(needs=2, duration_s=0.1, busy_s=0.1, memory_s=0),
        ),
    )
    (record,) = simulate_cluster(cluster(1), [layers], num_steps=2)
    assert record.iteration_time_s == pytest.approx(0.1 + 0.1 + 0.1)


def test_the_server_works_off_one_gradient_after_another() -> None:
    """Two gradients come at once, each takes half a second."""
    spec = cluster(2, rate_mb=1e6, apply_s_per_byte=0.5 / (20 * MB))
    records = simulate_cluster(spec, [plan(10, 0.1, 20)] * 2, num_steps=1)
    ends = [record.step_ends_s[0] for record in records]
    assert ends == pytest.approx([0.6, 1.1], abs=1e-3)


def test_every_byte_arrives_and_links_are_never_overloaded() -> None:
    spec = cluster(3, jitter=0.2)
    records = simulate_cluster(spec, [plan(30, 0.2, 10)] * 3, num_steps=20, seed=4)
    steps = []
    for record in records:
        for rates, each in ((record.rx, 30 * MB), (record.tx, 10 * MB)):
            assert max(rate for _, rate in rates) <= 100 * MB * (1 + 1e-9)
            total = sum(rate * (after - at) for (at, rate), (after, _) in pairwise(rates))
            steps.append(total / each)
    assert steps == pytest.approx(np.round(steps))
    assert steps[::2] == pytest.approx(steps[1::2])
    assert round(max(steps)) == 20


def test_the_same_seed_gives_the_same_run() -> None:
    spec = cluster(3, jitter=0.1)
    runs = [simulate_cluster(spec, [plan(30, 0.2, 10)] * 3, 10, seed=s) for s in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize(
    ("pairs", "capacities", "expected"),
    [
        ([(0, 1)], [10, 4], [4]),
        ([(0, 1), (0, 2)], [10, 4, 100], [4, 6]),
        ([(0, 2), (1, 2), (1, 3)], [100, 10, 8, 100], [4, 4, 6]),
        ([], [1], []),
    ],
)
def test_fair_shares(
    pairs: list[tuple[int, int]], capacities: list[float], expected: list[float]
) -> None:
    assert max_min_rates(pairs, capacities) == pytest.approx(expected)


def test_messages_of_a_stream_keep_their_order() -> None:
    queue, seen = EventQueue(), []
    network = SharedNetwork(queue, [10.0, 10.0], 0)
    stream = network.stream((0, 1))
    for name, nbytes in (("a", 100.0), ("b", 0.001), ("c", 50.0)):
        network.send(stream, nbytes, lambda name=name: seen.append((name, queue.now_s)))
    queue.run()
    assert [name for name, _ in seen] == ["a", "b", "c"]
    assert math.isclose(seen[-1][1], 15.0001)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"link_bytes_per_s": 0.0}, "link_bytes_per_s must be above 0"),
        ({"bridge_bytes_per_s": float("nan")}, "bridge_bytes_per_s must be above 0"),
        ({"message_s": -1.0}, "message_s must be a number at least 0"),
        ({"jitter": float("nan")}, "jitter must be a number at least 0"),
        ({"server_machine": ()}, "a cluster of 1 workers and 0 servers"),
        ({"worker_machine": ()}, "a cluster of 0 workers and 1 servers"),
        ({"copy_s_per_byte": (0.0, 0.0)}, "copy_s_per_byte of 2 workers"),
        ({"starts_s": (-1.0,)}, "starts_s must be a number at least 0"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(more: dict[str, Any], words: str) -> None:
    """Rates of 0 would leave messages on their way for ever."""
    plain = {"worker_machine": (0,), "server_machine": (1,)}
    rates = {"link_bytes_per_s": 1e8, "bridge_bytes_per_s": 1e9}
    with pytest.raises(ConfigError, match=words):
        ClusterSpec(**{**plain, **rates, **more})


def test_plans_that_do_not_fit_their_cluster_are_refused() -> None:
    spec = ClusterSpec(
        worker_machine=(0,), server_machine=(1,), link_bytes_per_s=1e8, bridge_bytes_per_s=1e9
    )

    def plan(server: int, nbytes: float = 1.0) -> StepPlan:
        segment = Segment(needs=1, duration_s=1.0, busy_s=1.0, memory_s=1.0)
        return StepPlan(pulls=(Message(server, nbytes),), segments=(segment,))

    with pytest.raises(ConfigError, match="2 step plans for 1 workers"):
        simulate_cluster(spec, [plan(0)] * 2, 3)
    for server in (-1, 1):
        with pytest.raises(ConfigError, match=r"server of a message must be .* from 0 to 0"):
            simulate_cluster(spec, [plan(server)], 3)
    with pytest.raises(ConfigError, match="bytes of a message"):
        simulate_cluster(spec, [plan(0, -1.0)], 3)
    with pytest.raises(ConfigError, match="num_steps must be a whole number of at least 1"):
        simulate_cluster(spec, [plan(0)], 0)
    with pytest.raises(ConfigError, match=r"needs of segment 0 .* from 0 to 0, got 1"):
        StepPlan(pulls=(), segments=plan(0).segments)


def test_an_event_in_the_past_is_refused_but_for_rounding() -> None:
    queue, seen = EventQueue(), []
    queue.at(1.0, lambda: queue.at(1.0 - 1e-12, lambda: seen.append(queue.now_s)))
    queue.run()
    assert seen == [1.0]
    for time_s in (0.5, float("nan")):
        with pytest.raises(SimulationError, match="was added at 1 s, when it is past"):
            queue.at(time_s, queue.run)


def test_events_run_up_to_a_time_and_later_on_from_there() -> None:
    queue, seen = EventQueue(), []
    for name, time_s in (("a", 1.0), ("b", 2.0), ("c", 2.5)):
        queue.at(time_s, lambda name=name: seen.append(name))
    queue.run(2.0)
    assert (seen, queue.now_s, queue.num_events) == (["a", "b"], 2.0, 2)
    queue.run()
    assert (seen, queue.now_s, queue.num_events) == (["a", "b", "c"], 2.5, 3)


def test_events_without_a_priority_have_the_first() -> None:
    queue, seen = EventQueue(), []
    queue.at(1.0, lambda: seen.append("a"))
    queue.at(1.0, lambda: seen.append("b"), 0)
    queue.run()
    assert seen == ["a", "b"]


@pytest.mark.parametrize(("now_s", "rounding_s"), [(0.5, 1e-9), (1.0, 1e-9), (1000.0, 1e-6)])
def test_rounding_grows_with_the_clock_from_a_second_on(now_s: float, rounding_s: float) -> None:
    queue = EventQueue()
    queue.at(now_s, lambda: None)
    queue.run()
    queue.at(now_s - 0.9 * rounding_s, lambda: None)
    with pytest.raises(SimulationError):
        queue.at(now_s - 1.1 * rounding_s, lambda: None)


def test_a_rate_that_changes_on_the_way_counts_from_then_on() -> None:
    """100 bytes from 0 s and 50 from 4 s share 10 bytes/s: 40 alone, 50 each, 10 alone."""
    queue, seen = EventQueue(), []
    network = SharedNetwork(queue, [10.0], 2)
    first, second = network.stream((0,), (0,)), network.stream((0,), (1,))
    network.send(first, 100.0, lambda: seen.append(("first", queue.now_s)))
    queue.at(4.0, lambda: network.send(second, 50.0, lambda: seen.append(("second", queue.now_s))))
    queue.run()
    assert seen == [("second", pytest.approx(14.0)), ("first", pytest.approx(15.0))]
    assert network.rates[0] == [pytest.approx(one) for one in [(0, 10), (4, 5), (14, 10), (15, 0)]]
    assert network.rates[1] == [pytest.approx(one) for one in [(0, 0), (4, 5), (14, 0)]]


def test_messages_of_a_group_go_in_the_order_in_which_they_were_sent() -> None:
    """Over whichever stream: the second of the first stream was sent last, and goes last."""
    queue, seen = EventQueue(), []
    network = SharedNetwork(queue, [10.0], 1, most_at_once=1)
    group = network.group()
    first, second = (network.stream((0,), (0,), group) for _ in range(2))

    def send(stream: int, name: str, nbytes: float) -> None:
        network.send(stream, nbytes, lambda: seen.append((name, queue.now_s)))

    send(first, "a", 100.0)
    queue.at(1.0, lambda: send(second, "b", 50.0))
    queue.at(2.0, lambda: send(first, "c", 30.0))
    queue.run()
    assert seen == [(name, pytest.approx(end)) for name, end in (("a", 10), ("b", 15), ("c", 18))]
    assert network.rates[0] == [pytest.approx(one) for one in [(0, 10), (18, 0)]]


def test_a_meter_keeps_a_rate_that_is_the_number_of_its_end() -> None:
    """25 bytes at 5 bytes/s end after 5 s."""
    queue = EventQueue()
    network = SharedNetwork(queue, [5.0], 1)
    network.send(network.stream((0,), (0,)), 25.0, lambda: None)
    queue.run()
    assert network.rates == [[(0.0, 5.0), (5.0, 0.0)]]


def test_a_step_ends_when_all_its_gradients_are_in() -> None:
    """0.5 s, 0.3 s of computing, then 20 and 20 MB one after the other."""
    single = plan(50, 0.3, 20)
    segment = single.segments[-1]
    two = replace(
        single, segments=(*single.segments[:-1], replace(segment, sends=segment.sends * 2))
    )
    (record,) = simulate_cluster(cluster(1), [two], num_steps=3)
    assert record.step_ends_s == pytest.approx([1.2, 2.4, 3.6])


def test_workers_begin_when_they_are_said_to() -> None:
    (record,) = simulate_cluster(cluster(1, starts_s=(0.5,)), [plan(50, 0.3, 20)], num_steps=3)
    assert record.step_ends_s == pytest.approx([1.5, 2.5, 3.5])


def test_each_worker_has_meters_of_its_own() -> None:
    """What comes in and goes out of each is what its own plan says."""
    plans = [plan(50, 0.3, 20), plan(10, 0.3, 40)]
    records = simulate_cluster(cluster(2, synchronous=True), plans, num_steps=1)
    for record, (pulled, pushed) in zip(records, ((50, 20), (10, 40)), strict=True):
        for meter, size in ((record.rx, pulled), (record.tx, pushed)):
            passed = sum(rate * (end - begin) for (begin, rate), (end, _) in pairwise(meter))
            assert passed == pytest.approx(size * MB)


def test_the_seed_is_0_by_default() -> None:
    times = [
        simulate_cluster(cluster(1, jitter=0.2), [plan(50, 0.3, 20)], 3, *seed)[0].step_ends_s
        for seed in ((), (0,), (1,))
    ]
    assert times[0] == times[1] != times[2]
