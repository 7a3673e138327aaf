"""Graphs that were built for another kind of cluster say so; those that fit say nothing."""

from __future__ import annotations

import pytest

from driple.graph.opgraph import LAYOUTS, Layout
from driple.remarks import remark
from driple.schemes.layouts import Layouts


@pytest.mark.parametrize(
    ("layout", "servers", "without", "alone"),
    [
        ("servers", False, True, True),
        ("unplaced", True, True, False),
        ("one_machine", True, True, False),
        ("all_reduce", True, False, True),
        ("one_device", True, False, False),
    ],
)
def test_what_is_assumed_of_each_layout(
    layout: Layout, servers: bool, without: bool, alone: bool
) -> None:
    def built(exchange: str, is_assumed: bool) -> object:
        if not is_assumed:
            return None
        return remark("built_for_other_cluster", layout=layout, exchange=exchange)

    assert Layouts.on_servers(layout) == built("servers", servers)
    assert Layouts.without_servers(layout, "ring") == built("ring", without)
    assert Layouts.alone(layout) == built("alone", alone)


def test_all_layouts_are_looked_at() -> None:
    assert set(LAYOUTS) == {"servers", "unplaced", "one_machine", "all_reduce", "one_device"}
