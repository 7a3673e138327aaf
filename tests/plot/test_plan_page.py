"""The page of a plan has every offer, and nothing that it would have to fetch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.api.planning import PlanResult
from driple.planning.ranking import Choice
from driple.plot.plan_page import page_text
from driple.remarks import Remark
from tests.api.test_plan_outputs import result  # noqa: F401  # a fixture
from tests.plot.pages import check_page


@pytest.fixture
def plan(result: PlanResult) -> PlanResult:  # noqa: F811
    return result


def test_the_page_holds_all_that_it_shows(plan: PlanResult) -> None:
    text = page_text(plan)
    check_page(text)
    assert text.count("<tr") == 1 + len(plan.offers)
    assert "<svg" in text
    assert "recommended" in text
    assert "What would help most" in text
    assert page_text(plan) == text


def test_what_a_user_names_cannot_break_the_page(plan: PlanResult) -> None:
    odd = replace(plan, remarks=(Remark.of_text("<script>alert(1)</script>"),))
    check_page(page_text(odd))


def test_without_offers_there_is_no_picture(plan: PlanResult) -> None:
    none = Choice(why=Remark.of_text("nothing fits"))
    text = page_text(replace(plan, offers=(), changes=(), choice=none))
    check_page(text)
    assert "<svg" not in text
    assert "nothing fits" in text
