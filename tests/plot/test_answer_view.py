"""What pages show of an answer: joined lines, a row for each number with its method."""

from __future__ import annotations

import driple
from driple.api.predicting import predict
from driple.plot.answer_view import answer_view, memory_picture, module_rows


def test_lines_are_joined_and_numbers_have_their_source() -> None:
    (answer,) = predict("mobilenet_v2", "8xH100").answers
    view = answer_view(answer)
    labels = [label for label, _ in view["lines"]]
    assert labels[0] == "step"
    assert all(labels)
    rows = {name: (value, method, source) for name, value, method, source in view["numbers"]}
    assert rows["step time"][1:] == ("simulator", "simulated")
    assert "/" in rows["step time p10 / p50 / p90"][0]
    assert view["timeline"].startswith("<svg")


def test_modules_and_memory_of_a_job() -> None:
    inspected = driple.inspect("mobilenet_v2", "1xA100", memory=True)
    rows = module_rows(inspected)
    assert rows[0]["path"] == "features"
    assert sum(row["pct"] for row in rows) <= 100.5
    assert memory_picture(inspected).startswith("<svg")
    assert memory_picture(driple.inspect("mobilenet_v2", "1xA100")) == ""
