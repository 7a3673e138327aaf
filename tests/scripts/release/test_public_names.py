"""What the last release had under its public names is there, and takes what it took."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")  # signatures of all names are looked up

from scripts.release.public_names import RESULT, SCHEMA, lines_now, lost

BEFORE = RESULT.read_text(encoding="utf-8").splitlines()


def test_nothing_of_the_last_release_is_lost() -> None:
    """If it must go, docs/versions.md says how."""
    assert len(BEFORE) > 300
    assert lost(BEFORE, lines_now()) == []


def test_the_file_is_in_order_and_names_no_place_in_memory() -> None:
    assert sorted(BEFORE) == BEFORE
    assert not [line for line in BEFORE if " at 0x" in line]
    assert json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert [line for line in BEFORE if line.startswith("schema.json sha256 ")]


@pytest.mark.parametrize(
    ("now", "is_lost"),
    [
        ("d.f(a: 'int', *, b: 'X[int, str]' = 1) -> 'int'", False),
        ("d.f(a: 'int', *, b: 'X[int, str]' = 1, c: 'int' = 2) -> 'int'", False),
        ("d.f(a: 'int', *, b: 'X[int, str]' = 1, c: 'int') -> 'int'", True),
        ("d.f(a: 'int', *, b: 'X[int, str]') -> 'int'", True),
        ("d.f(*, a: 'int', b: 'X[int, str]' = 1) -> 'int'", True),
        ("d.f(a: 'int', *, b: 'X[int, str]' = 1) -> 'str'", True),
        ("d.g(a: 'int')", True),
    ],
)
def test_what_breaks_a_call(now: str, is_lost: bool) -> None:
    before = "d.f(a: 'int', *, b: 'X[int, str]' = 1) -> 'int'"
    assert lost([before, "schema.json sha256 1"], [now]) == ([before] if is_lost else [])


def test_a_name_without_parameters_stays_or_is_lost() -> None:
    assert lost(["d.C", "d.C.field"], ["d.C", "d.C.other"]) == ["d.C.field"]
