"""The repaired model: without repairs it is Zeng's, and each repair does what it must."""

from __future__ import annotations

import numpy as np
import pytest

from driple.analytic import repaired, zeng
from driple.analytic.repaired import TransferCosts, iteration_parts
from driple.errors import ConfigError
from scripts.fits import zeng_formulas

RANDOM = np.random.default_rng(7)


def total(forward: object, backward: object, link: float, **more: float) -> float:
    return float(
        iteration_parts(forward, backward, link, more.pop("server_s", 0.0), **more).total_s
    )


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_without_repairs_it_is_algorithm_1(workers: int) -> None:
    times = RANDOM.uniform(0.1, 3, (40, workers))
    push = RANDOM.uniform(0, 1, 40)
    ours = iteration_parts(times / 3, times * 2 / 3, push, 0.0).total_s
    np.testing.assert_allclose(ours, zeng.unequal_workers_seconds(times, push, push), rtol=1e-12)


def test_without_repairs_and_on_a_slow_network_it_is_algorithm_2() -> None:
    forward = RANDOM.uniform(0.1, 0.2, (40, 3))
    backward = RANDOM.uniform(0.1, 0.4, (40, 3))
    push = RANDOM.uniform(2, 3, 40)
    ours = iteration_parts(forward, backward, push, 0.0, num_pushes=20).total_s
    theirs = zeng.distributed_gpu_seconds(forward + backward / 20, push, push)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_equal_workers_without_overlap_are_equation_29() -> None:
    assert total([0.5] * 4, [1.5] * 4, 0.25) == pytest.approx(
        float(zeng_formulas.equal_workers_seconds(2.0, 0.25, 0.25, 4))
    )


@pytest.mark.parametrize("exposed", [0.0, 0.3, 1.0])
def test_parts_sum_to_the_iteration(exposed: float) -> None:
    parts = iteration_parts(
        RANDOM.uniform(0.1, 2, (50, 3)),
        RANDOM.uniform(0.1, 2, (50, 3)),
        RANDOM.uniform(0.01, 1, 50),
        RANDOM.uniform(0.01, 0.1, 50),
        num_pushes=30,
        num_servers=2,
        exposed=exposed,
    )
    summed = parts.compute_s + parts.push_s + parts.pull_s + parts.wait_s + parts.aggregate_s
    np.testing.assert_allclose(summed, parts.total_s, rtol=1e-12)
    assert (parts.wait_s >= -1e-12).all()


def test_it_ends_when_the_slowest_worker_has_computed() -> None:
    """Algorithm 2 forgets that: on a fast network it ends after the first gradient."""
    assert total([1.0, 1.0], [2.0, 5.0], 1e-9, num_pushes=50) == pytest.approx(6.0)
    exposed = total([1.0, 1.0], [2.0, 2.0], 0.1, num_pushes=50, exposed=0.25)
    assert exposed == pytest.approx(3.0 + 0.25 * 4 * 0.1)


def test_backward_grows_with_the_batch_and_copies_with_the_bytes() -> None:
    assert zeng_formulas.backward_seconds(8, 1e9, 1e10) == pytest.approx(1.6)
    assert zeng_formulas.backward_seconds(8, 1e9, 1e10, parameters=1e6, parameter_s=1e-7) == (
        pytest.approx(1.7)
    )
    assert zeng_formulas.forward_seconds(8, 1e9, 1e10) == pytest.approx(0.8)
    assert zeng_formulas.forward_seconds(
        8, 1e9, 1e10, copied_bytes=1e9, copy_s_per_byte=1e-10
    ) == pytest.approx(0.9)


def test_start_up_costs_are_paid_for_every_push() -> None:
    link, server = repaired.repaired_transfer_s(
        1e8, 1e8, 40, TransferCosts(share=0.5, push_s=0.01, server_s_per_byte=1e-9)
    )
    assert (float(link), float(server)) == pytest.approx((2.4, 0.1))


def test_servers_help_until_each_worker_has_one() -> None:
    times = [total([0.1] * 4, [0.1] * 4, 1.0, num_servers=n) for n in (1, 2, 4, 8)]
    assert times[0] > times[1] > times[2]
    assert times[3] == pytest.approx(times[2])  # a worker's own link is full
    assert times[2] == pytest.approx(0.2 + 1.0 + 1.0)


@pytest.mark.parametrize("link", [0.02, 0.2])
@pytest.mark.parametrize("name", ["link_s", "server_s", "copy_s", "exposed", "times", "workers"])
def test_more_work_never_helps(name: str, link: float) -> None:
    """Where computing decides (0.02) and where the network does."""

    def seconds_of(factor: float) -> float:
        how = {"link_s": link, "server_s": link / 10, "copy_s": 0.05, "exposed": 0.2}
        how |= {"times": 1.0, "workers": 2}
        how[name] *= factor
        forward = how["times"] * np.linspace(0.2, 0.5, 8)[: int(how["workers"])]
        parts = iteration_parts(
            forward,
            2 * forward,
            how["link_s"],
            how["server_s"],
            num_pushes=20,
            copy_s=how["copy_s"],
            exposed=how["exposed"],
        )
        return float(parts.total_s)

    times = [seconds_of(factor) for factor in (1.0, 1.5, 2.0, 4.0)]
    assert (np.diff(times) >= -1e-12).all()
    assert times[-1] > times[0] or (name == "exposed" and link > 0.1)


def test_odd_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="one worker or more"):
        iteration_parts([], [], 1.0, 0.0)
    with pytest.raises(ConfigError, match="num_servers"):
        iteration_parts([1.0], [1.0], 1.0, 0.0, num_servers=0)
    with pytest.raises(ConfigError, match="flops_per_s"):
        zeng_formulas.forward_seconds(1, 1e9, 0)
    with pytest.raises(ConfigError, match="bytes_per_s"):
        repaired.repaired_transfer_s(1, -1, 1, TransferCosts())
    for field in ({"share": 0.0}, {"share": 1.2}, {"exposed": -0.1}, {"push_s": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(field)).partition("_")[0]):
            TransferCosts(**field)
