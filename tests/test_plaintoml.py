"""TOML within bounds: what is too deep, too dotted or no TOML is one line."""

from __future__ import annotations

import datetime

import pytest

from driple.plaintoml import read_plain_toml


def test_values_come_as_toml_has_them() -> None:
    text = 'a.b = [1, 2.5]\nday = 2026-11-29\n[[rows]]\nname = "x"\n'
    assert read_plain_toml(text) == {
        "a": {"b": [1, 2.5]},
        "day": datetime.date(2026, 11, 29),
        "rows": [{"name": "x"}],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "Invalid value"),
        ("a = " + "9" * 5000, "limit"),
        ("a = " + "[" * 100_000, "nested too deep"),
        ("b = 1\n" + "a." * 101 + "a = 1", "over 100 dots in line 2; write it on several lines"),
        ("a = 1\na = 2", "overwrite"),
    ],
)
def test_what_is_wrong_is_one_short_line(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        read_plain_toml(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) <= 200


def test_a_line_may_have_as_many_dots_as_stated() -> None:
    assert read_plain_toml('a = "' + "." * 100 + '"') == {"a": "." * 100}
