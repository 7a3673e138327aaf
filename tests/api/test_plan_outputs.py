"""Everything that a plan can be written as: CSV and picture."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from driple.api.planning import PlanResult, plan
from driple.api.tables import csv_text
from driple.errors import ConfigError
from driple.jobs.load import JobOptions
from driple.plot.plans import plot_plan
from tests.planning.gpt import write_gpt


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> PlanResult:
    job = write_gpt(tmp_path_factory.mktemp("gpt"))
    return plan(
        job,
        options=JobOptions(seq_len=64, batch_size=8, precision="amp-bf16"),
        tokens=1e9,
        epochs=2,
        instances=["p4d", "g5.xlarge"],
        machines=[1, 2],
        schemes=["ddp"],
        would_help=True,
    )


def test_each_machine_and_each_epoch_is_paid(result: PlanResult) -> None:
    """Two p4d.24xlarge at 21.957642 an hour; two epochs of 1e9 tokens in samples of 64."""
    pair = next(offer for offer in result.offers if offer.name == "2xp4d.24xlarge")
    assert pair.per_hour == pytest.approx(2 * 21.957642)
    assert pair.samples == 2 * 15_625_000
    hours = pair.samples / (8 * 16) * pair.iteration_s / 3600
    assert pair.cost == pytest.approx(hours * 2 * 21.957642)


def test_csv_has_a_line_for_each_offer(result: PlanResult) -> None:
    rows = [*csv.DictReader(StringIO(csv_text(result)))]
    assert len(rows) == len(result.offers)
    first, offer = rows[0], result.offers[0]
    assert first["name"] == offer.name
    assert float(first["cost_usd"]) == pytest.approx(offer.cost)
    assert first["price_date"] == "2026-01-21" or first["price_date"] == "2026-08-26"
    assert {row["fits"] for row in rows} == {"yes"}
    ranks = sorted(int(row["rank_by_time"]) for row in rows)
    assert ranks == [*range(1, len(rows) + 1)]


def test_the_picture_is_drawn_with_and_without_prices(result: PlanResult, tmp_path: Path) -> None:
    plot_plan(result, tmp_path / "a.png")
    bare = replace(result, offers=tuple(replace(one, price=None) for one in result.offers))
    plot_plan(bare, tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert (tmp_path / "b.png").stat().st_size > 5_000
    with pytest.raises(ConfigError, match="nothing to draw"):
        plot_plan(replace(result, offers=()), tmp_path / "c.png")


def test_parts_of_a_step_add_up_and_changes_are_gains(result: PlanResult) -> None:
    for offer in result.offers:
        assert offer.parts is not None
        assert offer.parts.step_s == pytest.approx(offer.iteration_s)
        assert sum(pct for _, _, pct in offer.parts.rows()) == pytest.approx(100)
    assert 1 <= len(result.changes) <= 3
    ratios = [change.time_ratio for change in result.changes]
    assert ratios == sorted(ratios)
    assert ratios[-1] < 1
    assert all(change.cost_ratio is not None for change in result.changes)
