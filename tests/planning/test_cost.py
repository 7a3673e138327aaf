"""Cost of an epoch and the recommendation; the paper's findings on P3 come out of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from driple.catalog import link_named, shipped_catalog
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.estimation.stated_error import stated_error
from driple.graph import read_graph
from driple.graph.opgraph import ReadReport
from driple.planning.cost import (
    Offer,
    price_text,
    recommendation,
    simulated_offer,
)
from driple.profiler.communication import bucketed, calibrated_channel, communication_stall
from driple.profiler.communication import gradients_of_job as gradients_of
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def job() -> PreparedJob:
    return PreparedJob(read_graph(ROOT / "datasets/examples/resnet50.pbtxt"))


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return shipped_calibration()


def offer_of(job: PreparedJob, calibration: Calibration, name: str, machines: int = 1) -> Offer:
    return simulated_offer(
        job, shipped_catalog().instances[name], calibration, batch_size=32, machines=machines
    )


def test_an_epoch_is_its_iterations_and_a_cost_its_hours(
    job: PreparedJob, calibration: Calibration
) -> None:
    offer = simulated_offer(
        job, shipped_catalog().instances["p3.8xlarge"], calibration, batch_size=32, samples=12_800
    )
    assert offer.epoch_s == pytest.approx(100 * offer.iteration_s)
    assert offer.epoch_cost == pytest.approx(offer.epoch_s / 3600 * 12.24)
    assert (offer.devices, offer.setting) == (4, "V100-SXM2-R4/ho-NVLink")


def test_the_papers_findings_on_p3(job: PreparedJob, calibration: Calibration) -> None:
    """The single GPU costs least, two 8xlarge over a network most; 24xlarge is 16xlarge, dearer."""
    one, four, eight, dedicated = (
        offer_of(job, calibration, name)
        for name in ("p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge")
    )
    pair = offer_of(job, calibration, "p3.8xlarge", 2)
    costs = [offer.epoch_cost or 0.0 for offer in (one, four, eight, dedicated, pair)]
    assert costs == sorted(costs)
    assert dedicated.iteration_s == pytest.approx(eight.iteration_s)
    assert (pair.communication_pct or 0) > 10 * (eight.communication_pct or 0)
    said = recommendation([one, four, eight, dedicated, pair])
    assert said.startswith("Rent p3.2xlarge:")
    assert "the fastest is p3.16xlarge: an epoch in" in said
    assert "p3.8xlarge*2 costs more than p3.2xlarge*2" not in said
    assert "p3dn.24xlarge costs more than p3.16xlarge and is no faster" in said


def test_machines_are_no_faster_than_the_interconnects_within_them(
    job: PreparedJob, calibration: Calibration
) -> None:
    """A ring over a network of 3.2 Tbit/s crosses the same NVLink as one in a machine."""
    single, pair = (offer_of(job, calibration, "p5.48xlarge", n) for n in (1, 2))
    assert pair.iteration_s >= single.iteration_s


def test_the_closed_form_and_the_simulator_see_the_same_slow_link(
    job: PreparedJob, calibration: Calibration
) -> None:
    """On 10 Gbit/s the stalls of both are within 20 %: two ways to the same bytes."""
    gradients = gradients_of(job, calibration.device("V100-SXM2"))
    channel = calibrated_channel(link_named("10G"), 8, calibration)
    stall = communication_stall(gradients, bucketed(gradients), channel, 8)
    offer = offer_of(job, calibration, "p3.8xlarge", 2)
    one = offer_of(job, calibration, "p3.2xlarge")
    assert stall == pytest.approx(offer.iteration_s - one.iteration_s, rel=0.2)
    assert gradients.nbytes.sum() == pytest.approx(4 * 25.6e6, rel=0.01)


def made_up(name: str, hours: float, cost: float | None) -> Offer:
    return Offer(
        name=name,
        devices=1,
        iteration_s=1.0,
        communication_pct=None,
        epoch_s=3600 * hours,
        epoch_cost=cost,
        per_hour=None,
        provenance="simulated",
    )


def test_a_deadline_chooses_the_cheapest_in_time() -> None:
    offers = [made_up("slow", 10, 1), made_up("middle", 5, 2), made_up("fast", 1, 9)]
    assert recommendation(offers, 6) == (
        "Rent middle: an epoch in 5 h for $2.00, the cheapest within 6 h."
    )
    assert recommendation(offers, 0.5).startswith("No instance does an epoch within 0.5 h")
    with pytest.raises(ConfigError, match="--deadline"):
        recommendation(offers, 0)


def test_what_costs_more_and_is_slower_is_named_with_what_beats_it() -> None:
    offers = [
        made_up("p3.2xlarge", 1, 1), made_up("p2.xlarge", 17, 9), made_up("p2.other", 1.3, 8),
        made_up("p3.same", 1, 7), made_up("p3.equal", 2, 1), made_up("unknown", 0.1, None),
    ]  # fmt: skip
    assert recommendation(offers) == (
        "Rent p3.2xlarge: an epoch in 1 h for $1.00, the cheapest and the fastest; p2.xlarge costs "
        "more than p3.2xlarge and is 17 times slower; p2.other costs more than p3.2xlarge and is "
        "30 % slower; p3.same costs more than p3.2xlarge and is no faster; 1 more cost more and "
        "are no faster than another."
    )
    equal = recommendation([offers[0], offers[4]])
    assert "p3.equal costs as much as p3.2xlarge and is 2 times slower" in equal
    assert recommendation(offers[:1]) == "p3.2xlarge: an epoch in 1 h for $1.00."
    with pytest.raises(ConfigError, match="no instance has a price"):
        recommendation(offers[5:])


def test_what_is_faster_for_more_is_not_advised_against() -> None:
    said = recommendation([made_up("cheap", 10, 1), made_up("fast", 1, 9)])
    assert said == (
        "Rent cheap: an epoch in 10 h for $1.00, the cheapest; the fastest is fast: an epoch in "
        "1 h for $9.00."
    )


@pytest.mark.parametrize(
    ("price", "text"),
    [(0.0000671, "0.000067"), (0.218, "0.22"), (1, "1.00"), (12.345, "12.35"), (1234.5, "1,234")],
)
def test_no_price_is_nothing(price: float, text: str) -> None:
    assert price_text(price) == text


def test_open_sizes_have_no_price(job: PreparedJob, calibration: Calibration) -> None:
    """Each counts as 1, so the time is too short, and no error belongs to it."""
    graph = replace(job.graph, report=ReadReport(unknown_share=0.25))
    offer = offer_of(PreparedJob(graph), calibration, "p3.2xlarge")
    assert (offer.epoch_cost, offer.per_hour) == (None, None)
    assert offer.error is not None
    assert "25 % of the nodes have unknown dimensions" in offer.error.sentence()


def test_each_offer_states_its_own_error(job: PreparedJob, calibration: Calibration) -> None:
    """A K80 was published alone; eight of them in one machine were not."""
    alone, many = (offer_of(job, calibration, name) for name in ("p2.xlarge", "p2.8xlarge"))
    assert alone.error == stated_error(Setting.parse("K80-R1/ho-PCIe"), job.graph)
    assert alone.error is not None
    assert "one device (K80)" in alone.error.sentence()
    assert many.error is not None
    assert many.error.num_runs == 0


def test_machines_of_several_devices_lie_between_two_rings(
    job: PreparedJob, calibration: Calibration
) -> None:
    """One ring over the network alone and one over the link within alone, by hand.

    The real one crosses both, at the rate of the slower link; it waits for the network less often,
    and NCCL may choose a tree for it.
    """
    for name, network in (("p3.16xlarge", "25G"), ("p5.48xlarge", "3200G")):
        instance = shipped_catalog().instances[name]
        rings = [
            Setting.parse(f"{instance.device}-R16/ho-{link}")
            for link in (network, instance.interconnect)
        ]
        times = [simulate(job, ring, calibration, num_steps=20).iteration_time_s for ring in rings]
        found = offer_of(job, calibration, name, 2)
        assert 0.99 * min(times) <= found.iteration_s <= max(times)
        assert found.setting == f"2x8x{instance.device}/{instance.interconnect}+{network}"
