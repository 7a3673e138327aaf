"""Cost of an epoch and the recommendation; the paper's findings on P3 come out of it."""

from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.graph import read_graph
from driple.simulate.device import Calibration, shipped_calibration
from driple.simulate.job import Job
from driple.stalls.communication import bucketed, calibrated_channel, communication_stall
from driple.stalls.communication import gradients_of_job as gradients_of
from driple.stalls.cost import Offer, recommendation, simulated_offer
from driple.stalls.instances import read_instances

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def job() -> Job:
    return Job(read_graph(ROOT / "datasets/examples/resnet50.pbtxt"))


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return shipped_calibration()


def offer_of(job: Job, calibration: Calibration, name: str, machines: int = 1) -> Offer:
    return simulated_offer(
        job, read_instances()[name], calibration, batch_size=32, machines=machines
    )


def test_an_epoch_is_its_iterations_and_a_cost_its_hours(
    job: Job, calibration: Calibration
) -> None:
    offer = simulated_offer(
        job, read_instances()["p3.8xlarge"], calibration, batch_size=32, samples=12_800
    )
    assert offer.epoch_s == pytest.approx(100 * offer.iteration_s)
    assert offer.epoch_cost == pytest.approx(offer.epoch_s / 3600 * 12.24)
    assert (offer.devices, offer.setting) == (4, "V100-SXM2-R4/ho-NVLink")


def test_the_papers_findings_on_p3(job: Job, calibration: Calibration) -> None:
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
    assert "p3.16xlarge is the fastest" in said
    assert "p3.8xlarge*2, p3dn.24xlarge" in said


def test_machines_are_no_faster_than_the_interconnects_within_them(
    job: Job, calibration: Calibration
) -> None:
    """A ring over a network of 3.2 Tbit/s crosses the same NVLink as one in a machine."""
    single, pair = (offer_of(job, calibration, "p5.48xlarge", n) for n in (1, 2))
    assert pair.iteration_s >= single.iteration_s


def test_the_closed_form_and_the_simulator_see_the_same_slow_link(
    job: Job, calibration: Calibration
) -> None:
    """On 10 Gbit/s the stalls of both are within 20 %: two ways to the same bytes."""
    gradients = gradients_of(job, calibration.device("V100-SXM2"))
    channel = calibrated_channel("10G", 1.25e9, 8, calibration)
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
    assert recommendation(offers, 6).startswith("Rent middle: an epoch in 5 h for $2")
    assert recommendation(offers, 0.5).startswith("No instance does an epoch within 0.5 h")
    with pytest.raises(ConfigError, match="--deadline"):
        recommendation(offers, 0)


def test_the_cheapest_may_be_the_fastest() -> None:
    offers = [made_up("best", 1, 1), made_up("worse", 2, 2), made_up("unknown", 0.1, None)]
    assert recommendation(offers) == (
        "Rent best: an epoch in 1 h for $1, the cheapest and the fastest of all; not worth the "
        "price, as others are as fast for less: worse."
    )
    with pytest.raises(ConfigError, match="no instance has a price"):
        recommendation(offers[2:])
