"""Networks by TCP reach as much, or as little, as published ones; RDMA is only remarked on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.answers.tcp_networks import steps_by_tcp, taken_as_rdma
from driple.catalog import Link
from driple.cluster.setting import Setting
from driple.schemes.links import TCP_EFFICIENCY, TCP_SHARES
from driple.simulate.place import Place, place_of
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from tests.simulate.jobs import net

JOB = PreparedJob(net(8))


def place(name: str) -> Place:
    return place_of(Setting.parse(name))


def between(there: Place) -> Link:
    link = there.topology.between
    assert link is not None
    return link


def with_efficiency(there: Place, share: float) -> Place:
    other = replace(between(there), efficiency=share)
    return replace(there, topology=replace(there.topology, between=other))


def step_s(there: Place) -> float:
    return simulated_step_s(JOB, there.setting, there.calibration, topology=there.topology)


def test_a_step_by_tcp_lies_between_the_fastest_and_the_slowest() -> None:
    there = place("4x1xV100/10G-TCP")
    ends_s = steps_by_tcp(JOB, there)
    assert ends_s is not None
    fastest, slowest = ends_s
    assert fastest < step_s(there) < slowest
    assert fastest == step_s(with_efficiency(there, max(TCP_SHARES)))
    assert slowest == step_s(with_efficiency(there, min(TCP_SHARES)))


@pytest.mark.parametrize("name", ["4x1xV100/10G", "4x1xV100/10G-RDMA", "8xV100/NVLink", "1xV100"])
def test_other_links_have_no_such_steps(name: str) -> None:
    assert steps_by_tcp(JOB, place(name)) is None


def test_what_a_user_states_of_his_network_leaves_nothing_open() -> None:
    stated = with_efficiency(place("4x1xV100/10G-TCP"), 0.5)
    assert steps_by_tcp(JOB, stated) is None


@pytest.mark.parametrize(
    ("name", "is_remarked"),
    [
        ("4x1xV100/10G", True),
        ("4x1xV100/100G", True),
        ("4x1xV100/200G", False),  # made for RDMA
        ("4x1xV100/10G-TCP", False),
        ("4x1xV100/10G-RDMA", False),
        ("2x8xH100/NVLink+InfiniBand-NDR", False),
        ("8xV100/NVLink", False),
        ("V100-P1w2/ho-10G", False),
        ("4x2xCPU/10G", False),
    ],
)
def test_ethernet_that_tcp_may_cross_is_remarked_on(name: str, is_remarked: bool) -> None:
    there = place(name)
    remarks = taken_as_rdma(there)
    assert bool(remarks) is is_remarked
    if remarks:
        (remark,) = remarks
        link = between(there)
        assert remark.values["link"] == link.name
        assert remark.values["tcp_share"] == TCP_EFFICIENCY.share
        assert remark.values["share"] == there.calibration.link(link).effective_share(2)


def test_a_stated_efficiency_needs_no_remark() -> None:
    assert taken_as_rdma(with_efficiency(place("4x1xV100/10G"), 0.9)) == ()
