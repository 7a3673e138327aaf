"""How results and messages are shown."""

from __future__ import annotations

import pytest

from driple.render.show import note_unknown_costs


def test_ops_without_a_formula_and_ops_without_shapes_are_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_unknown_costs({"Fancy": 1, "MatMul": 3}, {"Fancy"})
    assert capsys.readouterr().err.splitlines() == [
        "driple: ops without a formula, counted without FLOPs: Fancy (1)",
        "driple: ops whose shapes are unknown, counted without FLOPs: MatMul (3)",
    ]


def test_nothing_is_said_where_all_costs_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    note_unknown_costs({}, ())
    assert not capsys.readouterr().err
