"""Time against cost of the ways to train."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from driple import JobOptions, plan
from driple.api.plan_results import PlanResult
from driple.planning.ranking import best_by_place, pareto
from driple.plot.plans import plan_figure, plot_plan
from tests.plot.looks import drawn, faults_of, words_of


@pytest.fixture(scope="module")
def result() -> PlanResult:
    return plan(
        "mobilenet_v2",
        options=JobOptions(batch_size=64),
        instances=["p3", "g5", "p4d"],
        day=datetime.date(2026, 11, 1),
    )


def test_the_front_is_named_and_the_best_is_on_it(result: PlanResult, tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_plan(result, path), path)
    assert faults_of(figure) == []
    words = words_of(figure)
    offers = best_by_place(result.offers, result.rank, result.limits)
    front = pareto(
        [offer for offer in offers if offer.cost is not None and offer.may_be_recommended]
    )
    assert {offer.name for offer in front} <= set(words)
    assert "recommended" in words
    (axis,) = figure.axes
    assert "of the training" in axis.get_xlabel()
    assert axis.get_ylabel() == "cost of the training, $"


def test_without_prices_times_alone_are_bars(tmp_path: Path) -> None:
    settings = ["1xH100", "2xH100", "1xA100"]
    unpriced = plan("mobilenet_v2", options=JobOptions(batch_size=64), settings=settings)
    figure = plan_figure(unpriced)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    assert "no price is known" in axis.get_xlabel()
    lengths = [bar.get_width() for bar in axis.patches]
    assert lengths == sorted(lengths)
