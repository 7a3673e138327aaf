"""Pictures of pages are SVG that an XML parser reads, and hold their numbers in the frame."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from driple.api.predicting import predict
from driple.plot.svg import lines_svg, memory_svg, plan_svg, step_svg


def circles(svg: str, kind: str) -> list[tuple[float, float]]:
    return [
        (float(one.attrib["cx"]), float(one.attrib["cy"]))
        for one in ET.fromstring(svg).iter("circle")  # noqa: S314  # our own text
        if one.attrib["class"] == kind
    ]


def test_lines_rise_to_the_right_on_an_axis_by_orders_of_magnitude() -> None:
    svg = lines_svg({"a & b": [(1, 10), (10, 20), (100, 40)]}, ("devices", "samples/s"), "rate")
    (first, second, third) = circles(svg, "kind-0")
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert first[1] - second[1] == pytest.approx((second[1] - third[1]) / 2, abs=0.2)
    assert "a &amp; b" in svg
    assert lines_svg({"": [(1, 1)]}, ("x", "y"), "z") == ""
    assert circles(lines_svg({"": [(0, 0), (1, 0)]}, ("x", "y"), "z"), "kind-0")


def test_the_front_is_drawn_last_and_numbered_by_row() -> None:
    numbers = [(10.0, 5.0), (20.0, 1.0), (30.0, 4.0), (5.0, None)]
    offers = [
        {
            "name": f"o{i}",
            "training_time_s": {"value": seconds},
            "cost": None if cost is None else {"value": cost},
        }
        for i, (seconds, cost) in enumerate(numbers)
    ]
    svg = plan_svg(offers, [0, 1])
    assert len(circles(svg, "offer")) == 1
    assert len(circles(svg, "on-front")) == 2
    assert svg.index('class="on-front" cx') > svg.index('class="offer" cx')
    labels = [one.text for one in ET.fromstring(svg).iter("text") if one.attrib["class"] == "label"]  # noqa: S314
    assert sorted(labels) == ["1", "2"]
    assert plan_svg(offers[3:], []) == ""


def test_step_and_memory_are_pictures() -> None:
    (answer,) = predict("mobilenet_v2", "8xH100").answers
    step = answer.step()
    assert step is not None
    svg = step_svg(step)
    ET.fromstring(svg)  # noqa: S314
    assert svg.count('class="burst"') >= 4
    curve = {"node": [0, 5, 9], "bytes": {"weights": [10**9] * 3, "none": [0, 0, 0]}}
    drawn = memory_svg(curve, 10, 1.2e9)
    ET.fromstring(drawn)  # noqa: S314
    assert "device 1.12 GiB" in drawn
    assert "none" not in drawn
