"""What `plan` answers: rows and JSON say the same of each offer, and of its intervals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.answers.error_statement import StatedError
from driple.api.plan_results import PlanResult
from driple.codec import Json
from driple.planning.offers import Offer
from driple.planning.places import Refused
from driple.planning.ranking import TrainingLimits, choose, ranked
from driple.remarks import Remark
from tests.planning.offers import answered, made_up

ERROR = StatedError(
    runs=Remark.of_text("x"), num_runs=9, median_pct=5.0, p90_pct=20.0, low_factor=0.5,
    high_factor=2.0,
)  # fmt: skip
SURE = replace(made_up("sure", 2, 4), answer=answered(ERROR))
MEASURED = replace(made_up("measured", 3, 3), provenance="measured", communication_pct=7.0)
FREE = made_up("free", 1, None)
LIMITS = TrainingLimits(deadline_s=2.5 * 3600)


def result(*offers: Offer, limits: TrainingLimits = LIMITS) -> PlanResult:
    some = ranked(offers, "cost")
    return PlanResult(
        job=None, offers=tuple(some), refused=(Refused(name="p9", reason="too small"),), tried=9,
        limits=limits, choice=choose(some, limits),
    )  # fmt: skip


def offers_of(result: PlanResult) -> dict[str, dict[str, Json]]:
    listed = result.to_dict()["offers"]
    assert isinstance(listed, list)
    return {str(one["name"]): one for one in listed}  # type: ignore[index,misc,call-overload]


ALL = result(FREE, SURE, MEASURED)


def test_offers_are_named_by_their_place_in_the_list() -> None:
    as_json = ALL.to_dict()
    names = list(offers_of(ALL))
    assert names == ["measured", "sure", "free"]
    assert as_json["recommended"] == names.index("sure")  # the cheapest within the deadline
    assert as_json["runner_up"] is None  # `free` has no price
    assert as_json["pareto"] == [names.index("measured"), names.index("sure")]
    assert as_json["refused"] == [{"name": "p9", "reason": "too small"}]
    assert (as_json["tried"], as_json["deadline_s"], as_json["budget"]) == (9, 9000.0, None)
    nothing = result(made_up("no", 1, 1, "no")).to_dict()
    assert nothing["recommended"] is None and nothing["runner_up"] is None


def test_times_and_costs_have_the_interval_of_the_step_and_rates_its_inverse() -> None:
    sure = offers_of(ALL)["sure"]
    for field, value, low, high in (
        ("training_time_s", 7200.0, 3600.0, 14400.0),
        ("cost", 4.0, 2.0, 8.0),
        ("iteration_time_s", 1.0, 0.5, 2.0),
        ("samples_per_s", 1.0, 0.5, 2.0),
    ):
        number = sure[field]
        assert isinstance(number, dict)
        assert number["value"] == pytest.approx(value)
        assert number["interval"] == {"low": pytest.approx(low), "high": pytest.approx(high),
                                      "level": 0.9}  # fmt: skip
        assert (number["method"], number["source"]) == ("simulator", "simulated")


def test_a_measured_offer_has_no_interval() -> None:
    offer = offers_of(ALL)["measured"]
    for field in ("training_time_s", "cost", "iteration_time_s", "samples_per_s",
                  "communication_pct"):  # fmt: skip
        number = offer[field]
        assert isinstance(number, dict)
        assert (number["interval"], number["method"], number["source"]) == (
            None, "measured", "measured")  # fmt: skip
    assert offer["source"] == "measured"
    shared = offers_of(result(replace(SURE, communication_pct=3.0)))["sure"]["communication_pct"]
    assert isinstance(shared, dict) and shared["method"] == "simulator"


def test_without_a_price_or_an_error_there_is_none() -> None:
    free = offers_of(ALL)["free"]
    assert free["cost"] is None and free["price_per_hour"] is None
    assert isinstance(free["training_time_s"], dict)
    assert free["training_time_s"]["interval"] is None
    assert free["stated_error"] is None and free["communication_pct"] is None


def test_limits_are_kept_or_not_or_unknown() -> None:
    assert {name: one["keeps_limits"] for name, one in offers_of(ALL).items()} == {
        "measured": False, "sure": True, "free": True}  # fmt: skip
    bought = result(FREE, SURE, MEASURED, limits=TrainingLimits(budget=3.5))
    assert {name: one["keeps_limits"] for name, one in offers_of(bought).items()} == {
        "measured": True, "sure": False, "free": None}  # fmt: skip
    free = result(FREE, SURE, limits=TrainingLimits())
    assert {one["keeps_limits"] for one in offers_of(free).values()} == {None}


def test_rows_say_the_same_as_the_json() -> None:
    rows = {str(row["name"]): row for row in ALL.rows()}
    listed = offers_of(ALL)
    assert list(rows) == list(listed)
    for name, row in rows.items():
        time, cost = listed[name]["training_time_s"], listed[name]["cost"]
        assert isinstance(time, dict)
        assert row["training_time_s"] == time["value"]
        assert row["cost_usd"] == (cost["value"] if isinstance(cost, dict) else None)
        interval = time["interval"]
        ends = (None, None) if not isinstance(interval, dict) else (
            interval["low"], interval["high"])  # fmt: skip
        assert (row["training_time_low_s"], row["training_time_high_s"]) == ends
        kept = listed[name]["keeps_limits"]
        assert row["keeps_limits"] == (None if kept is None else str(kept).lower())
    assert [row["rank_by_time"] for row in ALL.rows()] == [3, 2, 1]
    assert (rows["sure"]["error_median_pct"], rows["sure"]["error_p90_pct"]) == (5.0, 20.0)
    assert rows["sure"]["price_is_spot"] == "false" and rows["free"]["price_is_spot"] is None
    assert (rows["sure"]["memory_bytes"], rows["sure"]["fits"]) == (1e9, "yes")


def test_memory_is_what_is_known_of_it() -> None:
    memory = offers_of(ALL)["sure"]["memory"]
    assert isinstance(memory, dict)
    assert memory["fits"] == "yes"
    assert memory["largest"] is None and memory["device"] is None
    bare = offers_of(result(replace(SURE, memory=None)))["sure"]
    assert bare["memory"] is None and bare["largest_batch"] is None
