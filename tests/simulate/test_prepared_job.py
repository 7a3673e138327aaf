"""A job on settings that its graph is not made for: what is assumed, and what crosses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.cluster.setting import Setting
from driple.codec import to_json
from driple.graph.opgraph import Layout
from driple.render.remarks import sentences
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import (
    PreparedJob,
    Program,
    assumptions_on,
    closed_form_assumptions,
)
from driple.simulate.run import simulate
from tests.simulate.jobs import net


@pytest.mark.parametrize(
    ("layout", "setting", "part"),
    [
        ("servers", "V100-P1w2/ho-PCIe", ""),
        ("unplaced", "V100-P1w2/ho-PCIe", "placed on the parameter servers"),
        ("one_machine", "V100-P1w2/ho-PCIe", "placed on the parameter servers"),
        ("all_reduce", "V100-P1w2/ho-PCIe", "workers wait for each other"),
        ("servers", "V100-R4/ho-PCIe", "gradients are added up by all-reduce"),
        ("one_machine", "V100-R4/ho-PCIe", "gradients are added up by all-reduce"),
        ("all_reduce", "V100-R4/ho-PCIe", ""),
        ("one_machine", "V100-R1/ho-PCIe", ""),
        ("unplaced", "V100-R1/ho-PCIe", ""),
        ("servers", "V100-R1/ho-PCIe", "nothing crosses the network"),
    ],
)
def test_a_setting_that_a_graph_is_not_made_for_is_an_assumption(
    layout: Layout, setting: str, part: str
) -> None:
    graph, place = replace(net(8), layout=layout), Setting.parse(setting)
    assumed = assumptions_on(graph, place)
    assert len(assumed[:1]) == bool(part)
    assert part in (sentences(assumed) or ("",))[0]
    simulation = simulate(graph, place, shipped_calibration(), num_steps=4)
    assert simulation.to_json_dict()["assumptions"] == to_json(assumed)


@pytest.mark.parametrize(
    ("layout", "setting", "sync", "is_said"),
    [
        ("servers", "V100-P1w2/ho-PCIe", False, False),
        ("unplaced", "V100-P1w2/ho-PCIe", False, True),
        ("one_machine", "V100-P1w2/ho-PCIe", False, True),
        ("unplaced", "V100-P1w2/ho-PCIe", True, False),
        ("unplaced", "V100-P1w1/ho-PCIe", False, False),
        ("unplaced", "V100-R2/ho-PCIe", False, False),
    ],
)
def test_workers_that_a_graph_leaves_open_are_assumed_not_to_wait(
    layout: Layout, setting: str, sync: bool, is_said: bool
) -> None:
    graph, place = replace(net(8, sync=sync), layout=layout), Setting.parse(setting)
    usual = sentences(assumptions_on(graph, place))
    waiting = sentences(assumptions_on(graph, place, synchronous=True))
    assert any("asynchronous" in words for words in usual) == is_said
    assert not any("asynchronous" in words for words in waiting)


@pytest.mark.parametrize(
    ("layout", "sync", "part"),
    [
        ("servers", False, "is of asynchronous training; the closed forms"),
        ("unplaced", False, "does not show whether workers wait"),
        ("servers", True, ""),
    ],
)
def test_closed_forms_say_that_they_take_asynchronous_training_for_synchronous(
    layout: Layout, sync: bool, part: str
) -> None:
    graph = replace(net(8, sync=sync), layout=layout)
    texts = sentences(closed_form_assumptions(graph, Setting.parse("V100-P1w2/ho-PCIe")))
    assert bool(texts) == bool(part)
    assert part in (texts or ("",))[-1]


@pytest.mark.parametrize("layout", ["servers", "unplaced", "one_machine", "all_reduce"])
def test_nothing_crosses_the_network_of_one_device(layout: Layout) -> None:
    setting = Setting.parse("V100-R1/ho-PCIe")
    simulation = simulate(
        replace(net(8), layout=layout), setting, shipped_calibration(), num_steps=4
    )
    assert not simulation.traces["net_tx"].amount.any()
    assert not simulation.traces["net_rx"].amount.any()


def test_all_reduce_is_synchronous_and_a_program_may_say_so() -> None:
    assert not net(8).is_synchronous
    assert replace(net(8), layout="all_reduce").is_synchronous
    assert PreparedJob(net(8), program=Program(synchronous=True)).is_synchronous
    assert not PreparedJob(net(8, sync=True), program=Program(synchronous=False)).is_synchronous


def test_gradients_of_a_ring_travel_afterwards_or_in_half_precision_if_the_program_says_so() -> (
    None
):
    setting, calibration = Setting.parse("V100-R2/ho-1G"), shipped_calibration()
    graph = net(8)

    def seconds(program: Program) -> float:
        job = PreparedJob(graph, program=program)
        return simulate(job, setting, calibration, num_steps=20).iteration_time_s

    usual = seconds(Program(exchange="tensors"))
    assert seconds(Program(exchange="tensors", overlapped=False)) > usual
    assert seconds(Program(exchange="tensors", ring_share=0.5)) < 0.6 * usual


@pytest.mark.parametrize("setting", ["V100-R1/ho-PCIe", "V100-R2/ho-PCIe", "V100-P1w2/ho-PCIe"])
def test_no_share_of_the_device_is_above_100_pct(setting: str) -> None:
    """Of any segment, sample and target; and memory is in use only while a kernel runs."""
    simulation = simulate(net(32), Setting.parse(setting), shipped_calibration(), num_steps=10)
    for record in simulation.records:
        for segment in record.computing:
            assert 0 <= segment.memory_share <= segment.busy_share <= 1 + 1e-9
    for name in ("device_util", "device_mem_util"):
        assert simulation.traces[name].amount.max() <= 100
    util, memory, tx, rx = simulation.targets.values
    assert 0 < util[0] <= 100
    assert 0 <= memory[0] <= 100
    for values in (util, memory, tx, rx):
        assert (values >= 0).all()


def test_a_new_calibration_never_takes_the_times_of_an_older_one() -> None:
    """The same device by name, at half its efficiency: one job gives what a new job gives."""
    calibration, setting = shipped_calibration(), Setting.parse("V100-R1/ho-PCIe")
    job = PreparedJob(net(8))
    for share in (1.0, 0.5, 0.25):
        mine = calibration.device("V100").efficiency.shares
        reached = replace(mine, plain=share * mine.plain, memory=share * mine.memory)
        model = calibration.model
        measured = {**model.devices.measured, "V100": reached}
        devices = replace(model.devices, measured=measured)
        other = replace(calibration, model=replace(model, devices=devices))
        again, fresh = (
            simulate(one, setting, other, num_steps=4) for one in (job, PreparedJob(net(8)))
        )
        assert again.targets.flat.tolist() == fresh.targets.flat.tolist()
        assert again.iteration_time_s == fresh.iteration_time_s
    times = [job.times(calibration.device("V100")), job.times(calibration.device("V100"))]
    assert times[0] is times[1]  # equal calibrations share them


@pytest.mark.parametrize("field", ["spec", "plain", "kernels", "host", "activity"])
def test_every_number_of_a_calibrated_device_is_part_of_its_identity(field: str) -> None:
    """Whatever changes the times of ops makes another device of it, and so other times."""
    device = shipped_calibration().device("V100")
    mine = device.efficiency
    faster = replace(mine.kernels, start_s=mine.kernels.start_s / 2)
    others = {
        "spec": replace(
            device, spec=replace(device.spec, facts={**device.spec.facts, "bytes_per_s": 1e11})
        ),
        "plain": replace(device, efficiency=replace(mine, shares=replace(mine.shares, plain=0.1))),
        "kernels": replace(device, efficiency=replace(mine, kernels=faster)),
        "host": replace(device, efficiency=replace(mine, host=replace(mine.host, op_s=1.0))),
        "activity": replace(device, efficiency=replace(mine, memory_activity=9.0)),
    }
    assert others[field] != device
    assert len({others[field], device}) == 2
    job = PreparedJob(net(8))
    assert job.plan(others[field], 1, "greedy") is not job.plan(device, 1, "greedy")
