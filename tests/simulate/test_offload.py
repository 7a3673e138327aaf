"""CPU offload by hand: what crosses to the host, and how long its update takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import shipped_hardware
from driple.cluster.schemes import SPLIT, Degrees
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import SettingError
from driple.graph.step_facts import Phase
from driple.schemes.links import ReachedLink
from driple.schemes.records import WorkerRecord
from driple.simulate.calibration import link_kind, shipped_calibration
from driple.simulate.offload import offload_assumptions, with_offload
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulate_steps
from tests.schemes.exchanged import transformer
from tests.schemes.test_scheme import link, step
from tests.step.mixtures import EXPERTS, INNER, LAYERS, WIDTH, mixture

STILL = replace(shipped_calibration(), jitter=0.0)
VECTORISED_S, PLAIN_S = 0.257e-9, 1.476e-9  # of a parameter


def job(*offload: str, passes: int = 1, by_engine: bool = True) -> PreparedJob:
    program = Program(offload=offload, by_engine=by_engine)
    return PreparedJob(transformer(passes).graph, program=program)


def record_on(prepared: PreparedJob, name: str) -> WorkerRecord:
    return simulate_steps(prepared, topology_of(Setting.parse(name)), STILL, num_steps=3)[0]


def seconds_on(prepared: PreparedJob, name: str) -> float:
    return record_on(prepared, name).iteration_time_s


def copy_s(prepared: PreparedJob, name: str) -> float:
    """Seconds in which all parameters of a job cross the link to its host."""
    link = shipped_hardware().host_link(Setting.parse(name).worker)
    rate = ReachedLink(link, STILL.link(link)).bytes_per_s(1)
    return float(prepared.graph.parameters.nbytes.sum()) / rate


@pytest.mark.parametrize(("by_engine", "each_s"), [(True, VECTORISED_S), (False, PLAIN_S)])
def test_a_host_updates_the_parameters_of_its_device(by_engine: bool, each_s: float) -> None:
    """Gradients go beside the backward pass, as far as it is long enough; parameters come back."""
    kept, moved = (
        seconds_on(job(*offload, by_engine=by_engine), "p3.2xlarge")
        for offload in ((), ("states",))
    )
    prepared = job()
    device = STILL.device(Setting.parse("p3.2xlarge").worker)
    times = prepared.times(device)
    backward_s = times.duration_s[prepared.graph.phases == Phase.BACKWARD].sum()
    way_s = copy_s(prepared, "p3.2xlarge")
    elements = int(prepared.graph.parameters.elements.sum())
    host_s = max(way_s - backward_s, 0.0) + elements * each_s + way_s
    assert moved - kept == pytest.approx(host_s - prepared.update_seconds(device), rel=1e-6)


@pytest.mark.parametrize(("scheme", "copies"), [("zero2", 1), ("fsdp", 1), ("ddp", 8)])
def test_devices_of_a_machine_share_its_host(scheme: str, copies: int) -> None:
    """All parameters once where states are shared out; as often as there are devices if not."""
    elements = int(job().graph.parameters.elements.sum())
    slow, fast = (
        seconds_on(job("states", by_engine=by_engine), f"p3.16xlarge@{scheme}")
        for by_engine in (False, True)
    )
    wanted = copies * elements * (PLAIN_S - VECTORISED_S)
    assert slow - fast == pytest.approx(wanted, rel=1e-6)


def mixture_job(*offload: str, by_engine: bool = True) -> PreparedJob:
    return PreparedJob(mixture(), program=Program(offload=offload, by_engine=by_engine))


def test_hosts_update_the_experts_of_their_devices() -> None:
    """Of eight devices in groups of four, each has all but the experts, and a quarter of these."""
    slow, fast = (
        seconds_on(mixture_job("states", by_engine=by_engine), "p3.16xlarge@ep4")
        for by_engine in (False, True)
    )
    experts = LAYERS * EXPERTS * 3 * WIDTH * INNER
    others = int(mixture().parameters.elements.sum()) - experts
    wanted = (8 * others + 8 / 4 * experts) * (PLAIN_S - VECTORISED_S)
    assert slow - fast == pytest.approx(wanted, rel=1e-6)


def test_waiting_for_the_host_is_no_busy_device() -> None:
    """The device computes as long as before, and has no update of its own."""
    busy = []
    for offload in ((), ("states",)):
        computing = record_on(job(*offload), "p3.2xlarge").computing
        busy.append(sum((one.end_s - one.start_s) * one.busy_share for one in computing))
    update_s = 3 * job().update_seconds(STILL.device(Setting.parse("p3.2xlarge").worker))
    assert busy[1] == pytest.approx(busy[0] - update_s, rel=1e-6)


def test_parameters_on_the_host_come_for_each_use() -> None:
    """Twice a pass, beside computing: what that does not hide, in place of the new parameters."""
    kept, moved = (
        seconds_on(job(*parts), "p3.16xlarge@fsdp")
        for parts in (("states",), ("states", "parameters"))
    )
    prepared = job()
    way_s = copy_s(prepared, "p3.16xlarge") / 8
    computing_s = prepared.times(STILL.device(Setting.parse("p3.2xlarge").worker)).duration_s.sum()
    assert moved - kept == pytest.approx(max(2 * way_s - computing_s, 0.0) - way_s, rel=1e-6)


def test_hosts_of_unknown_memory_are_refused() -> None:
    with pytest.raises(SettingError, match=r"memory 1xV100 does not state; name an instance"):
        seconds_on(job("states"), "1xV100")


def test_an_unknown_link_to_the_host_is_refused() -> None:
    usual = step(1, 1)
    known = replace(usual, topology=replace(usual.topology, host_memory_bytes=1e12))
    with pytest.raises(SettingError, match="does not know the link of V100"):
        with_offload(known, job("states"), STILL.device("V100"), None)


@pytest.mark.parametrize(("by_engine", "nanoseconds"), [(True, 0.257), (False, 1.476)])
def test_how_fast_a_host_updates_is_an_assumption(by_engine: bool, nanoseconds: float) -> None:
    """Of jobs that keep states there alone."""
    assert offload_assumptions(job(by_engine=by_engine)) == ()
    (assumed,) = offload_assumptions(job("states", by_engine=by_engine))
    assert assumed.code == "host_updates"
    assert assumed.values["seconds"] == pytest.approx(nanoseconds)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_slow_link_to_the_host_is_waited_for_beyond_computing(passes: int) -> None:
    """A thousandth of its rate: twice a pass all parameters of a device's shard come over it."""
    name = "p3.16xlarge@fsdp"
    link = shipped_hardware().host_link(Setting.parse(name).worker)
    slow = replace(
        STILL, links={**STILL.links, link_kind(link): replace(STILL.link(link), share=1e-3)}
    )
    kept, moved = (
        simulate_steps(
            job(*parts, passes=passes), topology_of(Setting.parse(name)), slow, num_steps=3
        )[0].iteration_time_s
        for parts in (("states",), ("states", "parameters"))
    )
    prepared = job(passes=passes)
    rate = ReachedLink(link, slow.link(link)).bytes_per_s(1)
    way_s = float(prepared.graph.parameters.nbytes.sum()) / rate / 8
    computing_s = prepared.times(STILL.device(Setting.parse(name).worker)).duration_s.sum()
    assert computing_s < way_s
    assert moved - kept == pytest.approx(2 * passes * way_s - computing_s - way_s, rel=1e-6)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_stage_has_its_share_of_what_crosses_and_of_what_hides_it(stages: int) -> None:
    """Its backward pass is as long as gradients take that it has not hidden."""
    prepared, device = job("states"), STILL.device("V100")
    usual = step(1, 4)
    topology = replace(
        usual.topology, host_memory_bytes=1e12, scheme=SPLIT, degrees=Degrees(pipeline=stages)
    )
    is_backward = prepared.graph.phases == Phase.BACKWARD
    backward_s = float(prepared.times(device).duration_s[is_backward].sum()) / stages
    own_bytes = float(prepared.graph.parameters.nbytes.sum()) / stages
    elements = float(prepared.graph.parameters.elements.sum()) / stages
    for hidden in (0.5, 2.0):  # of the way there, by the backward pass
        host = link("PCIe3", hidden * own_bytes / backward_s)
        way_s = own_bytes / host.bytes_per_s(1)
        changed = with_offload(replace(usual, topology=topology), prepared, device, host)
        wanted = max(way_s - backward_s, 0.0) + 4 * elements * VECTORISED_S + way_s
        assert changed.update.host_s == pytest.approx(wanted, rel=1e-6)
