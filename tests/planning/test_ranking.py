"""What is recommended: laws of budget, deadline, memory and prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.answers.error_statement import StatedError
from driple.errors import ConfigError
from driple.planning.offers import Offer
from driple.planning.ranking import (
    RANKS,
    Choice,
    TrainingLimits,
    best_by_place,
    choose,
    pareto,
    ranked,
)
from driple.remarks import Remark
from driple.render.remarks import sentence
from driple.render.remarks.offers import price_text
from tests.planning.offers import answered, made_up


def said_by(choice: Choice) -> str:
    """The recommendation as a user reads it."""
    assert choice.why is not None
    return sentence(choice.why)


def some_offers(seed: int, count: int = 40) -> list[Offer]:
    random = np.random.default_rng(seed)
    fits = np.array(["yes", "yes", "likely not", "no"])
    offers = [
        made_up(
            f"m{number % 12}",
            float(random.lognormal(0, 0.1)),
            None if number % 7 == 3 else float(random.lognormal(2)),
            str(random.choice(fits)),
        )
        for number in range(count)
    ]
    spans = random.uniform(1, 10, count)
    return [
        replace(
            offer,
            answer=answered(
                StatedError(
                    runs=Remark.of_text("x"),
                    num_runs=9,
                    low_factor=1 / span,
                    high_factor=float(span),
                )
            ),
        )
        for offer, span in zip(offers, spans, strict=True)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_a_smaller_budget_never_gives_a_more_expensive_offer(seed: int) -> None:
    offers = some_offers(seed)
    costs = [
        best.cost if (best := choose(offers, TrainingLimits(budget=float(budget))).best) else None
        for budget in np.geomspace(0.1, 200, 60)
    ]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known)
    assert len(known) > 3


@pytest.mark.parametrize("seed", range(8))
def test_what_does_not_fit_or_has_no_price_is_never_recommended(seed: int) -> None:
    offers = some_offers(seed)
    for limits in (TrainingLimits(), TrainingLimits(budget=5.0), TrainingLimits(deadline_s=3600.0)):
        for rank in RANKS:
            choice = choose(offers, limits, rank)
            for offer in (choice.best, choice.runner_up):
                if offer is not None:
                    assert offer.fits == "yes"
                    assert limits.holds(offer)
                    assert offer.cost is not None or (rank != "cost" and limits.budget is None)


@pytest.mark.parametrize("seed", range(4))
def test_order_does_not_depend_on_the_order_of_offers(seed: int) -> None:
    offers = some_offers(seed)
    mixed = [offers[i] for i in np.random.default_rng(seed).permutation(len(offers))]
    for rank in RANKS:
        assert ranked(offers, rank) == ranked(mixed, rank)
    assert pareto(offers) == pareto(mixed)


def test_the_front_is_what_nothing_beats() -> None:
    offers = [made_up("a", 10, 1), made_up("b", 5, 2), made_up("c", 6, 3), made_up("d", 1, 9)]
    assert [offer.name for offer in pareto([*offers, made_up("e", 0.1, None)])] == ["a", "b", "d"]


def test_a_deadline_chooses_the_cheapest_in_time() -> None:
    offers = [made_up("slow", 10, 1), made_up("middle", 5, 2), made_up("fast", 1, 9)]
    choice = choose(offers, TrainingLimits(deadline_s=6 * 3600))
    assert choice.best is offers[1]
    assert choice.runner_up is offers[2]
    assert "the cheapest within 6 h" in said_by(choice)
    assert "costs 4.5 times as much and takes 80 % less time" in said_by(choice)
    late = choose(offers, TrainingLimits(deadline_s=1800))
    assert late.best is None
    assert said_by(late).startswith("No setting does it within 30 min; the fastest is fast")
    with pytest.raises(ConfigError, match="--deadline"):
        TrainingLimits(deadline_s=0)
    with pytest.raises(ConfigError, match="--budget"):
        TrainingLimits(budget=-1)


def test_a_budget_alone_chooses_the_fastest_within_it() -> None:
    offers = [made_up("slow", 10, 1), made_up("middle", 5, 2), made_up("fast", 1, 9)]
    assert choose(offers, TrainingLimits(budget=8)).best is offers[1]
    assert choose(offers, TrainingLimits(budget=100)).best is offers[2]
    assert choose(offers, TrainingLimits(budget=100, deadline_s=8 * 3600)).best is offers[1]
    assert choose(offers, TrainingLimits(budget=0.5)).best is None


def test_nothing_is_recommended_without_prices_or_memory() -> None:
    assert "no offer has a price" in said_by(choose([made_up("a", 1, None)], TrainingLimits()))
    assert choose([made_up("a", 1, None)], TrainingLimits(), "time").best is not None
    assert "nothing fits in memory" in said_by(choose([made_up("a", 1, 1, "no")], TrainingLimits()))


def test_of_ways_that_take_as_long_the_better_known_one_is_taken() -> None:
    """3 % faster with an error of tenfold is no reason; 50 % faster is."""
    known = StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.8, high_factor=1.25)
    loose = replace(known, low_factor=0.1, high_factor=10.0)
    sure = replace(made_up("a", 1.03, 1.03), answer=answered(known))
    quick = replace(made_up("a", 1.0, 1.0), answer=answered(loose))
    assert best_by_place([quick, sure]) == [sure]
    slow = replace(made_up("a", 1.5, 1.5), answer=answered(known))
    assert best_by_place([quick, slow]) == [quick]
    said = said_by(choose([quick], TrainingLimits()))
    assert "A guess, as such jobs are this far off; a few runs of yours narrow it" in said
    assert "A guess" not in said_by(choose([sure], TrainingLimits()))
    assert "A guess: no published run" in said_by(choose([made_up("a", 1, 1)], TrainingLimits()))


def test_an_interval_beyond_the_limits_is_said() -> None:
    known = StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.5, high_factor=2.0)
    offer = replace(made_up("a", 1, 1), answer=answered(known))
    said = said_by(choose([offer], TrainingLimits(budget=1.5, deadline_s=5400.0)))
    assert "1 h for $1.00 (30 min to 2 h, $0.50 to $2.00)" in said
    assert "beyond the budget ($2.00) and the deadline (2 h)" in said


@pytest.mark.parametrize(
    ("price", "text"),
    [(0.0000671, "0.000067"), (0.218, "0.22"), (1, "1.00"), (12.345, "12.35"), (1234.5, "1,234")],
)
def test_no_price_is_nothing(price: float, text: str) -> None:
    assert price_text(price) == text


def test_with_a_budget_the_fastest_is_taken_however_well_it_is_known() -> None:
    """Else 15 dollars would buy `k` for 10, and 25 dollars `n` for 5."""

    def known(name: str, hours: float, cost: float, span: float) -> Offer:
        error = StatedError(
            runs=Remark.of_text("x"), num_runs=9, low_factor=1 / span, high_factor=span
        )
        return replace(made_up(name, hours, cost), answer=answered(error))

    offers = [
        known("f", 100, 20, 9), known("n", 104, 5, 3),
        known("m", 103, 14, 9), known("k", 107, 10, 1.1),
    ]  # fmt: skip
    bought = [choose(offers, TrainingLimits(budget=budget)).best for budget in (7.0, 15.0, 25.0)]
    assert [one.name for one in bought if one is not None] == ["n", "m", "f"]


def test_only_the_first_of_all_ways_is_called_the_first() -> None:
    """Of two ways on the same machines the better known one is taken, and is not the fastest."""
    fast = made_up("a", 1, 1)
    wide = replace(
        fast,
        answer=answered(
            StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.1, high_factor=10.0)
        ),
    )
    narrow = replace(
        made_up("a", 1.01, 1.01),
        answer=answered(
            StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.9, high_factor=1.1)
        ),
    )
    for rank in ("time", "cost"):
        choice = choose([wide, narrow], TrainingLimits(), rank)
        assert choice.best is narrow
        assert "almost the " in said_by(choice)
        assert "almost" not in said_by(choose([narrow], TrainingLimits(), rank))


@pytest.mark.parametrize("seed", range(20))
def test_limits_are_kept_where_any_way_to_use_the_machines_keeps_them(seed: int) -> None:
    """By the row of the machines, and by the recommendation, whatever the order."""
    offers = some_offers(seed)
    middle = sorted(offer.training_s for offer in offers)[len(offers) // 4]
    for limits in (
        TrainingLimits(deadline_s=middle),
        TrainingLimits(budget=7.0),
        TrainingLimits(budget=7.0, deadline_s=middle),
    ):
        keeping = [one for one in offers if one.may_be_recommended and limits.holds(one)]
        for rank in RANKS:
            rows = best_by_place(offers, rank, limits)
            kept = {row.name for row in rows if row.may_be_recommended and limits.holds(row)}
            assert kept == {one.name for one in keeping}
            best = choose(offers, limits, rank).best
            priced = [one for one in keeping if one.cost is not None]
            pool = priced if rank == "cost" or limits.budget is not None else keeping
            assert (best is not None) == bool(pool)
            assert best is None or limits.holds(best)


def test_an_offer_that_is_much_faster_for_hardly_more_is_said() -> None:
    """1 % more money for 40 % less time: the first by cost is taken, and the other one named."""
    cheap, fast = made_up("cheap", 10, 100), made_up("fast", 6, 101)
    choice = choose([cheap, fast, made_up("slow", 30, 150)], TrainingLimits())
    assert choice.best is cheap and choice.runner_up is fast and choice.why is not None
    bargain = choice.why.values["bargain"]
    assert isinstance(bargain, Remark) and bargain.values["offer"] == "fast"
    assert bargain.values["time_ratio"] == pytest.approx(0.6)
    assert "the cheapest. fast takes 40 % less time and costs 1 % more. " in said_by(choice)
    assert said_by(choice).count("40 % less time") == 1
    by_time = choose([made_up("quick", 9.9, 200), cheap], TrainingLimits(), "time")
    assert "the fastest. cheap costs 50 % less and takes 1 % longer. " in said_by(by_time)


@pytest.mark.parametrize(
    "other", [made_up("a", 9, 101), made_up("b", 6, 120), made_up("c", 5, 101, fits="no")]
)
def test_an_offer_that_is_little_faster_or_much_dearer_is_no_bargain(other: Offer) -> None:
    choice = choose([made_up("cheap", 10, 100), other], TrainingLimits())
    assert choice.why is not None and choice.why.values["bargain"] is None
