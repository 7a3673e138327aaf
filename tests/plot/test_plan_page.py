"""One page with the recommendation, the picture and all offers."""

from __future__ import annotations

import datetime
from pathlib import Path

from driple import JobOptions, plan
from driple.plot.plan_page import page_text, write_page


def test_the_page_is_whole_and_asks_no_network(tmp_path: Path) -> None:
    result = plan(
        "mobilenet_v2",
        options=JobOptions(batch_size=64),
        instances=["p3", "g5"],
        day=datetime.date(2026, 11, 1),
    )
    path = tmp_path / "p.html"
    write_page(result, path)
    text = path.read_text(encoding="utf-8")
    assert text == page_text(result)
    assert "<svg" in text
    assert "<script" not in text
    assert 'src="http' not in text
    for offer in result.offers:
        assert offer.name in text
