"""What a recommendation states, and from which ratio on: every value by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from driple.answers.error_statement import StatedError
from driple.answers.method_answer import MethodAnswer
from driple.cluster.setting import Setting
from driple.estimate import LEVEL, estimate
from driple.memory.largest import LargestBatches
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.planning.offers import Offer
from driple.planning.places import Candidate, place_of_setting
from driple.planning.ranking import (
    TrainingLimits,
    best_by_place,
    choose,
    pareto,
    ranked,
    spent,
)
from driple.planning.variants import Variant
from driple.remarks import Remark, RemarkValue
from tests.planning.offers import made_up

HOUR_S = 3600.0
SETTING = Setting.parse("1xH100")


def within(
    offer: Offer, low: float, high: float, by_network: tuple[float, float] | None = None
) -> Offer:
    """The offer with an interval of these factors, which no published run states."""
    time = estimate(1.0, "simulator", ends=(low, high), level=LEVEL)
    answer = MethodAnswer(setting=SETTING, step_time=time, by_network=by_network)
    return replace(offer, answer=answer)


def needing(offer: Offer, value: float, upper: float | None, room: float = 10e9) -> Offer:
    """The offer whose devices need these bytes of 10 GB."""
    memory = MemoryEstimate(
        allocated=Bytes(value=value, upper=upper), fits="yes", capacity_bytes=room
    )
    return replace(offer, memory=memory)


def on(name: str, setting: str, variant: Variant) -> Offer:
    """An hour for a dollar on a setting, trained in some way."""
    place = place_of_setting(Setting.parse(setting))
    return replace(
        made_up(name, 1, 1),
        devices=place.num_devices,
        candidate=Candidate(place=place, setting=place.setting, variant=variant),
    )


def values_of(
    choice_of: list[Offer], limits: TrainingLimits, rank: str = "cost"
) -> dict[str, RemarkValue]:
    """What is stated of the recommendation."""
    choice = choose(choice_of, limits, rank)  # type: ignore[arg-type]
    assert choice.why is not None
    assert choice.why.code == "recommended"
    return dict(choice.why.values)


NONE = TrainingLimits()


@pytest.mark.parametrize(
    ("budget", "deadline_h", "cost", "kept"),
    [
        (None, None, 1.0, None),
        (None, None, None, None),
        (4.0, None, 4.0, True),
        (4.0, None, 4.1, False),
        (4.0, None, None, None),
        (None, 2.0, 9.0, True),
        (None, 1.9, 9.0, False),
        (None, 2.0, None, True),
        (None, 1.9, None, False),
        (4.0, 1.9, 1.0, False),
        (4.0, 2.0, 4.0, True),
        (4.0, 2.0, None, None),
    ],
)
def test_whether_two_hours_keep_the_limits(
    budget: float | None, deadline_h: float | None, cost: float | None, kept: bool | None
) -> None:
    """Exactly the limit is within it; a budget says nothing of what has no price."""
    deadline_s = None if deadline_h is None else deadline_h * HOUR_S
    limits = TrainingLimits(budget=budget, deadline_s=deadline_s)
    offer = made_up("a", 2.0, cost)
    assert limits.kept_by(offer) is kept
    assert limits.holds(offer) is (kept is True or not limits.are_given)
    assert limits.are_given is (budget is not None or deadline_s is not None)


def test_limits_are_kept_as_fractions() -> None:
    limits = TrainingLimits(budget=2, deadline_s=3)
    assert (repr(limits.budget), repr(limits.deadline_s)) == ("2.0", "3.0")


@pytest.mark.parametrize("rank", ["cost", "time", "memory"])
def test_equal_offers_have_one_order(rank: str) -> None:
    """By devices, name, checkpointing, precision and batch, which is compared as a number."""
    small = Variant(batch_size=9, precision="fp32")
    offers = [
        on("b", "1xH100", small),
        on("c", "1xH100", small),
        on("c", "1xH100", replace(small, batch_size=10)),
        on("c", "1xH100", replace(small, precision="tf32")),
        on("c", "1xH100", replace(small, activation_checkpointing="selective", precision="amp")),
        on("a", "2xH100/NVLink", small),
    ]
    full = on("c", "1xH100", replace(small, activation_checkpointing="full"))
    expected = [offers[0], full, *offers[1:]]
    assert ranked(expected[::-1], rank) == expected  # type: ignore[arg-type]
    assert ranked([*expected[3:], *expected[:3]], rank) == expected  # type: ignore[arg-type]


def test_what_offers_are_compared_by() -> None:
    """The first number decides, then the second; what is not known comes last."""
    dear, cheap, slow = made_up("dear", 1, 9), made_up("cheap", 2, 3), made_up("slow", 3, 3)
    no_price, other = made_up("no price", 1, None), made_up("other", 0.5, None)
    everything = [dear, cheap, slow, no_price, other]
    assert ranked(everything) == [cheap, slow, dear, other, no_price]
    assert ranked(everything, "time") == [other, dear, no_price, cheap, slow]
    light, heavy = needing(slow, 1e9, None), needing(dear, 2e9, None)
    unknown = replace(cheap, memory=None)
    quick = needing(dear, 1e9, None)
    assert ranked([unknown, heavy, light, quick], "memory") == [quick, light, heavy, unknown]


def test_equally_fast_offers_are_not_both_in_front() -> None:
    """Of two that take as long the dearer is beaten, of two that cost alike the slower."""
    a, b, c = made_up("a", 4, 2), made_up("b", 4, 4), made_up("c", 5, 2)
    for offers in permutations((a, b, c)):
        assert pareto(offers) == [a]


def test_what_fits_and_keeps_the_limits_stands_for_its_machines() -> None:
    """Before what is faster; where nothing fits or keeps them, the first by rank."""
    quick, slow = made_up("a", 1, 1, "likely not"), made_up("a", 5, 5)
    assert best_by_place([quick, slow]) == [slow]
    assert best_by_place([quick, replace(slow, memory=quick.memory)]) == [quick]
    cheap, dear = made_up("a", 5, 1), made_up("a", 1, 5)
    assert best_by_place([cheap, dear], limits=TrainingLimits(deadline_s=HOUR_S)) == [dear]
    assert best_by_place([cheap, dear], limits=TrainingLimits(deadline_s=60.0)) == [cheap]


@pytest.mark.parametrize(("hours", "sure_is_taken"), [(1.05, True), (1.06, False)])
def test_up_to_5_pct_of_time_are_given_for_memory_that_surely_suffices(
    hours: float, sure_is_taken: bool
) -> None:
    unsure = needing(made_up("a", 1, 1), 9e9, upper=11e9)
    sure = needing(made_up("a", hours, 1.5), 5e9, upper=10e9)
    assert not sure.may_not_fit and unsure.may_not_fit
    assert best_by_place([unsure, sure], "time") == [sure if sure_is_taken else unsure]


def test_by_memory_it_is_bytes_that_are_almost_the_same() -> None:
    """4 % more memory, thrice as long: surely fitting counts, and time does not."""
    unsure = needing(made_up("a", 1, 1), 1e9, upper=11e9)
    sure = needing(made_up("a", 3, 3), 1.04e9, upper=2e9)
    assert best_by_place([unsure, sure], "memory") == [sure]
    assert best_by_place([unsure, sure], "time") == [unsure]


@pytest.mark.parametrize(("high", "is_reason"), [(2.0, True), (2.01, False)])
def test_an_interval_half_as_wide_is_a_reason(high: float, is_reason: bool) -> None:
    """Of 1 to 4 and 1 to 2; a measurement has none, and one of which nothing is known is widest."""
    wide = within(made_up("a", 1, 1), 1.0, 4.0)
    narrow = within(made_up("b", 1.04, 1.04), 1.0, high)
    best = choose([wide, narrow], NONE).best
    assert best is (narrow if is_reason else wide)
    measured = replace(made_up("c", 1.05, 1.05), provenance="measured", answer=None)
    assert choose([wide, measured], NONE).best is measured
    assert choose([within(made_up("a", 1, 1), 1.0, 2.0), measured], NONE).best is measured
    unknown = [made_up("d", 1, 1), made_up("e", 1.01, 1.01)]
    assert choose(unknown, NONE).best is unknown[0]
    assert choose([unknown[0], replace(narrow, name="e")], NONE).best is not unknown[0]


def test_the_narrower_of_an_interval_and_its_runs_counts() -> None:
    """A slower host widens an answer of which the runs of such jobs are well known."""
    known = StatedError(
        runs=Remark.of_text("x"), num_runs=9, median_pct=5.0, low_factor=0.9, high_factor=1.8
    )
    by_runs = within(made_up("a", 1.04, 1.04), 0.5, 10.0)
    assert by_runs.answer is not None
    by_runs = replace(by_runs, answer=replace(by_runs.answer, stated=known))  # 1.8 / 0.9 = 2
    wide = within(made_up("b", 1, 1), 1.0, 4.0)
    assert choose([wide, by_runs], NONE).best is by_runs
    assert choose([replace(wide, answer=None), by_runs], NONE).best is by_runs


def test_of_much_narrower_intervals_the_narrowest_is_taken() -> None:
    wide = within(made_up("a", 1, 1), 0.1, 10.0)
    some = [within(made_up(name, 1.01, 1.01), 1.0, high) for name, high in (("b", 3), ("c", 2))]
    assert choose([wide, *some], NONE).best is some[1]


def test_what_is_stated_of_the_first_and_the_second() -> None:
    """6 h for $12 and 3 h for $30: half of the time, 2.5 times the cost."""
    best, second, fastest = made_up("a", 6, 12), made_up("b", 3, 30), made_up("c", 1, 90)
    values = values_of([best, second, fastest], NONE)
    assert values["offer"] == spent(best)
    assert values["rank"] == "cost" and values["is_first"] is True
    assert values["runner_up"] == spent(second)
    assert values["time_ratio"] == pytest.approx(0.5)
    assert values["cost_ratio"] == pytest.approx(2.5)
    assert values["other"] == spent(fastest)
    assert values["bargain"] is None and values["bargain_is_runner_up"] is False
    assert values["is_rented"] is False
    by_time = values_of([best, second, fastest], NONE, "time")
    assert by_time["offer"] == spent(fastest)
    assert by_time["runner_up"] == spent(second)
    assert by_time["other"] == spent(best)
    assert by_time["time_ratio"] == pytest.approx(3.0)
    assert by_time["cost_ratio"] == pytest.approx(1 / 3)
    alone = values_of([best], NONE)
    assert [alone[name] for name in ("runner_up", "time_ratio", "cost_ratio", "other")] == [
        None
    ] * 4


def test_the_other_end_is_named_once() -> None:
    """Not where it is the runner-up, which is named anyway, nor where there is no price."""
    best, second = made_up("a", 6, 12), made_up("b", 3, 30)
    assert values_of([best, second], NONE)["other"] is None
    priced, no_price = made_up("a", 6, 12), made_up("c", 1, None)
    assert values_of([priced, no_price], NONE, "time")["cost_ratio"] is None
    assert values_of([priced, no_price, made_up("b", 3, 30)], NONE, "time")["other"] is None
    slower = made_up("d", 9, None)
    values = values_of([priced, slower], NONE, "time")
    assert values["time_ratio"] == pytest.approx(1.5) and values["cost_ratio"] is None
    assert values["runner_up"] == spent(slower)


@pytest.mark.parametrize(
    ("budget", "deadline_h", "over_budget", "over_deadline"),
    [
        (None, None, False, False),
        (8.0, 4.0, False, False),
        (7.9, 4.0, True, False),
        (8.0, 3.9, False, True),
        (None, 3.9, False, True),
        (7.9, None, True, False),
    ],
)
def test_the_upper_end_of_time_and_cost_is_held_against_the_limits(
    budget: float | None, deadline_h: float | None, over_budget: bool, over_deadline: bool
) -> None:
    """2 h for $4, or up to twice that; just the limit is within it."""
    deadline_s = None if deadline_h is None else deadline_h * HOUR_S
    offer = within(made_up("a", 2, 4), 0.5, 2.0)
    values = values_of([offer], TrainingLimits(budget=budget, deadline_s=deadline_s))
    assert (values["over_budget"], values["over_deadline"]) == (over_budget, over_deadline)
    assert values["over_cost"] == pytest.approx(8.0)
    assert values["over_s"] == pytest.approx(4 * HOUR_S)
    assert (values["budget"], values["deadline_s"]) == (budget, deadline_s)


def test_no_upper_end_is_no_number() -> None:
    """Of an error that is not known, it is not said to pass the limits."""
    unknown = values_of([made_up("a", 2, 4)], TrainingLimits(budget=5.0, deadline_s=9e9))
    assert unknown["over_cost"] is None and unknown["over_s"] is None
    assert unknown["over_budget"] is False and unknown["over_deadline"] is False
    open_ended = values_of(
        [within(made_up("a", 2, 4), 0.5, float("inf"))], TrainingLimits(budget=5)
    )
    assert open_ended["over_cost"] is None and open_ended["over_budget"] is True
    no_price = within(made_up("a", 2, None), 0.5, 2.0)
    assert values_of([no_price], NONE, "time")["over_cost"] is None


@pytest.mark.parametrize(
    ("offer", "guess"),
    [
        (made_up("a", 1, 1), "no_run"),
        (replace(made_up("a", 1, 1), provenance="measured"), None),
        (within(made_up("a", 1, 1), 0.5, 3.0), None),
        (within(made_up("a", 1, 1), 0.5, 3.01), "errors"),
        (within(made_up("a", 1, 1), 0.5, 3.01, by_network=(0.5, 3.01)), "errors"),
    ],
)
def test_why_a_recommendation_is_a_guess(offer: Offer, guess: str | None) -> None:
    """From a ratio of more than 6 on; measurements are none."""
    assert values_of([offer], NONE)["guess"] == guess


@pytest.mark.parametrize(("by_network", "guess"), [(None, "slow_host"), ((0.5, 9.0), "network")])
def test_a_guess_only_for_its_host_or_its_network(
    by_network: tuple[float, float] | None, guess: str
) -> None:
    """The errors of such runs alone are small."""
    known = StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.9, high_factor=1.1)
    offer = within(made_up("a", 1, 1), 0.5, 9.0, by_network)
    assert offer.answer is not None
    offer = replace(offer, answer=replace(offer.answer, stated=known))
    assert values_of([offer], NONE)["guess"] == guess


def test_what_is_stated_of_memory() -> None:
    """The upper end only where it is more than there is; sure batches where they are known."""
    unsure = needing(made_up("a", 1, 1), 9e9, upper=11e9)
    values = values_of([replace(unsure, largest=LargestBatches(expected=8, sure=6))], NONE)
    assert values["upper_bytes"] == pytest.approx(11e9) and values["sure_batch"] == 6
    sure = values_of([needing(made_up("a", 1, 1), 9e9, upper=10e9)], NONE)
    assert sure["upper_bytes"] is None and sure["sure_batch"] is None
    assert values["is_fit_unknown"] is False
    unknown = replace(made_up("a", 1, 1), memory=None)
    assert values_of([unknown], NONE)["is_fit_unknown"] is True
    measured = replace(unknown, provenance="measured")
    assert values_of([measured], NONE)["is_fit_unknown"] is False


def test_a_surer_way_is_said_to_be_surer() -> None:
    """It is not the first: another way on the same machines is faster, and may not fit."""
    unsure = needing(made_up("a", 1, 1), 9e9, upper=11e9)
    sure = needing(made_up("a", 1.04, 1.04), 5e9, upper=6e9)
    values = values_of([unsure, sure], NONE)
    assert values["offer"] == spent(sure)
    assert values["is_surer"] is True and values["is_first"] is False
    assert values_of([unsure], NONE)["is_surer"] is False
    assert values_of([sure], NONE)["is_surer"] is False


@pytest.mark.parametrize(
    ("hours", "cost", "is_bargain"), [(8, 105, True), (8.1, 105, False), (8, 105.1, False)]
)
def test_a_fifth_of_the_time_for_a_twentieth_of_the_cost_is_a_bargain(
    hours: float, cost: float, is_bargain: bool
) -> None:
    best, second = made_up("best", 10, 100), made_up("other", hours, cost)
    values = values_of([best, second], NONE)
    assert (values["bargain"] is not None) is is_bargain
    assert values["bargain_is_runner_up"] is is_bargain
    by_time = values_of([made_up("best", 100, 10), made_up("other", cost, hours)], NONE, "time")
    assert (by_time["bargain"] is not None) is is_bargain
    assert values_of([best, second], NONE, "memory")["bargain"] is None


def test_the_largest_gain_is_the_bargain() -> None:
    """It need not be the runner-up, and must fit as surely as the first."""
    best = needing(made_up("best", 10, 100), 5e9, upper=6e9)
    near, far = made_up("near", 7, 101), made_up("far", 5, 104)
    values = values_of([best, near, far], NONE)
    bargain = values["bargain"]
    assert isinstance(bargain, Remark)
    assert bargain.code == "much_for_little"
    assert bargain.values["offer"] == "far" and bargain.values["rank"] == "cost"
    assert bargain.values["time_ratio"] == pytest.approx(0.5)
    assert bargain.values["cost_ratio"] == pytest.approx(1.04)
    assert values["bargain_is_runner_up"] is False
    unsure = needing(far, 9e9, upper=11e9)
    again = values_of([best, unsure], NONE)["bargain"]
    assert again is None
    both = values_of([needing(best, 9e9, upper=11e9), unsure], NONE)["bargain"]
    assert isinstance(both, Remark) and both.values["offer"] == "far"
    assert values_of([replace(best, price=None), far], NONE, "time")["bargain"] is None


def test_what_comes_nearest_where_nothing_keeps_the_limits() -> None:
    """The fastest of all ways, and the cheapest where that is another one with a price."""
    fast, middle, cheap = made_up("a", 1, 9), made_up("b", 2, 5), made_up("b", 3, 2)
    limits = TrainingLimits(budget=1.0, deadline_s=1800.0)
    why = choose([fast, middle, cheap], limits).why
    assert why is not None and why.code == "nothing_within_limits"
    assert why.values == {
        "budget": 1.0, "deadline_s": 1800.0, "fastest": spent(fast), "cheapest": spent(cheap),
    }  # fmt: skip
    same = choose([fast], limits).why
    assert same is not None and same.values["cheapest"] is None
    by_time = choose(
        [made_up("a", 1, None), made_up("b", 2, None)], TrainingLimits(deadline_s=9.0), "time"
    )
    assert by_time.why is not None
    assert by_time.why.values["fastest"] == spent(made_up("a", 1, None))
    assert by_time.why.values["cheapest"] is None
    unfit = made_up("a", 0.9, 0.9, "no")
    mixed = choose([unfit, made_up("z", 0.95, None), fast], TrainingLimits(budget=0.5)).why
    assert mixed is not None and mixed.values["fastest"] == spent(fast)


@pytest.mark.parametrize(("budget", "has_budget"), [(9.0, True), (None, False)])
def test_offers_without_prices_are_no_choice_by_cost(
    budget: float | None, has_budget: bool
) -> None:
    why = choose([made_up("a", 1, None)], TrainingLimits(budget=budget)).why
    assert why is not None and why.code == "no_offer_priced"
    assert why.values == {"has_budget": has_budget}


def test_time_and_cost_are_stated_with_their_factors() -> None:
    plain = spent(made_up("a", 2, 4))
    assert plain.code == "offer_spent"
    assert plain.values == {
        "offer": "a", "training_s": 2 * HOUR_S, "cost": 4.0, "low_factor": None,
        "high_factor": None,
    }  # fmt: skip
    ends = spent(within(made_up("a", 2, 4), 0.5, 3.0)).values
    assert (ends["low_factor"], ends["high_factor"]) == (0.5, 3.0)
    open_ended = spent(within(made_up("a", 2, 4), 0.5, float("inf"))).values
    assert (open_ended["low_factor"], open_ended["high_factor"]) == (0.5, None)
