"""How fast the network must be: the least rate that keeps a device from waiting, by halving."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.answers import network_speed
from driple.answers.network_speed import LITTLE, enough_bytes_per_s, waiting_share
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.jobs.load import load_job
from driple.simulate.place import Place, place_of
from driple.simulate.run import simulated_step_s
from tests.simulate.jobs import net


@pytest.fixture(scope="module")
def ready() -> ReadyJob:
    return ReadyJob(load_job(net(64, depth=2, channels=32)))


def place(name: str) -> Place:
    return place_of(Setting.parse(name))


def share_at(ready: ReadyJob, there: Place, bytes_per_s: float) -> float:
    """Share of a step that waits over another rate of what joins the devices."""
    topology = there.topology
    if topology.between is not None:
        other = replace(topology, between=replace(topology.between, bytes_per_s=bytes_per_s))
    else:
        assert topology.within is not None
        other = replace(topology, within=replace(topology.within, bytes_per_s=bytes_per_s))
    step_s = simulated_step_s(ready.prepared, there.setting, there.calibration, topology=other)
    share = waiting_share(ready, replace(there, topology=other), step_s)
    assert share is not None
    return share


@pytest.mark.parametrize("name", ["4x8xK80/PCIe+100G", "4xV100/PCIe", "2xV100/PCIe"])
def test_just_above_the_least_rate_a_step_waits_little(ready: ReadyJob, name: str) -> None:
    """And just below it, it does not."""
    there = place(name)
    enough = enough_bytes_per_s(ready, there)
    assert enough is not None
    assert share_at(ready, there, enough) < LITTLE
    assert share_at(ready, there, 0.99 * enough) >= LITTLE
    assert share_at(ready, there, 100 * enough) < share_at(ready, there, enough / 100)


def test_the_rate_of_the_named_network_decides_nothing(ready: ReadyJob) -> None:
    """It is found once for machines that differ by their network's rate alone."""
    there = place("4x8xK80/PCIe+100G")
    enough = enough_bytes_per_s(ready, there)
    between = there.topology.between
    assert between is not None
    slower = replace(between, bytes_per_s=1e8, name="slower")
    kept = len(ready.enough)
    other = replace(there, topology=replace(there.topology, between=slower))
    assert enough_bytes_per_s(ready, other) == enough
    assert len(ready.enough) == kept


def test_a_device_alone_waits_for_nothing(ready: ReadyJob) -> None:
    alone = place("1xH100")
    assert enough_bytes_per_s(ready, alone) is None
    step_s = simulated_step_s(ready.prepared, alone.setting, alone.calibration)
    assert waiting_share(ready, alone, step_s) == 0.0


def test_where_no_rate_is_enough_none_is_named(
    ready: ReadyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_speed, "waiting_share", lambda *_: LITTLE)
    other = ReadyJob(ready.job)
    assert enough_bytes_per_s(other, place("4x8xH100/NVLink+100G")) is None
    monkeypatch.setattr(network_speed, "waiting_share", lambda *_: None)
    assert enough_bytes_per_s(ReadyJob(ready.job), place("4x8xH100/NVLink+100G")) is None


@pytest.mark.parametrize("limit", [3e6, 1e9, 5e12])
def test_the_least_rate_is_found_wherever_it_is(
    ready: ReadyJob, monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    """Within a thousandth, where waiting ends at a rate made up for the test."""

    def waits(_: ReadyJob, there: Place, __: float) -> float:
        joined = there.topology.joined_by
        assert joined is not None
        return 0.0 if joined.bytes_per_s >= limit else 1.0

    monkeypatch.setattr(network_speed, "waiting_share", waits)
    monkeypatch.setattr(network_speed, "simulated_step_s", lambda *_, **__: 1.0)
    rate = enough_bytes_per_s(ReadyJob(ready.job), place("4x8xH100/NVLink+100G"))
    assert rate is not None
    assert limit <= rate <= 1.001 * limit
