"""How many machines pay: at least half of what they add must arrive."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from driple.catalog import shipped_catalog
from driple.planning.offers import Offer
from driple.planning.scaling import scaling_of
from driple.remarks import Remark
from tests.planning.offers import made_up

P3, P4 = (shipped_catalog().instances[name] for name in ("p3.2xlarge", "p4d.24xlarge"))


def offer(machines: int, samples_per_s: float, fits: str | None = "yes") -> Offer:
    """An offer of some machines of P3 at a rate."""
    return replace(
        made_up(f"{machines}x", 1.0, 1.0, fits),
        instance=P3,
        machines=machines,
        samples_per_s=samples_per_s,
    )


def scaled(rates: dict[int, float]) -> Remark:
    offers = [offer(machines, rate) for machines, rate in rates.items()]
    remark = scaling_of(offers, offers[0])
    assert remark is not None
    return remark


@pytest.mark.parametrize(
    ("rates", "paying"),
    [
        ({1: 10, 2: 20, 4: 40}, None),  # all arrives
        ({1: 10, 2: 15, 4: 22.5}, None),  # just half of it
        ({1: 10, 2: 14.9, 4: 29}, 1),  # less than half: what comes later pays no more
        ({1: 10, 2: 19, 4: 28}, 2),
        ({2: 10, 3: 12.5, 6: 18.8}, None),  # 3 of 2 machines add half a machine each
        ({2: 10, 3: 12.4}, 2),
        ({1: 10, 2: 5}, 1),
    ],
)
def test_machines_pay_while_half_of_what_they_add_arrives(
    rates: dict[int, float], paying: int | None
) -> None:
    remark = scaled(rates)
    assert remark.values["paying_machines"] == paying
    numbers = sorted(rates)
    assert (remark.values["least_machines"], remark.values["most_machines"]) == (
        numbers[0], numbers[-1])  # fmt: skip
    assert remark.values["speed_ratio"] == pytest.approx(rates[numbers[-1]] / rates[numbers[0]])
    assert remark.values["instance"] == "p3.2xlarge"


def test_the_order_of_offers_does_not_matter() -> None:
    offers = [offer(1, 10), offer(2, 19), offer(4, 28), offer(8, 30)]
    remarks = {scaling_of(some, offers[2]) for some in permutations(offers)}
    assert len(remarks) == 1


def test_only_offers_that_could_be_taken_count() -> None:
    """Not those of other instances, that do not fit, or that were measured."""
    best = offer(1, 10)
    assert scaling_of([best, offer(2, 20)], best) is not None
    for other in (
        offer(2, 20, "no"),
        offer(2, 20, "likely not"),
        replace(offer(2, 20), instance=P4),
        replace(offer(2, 20), provenance="measured"),
    ):
        assert scaling_of([best, other], best) is None
    assert scaling_of([best, offer(2, 20)], None) is None
    own = replace(best, instance=None)
    assert scaling_of([own, replace(offer(2, 20), instance=None)], own) is None


def test_of_several_ways_on_the_same_machines_the_fastest_counts() -> None:
    best = offer(1, 10)
    remark = scaling_of([offer(2, 20), offer(2, 11), best], best)
    assert remark is not None
    assert remark.values["speed_ratio"] == pytest.approx(2.0)
