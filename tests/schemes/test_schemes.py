"""Laws of the schemes, and names that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.answers.stated_error import JobKind, stated_error
from driple.cluster.schemes import DDP, PS, SchemeChoice
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import SettingError
from driple.render.errors_stated import stated_error_sentence
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.ddp import Ddp
from driple.schemes.hierarchical import two_levels
from driple.schemes.registry import register_scheme, scheme_named
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from tests.simulate.jobs import CALIBRATION, net

STILL = replace(CALIBRATION, jitter=0.0)
HIERARCHICAL = "hierarchical"
ALL_REDUCE = (DDP, HIERARCHICAL)


@pytest.fixture(scope="module")
def job() -> PreparedJob:
    return PreparedJob(net(4))


def seconds(job: PreparedJob, name: str, scheme: str = DDP) -> float:
    setting = Setting.parse(name).with_scheme(scheme)
    return simulate(job, setting, STILL, num_steps=3).iteration_time_s


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_on_one_machine_the_hierarchical_ring_is_the_ring(job: PreparedJob, count: int) -> None:
    simulations = [
        simulate(job, Setting.parse(f"{count}xV100/PCIe").with_scheme(scheme), STILL, num_steps=3)
        for scheme in ALL_REDUCE
    ]
    assert simulations[0].iteration_time_s == pytest.approx(
        simulations[1].iteration_time_s, rel=1e-12
    )
    assert simulations[0].targets.values == pytest.approx(simulations[1].targets.values, rel=1e-9)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_with_one_device_a_machine_it_is_the_ring_over_the_network(
    job: PreparedJob, count: int
) -> None:
    times = [seconds(job, f"{count}x1xV100/1G", scheme) for scheme in ALL_REDUCE]
    times.append(seconds(job, f"V100-R{count}/ho-1G"))
    assert times == pytest.approx([times[0]] * 3, rel=1e-12)


def test_seconds_and_bytes_of_a_hierarchical_message_by_hand() -> None:
    """2 machines of 4 devices, 8 MB: 12 MB within at 6 MB/s, 8 MB between at 2 MB/s.

    A device passes 12 MB within its machine; its shard of 2 MB crosses the network once out, once
    in, beside the three other shards of its machine.
    """
    group = DeviceGroup(
        count=8,
        machines=2,
        within=Hop(bytes_per_s=6e6, latency_s=0.0),
        between=Hop(bytes_per_s=2e6, latency_s=0.0),
    )
    levels, sizes = two_levels(group), np.array([8e6])
    assert levels.all_reduce_s(sizes) == pytest.approx([2 + 4], rel=1e-4)  # and starts of NCCL
    assert levels.all_reduce_bytes(sizes) == pytest.approx([12e6 + 2e6])
    total = 8 * levels.all_reduce_bytes(sizes)
    assert total == pytest.approx(8 * group.sent_bytes("all_reduce", sizes))


@pytest.mark.parametrize("scheme", ALL_REDUCE)
def test_a_slower_network_never_makes_a_step_shorter(job: PreparedJob, scheme: str) -> None:
    times = [seconds(job, f"2x4xV100/PCIe+{rate}", scheme) for rate in ("400G", "10G", "1G", "1M")]
    assert times == sorted(times)
    assert times[-1] > 10 * times[0]


@pytest.mark.parametrize("scheme", ALL_REDUCE)
def test_a_slower_link_within_machines_never_makes_a_step_shorter(
    job: PreparedJob, scheme: str
) -> None:
    topology = topology_of(Setting.parse("2x4xV100/PCIe+400G").with_scheme(scheme))
    assert topology.within is not None
    times = []
    for factor in (1.0, 0.3, 0.01):
        slower = replace(topology.within, bytes_per_s=factor * topology.within.bytes_per_s)
        simulation = simulate(
            job,
            Setting.parse("2x4xV100/PCIe+400G"),
            STILL,
            num_steps=3,
            topology=replace(topology, within=slower),
        )
        times.append(simulation.iteration_time_s)
    assert times == sorted(times)
    assert times[-1] > 2 * times[0]


@pytest.mark.parametrize("scheme", ALL_REDUCE)
@pytest.mark.parametrize("rate", ["1G", "400G"])
def test_more_machines_never_speed_up_more_than_in_proportion(
    job: PreparedJob, scheme: str, rate: str
) -> None:
    """Samples per second of m machines are at most m times those of one."""
    one_s = seconds(job, "4xV100/PCIe", scheme)
    for count in (2, 3, 8):
        assert seconds(job, f"{count}x4xV100/PCIe+{rate}", scheme) >= one_s * (1 - 1e-12)


def test_a_ring_over_machines_is_no_faster_than_over_either_of_its_links(job: PreparedJob) -> None:
    """A ring over the network alone, and one over the link within a machine alone, are bounds."""
    for rate in ("1G", "3200G"):
        assert seconds(job, f"2x4xV100/PCIe+{rate}") >= seconds(job, "V100-R8/ho-PCIe")
    assert seconds(job, "2x4xV100/PCIe+1G") >= 0.9 * seconds(job, "V100-R8/ho-1G")


def test_no_error_is_stated_for_a_scheme_without_published_runs() -> None:
    setting = Setting.parse("2x8xV100-SXM2/NVLink+100G@hierarchical")
    error = stated_error(setting, JobKind(), runs=[])
    assert error.num_runs == 0
    assert "hierarchical" in stated_error_sentence(error)


def test_unknown_schemes_and_taken_names_are_refused(job: PreparedJob) -> None:
    setting = Setting.parse("2xV100/PCIe@teleport")
    with pytest.raises(SettingError, match="no scheme is called 'teleport'; there are ps, ddp"):
        simulate(job, setting, STILL)

    class Impostor(Ddp):
        """Takes the name of another scheme."""

        name = PS

    with pytest.raises(SettingError, match="'ps' is registered already"):
        register_scheme(Impostor())
    assert scheme_named(PS).uses_servers


@pytest.mark.parametrize(("name", "servers"), [(PS, 0), (DDP, 2)])
def test_servers_belong_to_ps_alone(name: str, servers: int) -> None:
    with pytest.raises(SettingError, match="parameter server"):
        SchemeChoice(name=name, num_servers=servers)
    with pytest.raises(SettingError, match="has parameter servers"):
        Setting.parse("V100-P1w2/ho-PCIe").with_scheme(HIERARCHICAL)
