"""Links: what a fit puts together is what a simulation does, and it finds the link of its runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import device_named
from driple.errors import ConfigError
from driple.runs.tensorflow_runs import Kind, TensorFlowRun
from driple.simulate.calibration import (
    CoreModel,
    GpuModel,
    LinkEfficiency,
    nearest_link,
    shipped_calibration,
)
from driple.simulate.run import iteration_time_s, simulate_steps
from scripts.fits.batched import BatchedGraph
from scripts.fits.leave_one_out import fit_links
from scripts.fits.links import (
    PUBLISHED,
    PreparedRun,
    fit_link_efficiency,
    prepare_run,
    program_of,
    role_copy_bytes_per_s,
    seconds_on,
    topology_of_run,
)
from scripts.fits.server_rate import ServerRate
from tests.simulate.gpu_models import gpu_model
from tests.simulate.jobs import CALIBRATION, EFFICIENCY, net

GRAPH = BatchedGraph.of((16, net(16)), (32, net(32)))
TRUE = LinkEfficiency(share=0.35, latency_s=14e-6, sharing=0.4)


def prepared(
    devices: tuple[str, ...], batch_size: int, kind: Kind = "ring", link: str = "10G"
) -> PreparedRun:
    run = TensorFlowRun(
        source="made up",
        kind=kind,
        job="net",
        batch_size=batch_size,
        precision="fp32",
        compiled=False,
        devices=devices,
        num_servers=int(kind == "servers"),
        per_machine=1 if link == "10G" else len(devices),
        link=link,
        overlapped=True,
        step_s=1.0,
    )
    return prepare_run(run, GRAPH, lambda _: EFFICIENCY)


def seconds_over(prepared_run: PreparedRun, link: LinkEfficiency, apply_s: float = 0.0) -> float:
    return seconds_on(prepared_run, {prepared_run.family: link}, apply_s_per_byte=apply_s)


@pytest.mark.parametrize("model", [CALIBRATION.model, gpu_model()], ids=["core", "gpu"])
@pytest.mark.parametrize("devices", [("V100",) * 2, ("V100",) * 8, ("V100", "K80", "T4")])
def test_a_fit_simulates_what_a_user_simulates(
    devices: tuple[str, ...], model: CoreModel | GpuModel
) -> None:
    """The same job on the same machines, without differences between steps."""
    run = prepared(devices, 64, link="PCIe3").run
    run_and_graph = prepare_run(run, GRAPH, lambda name: model.of(device_named(name), 1.0)[0])
    links = {**CALIBRATION.links, "PCIe3": TRUE}
    known = replace(CALIBRATION, model=model, links=links, jitter=0.0, memory_activity=1.0)
    topology = topology_of_run(run_and_graph.run)
    records = simulate_steps(
        GRAPH.job(64, program_of(run_and_graph.run)), topology, known, num_steps=3
    )
    simulated = iteration_time_s(topology, records)
    assert seconds_over(run_and_graph, TRUE) == pytest.approx(simulated, rel=1e-9)


@pytest.mark.parametrize("kind", ["ring", "servers"])
def test_a_fit_finds_the_link_that_made_the_times(kind: Kind) -> None:
    items = [prepared(("V100",) * n, batch, kind) for n in (2, 4, 8) for batch in (4, 64)]
    apply_s = 4e-10 if kind == "servers" else 0.0
    items = [
        replace(item, run=replace(item.run, step_s=seconds_over(item, TRUE, apply_s)))
        for item in items
    ]
    efficiency, found_apply_s = fit_link_efficiency(items)
    for prepared_run in items:
        predicted_s = seconds_over(prepared_run, efficiency, found_apply_s)
        assert predicted_s == pytest.approx(prepared_run.run.step_s, rel=0.02)
    assert found_apply_s == pytest.approx(apply_s, rel=0.3)
    assert efficiency.effective_share(4) == pytest.approx(TRUE.effective_share(4), rel=0.15)


def test_a_measured_time_alone_scales_the_computing() -> None:
    """So that a fit of links does not depend on what is known of the device."""
    run = prepared(("V100",) * 2, 64).run
    scaled = prepare_run(run, GRAPH, lambda _: EFFICIENCY, alone_s=0.5)
    total = scaled.plans[0].compute_s + scaled.update_s[0]
    assert total == pytest.approx(0.5)


def test_links_of_one_family_get_one_efficiency() -> None:
    """PCIe of two generations; families that are published keep their figures."""
    items = [
        replace(item, run=replace(item.run, step_s=seconds_over(item, TRUE)))
        for item in (prepared(("V100",) * n, 4, link=link) for n in (2, 8)
                     for link in ("PCIe3", "PCIe4", "NVLink-V100"))
    ]  # fmt: skip
    links = fit_links(items).links
    assert links["PCIe3"] == links["PCIe4"]
    assert links["NVLink-V100"] == PUBLISHED["NVLink"]
    assert links["PCIe3"].effective_share(4) == pytest.approx(TRUE.effective_share(4), rel=0.15)


def test_copies_take_what_a_link_leaves_of_a_published_transfer() -> None:
    """1 / 0.8 = 1 / 1 + 1 / 4: in GB/s, of a link of 1.25 at a share of 0.8."""
    link = LinkEfficiency(share=0.8, latency_s=0.0, sharing=0.0)
    passed = ServerRate(bytes_per_s=0.8e9, link="10G", num_workers=3)
    assert role_copy_bytes_per_s(passed, link) == pytest.approx(4e9)
    assert role_copy_bytes_per_s(replace(passed, bytes_per_s=1.1e9), link) == float("inf")
    assert role_copy_bytes_per_s(None, link) == float("inf")


def test_a_fit_finds_links_and_copies_together() -> None:
    """Runs over 1 and 10 Gbit/s, simulated with a link and copies that it then finds again."""
    true, copy, apply_s = LinkEfficiency(0.9, 14e-6, 0.0), 5e9, 3e-10
    items = [prepared(("V100",) * n, b, "servers", link=link)
             for n in (2, 3) for b in (2, 64) for link in ("1G", "10G")]  # fmt: skip
    items = [
        replace(item, run=replace(item.run, step_s=seconds_on(
            item, {item.family: true}, apply_s_per_byte=apply_s, role_copy_bytes_per_s=copy)))
        for item in items
    ]  # fmt: skip
    rate = 1 / (1 / (0.9 * 1.25e9) + 1 / copy)
    fitted = fit_links(items, ServerRate(bytes_per_s=rate, link="10G", num_workers=3))
    assert fitted.links["Ethernet"].effective_share(3) == pytest.approx(0.9, rel=0.05)
    again = 1 / (1 / (fitted.links["Ethernet"].effective_share(3) * 1.25e9)
                 + 1 / fitted.role_copy_bytes_per_s)  # fmt: skip
    assert again == pytest.approx(rate)


def test_an_unmeasured_link_takes_its_nearest_relative() -> None:
    measured = ["Ethernet", "NVLink-V100", "NVLink-A100", "PCIe3", "PCIe4-host", "InfiniBand-FDR"]
    assert nearest_link("40G", measured) == "Ethernet"
    assert nearest_link("NVLink-H100", measured) == "NVLink-A100"
    assert nearest_link("PCIe5", measured) == "PCIe3"
    assert nearest_link("PCIe3-host", measured) == "PCIe4-host"
    assert nearest_link("InfiniBand-HDR", measured) == "InfiniBand-FDR"
    assert nearest_link("NVLink-V100", ["Ethernet"]) == "Ethernet"


def test_a_link_without_measurements_takes_the_middle_of_three_relatives() -> None:
    """Not the odd one, though it is the nearest."""
    measured = {
        "NVLink-P100": LinkEfficiency(0.95, 2e-5, 0.1),
        "NVLink-Turing": LinkEfficiency(1.0, 1e-5, 0.2),
        "NVLink-V100": LinkEfficiency(0.4, 2e-4, 0.3),
    }
    shipped = shipped_calibration().links
    others = {kind: link for kind, link in shipped.items() if not kind.startswith("NVLink")}
    links = {**others, **measured}
    calibration = replace(shipped_calibration(), links=links)
    assert calibration.link("NVLink-V100") == measured["NVLink-V100"]
    without = {kind: link for kind, link in links.items() if kind != "NVLink-P100"}
    bridge = replace(calibration, links={**without, "NVLink-TU104": measured["NVLink-P100"]})
    assert bridge.link("NVLink-P100") == LinkEfficiency(0.95, 2e-5, 0.2)


def test_a_link_that_nothing_can_stand_in_for_is_refused() -> None:
    pcie = {"PCIe3": LinkEfficiency(0.9, 1e-5, 0.0)}
    for links, name, words in ((pcie, "NVLink-V100", "PCIe3"), ({}, "40G", "none")):
        calibration = replace(shipped_calibration(), links=links)
        with pytest.raises(ConfigError, match=f"stand in for {name}.*calibration .{words}"):
            calibration.link(name)
