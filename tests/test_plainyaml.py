"""YAML of users: plain values, bounded, no aliases."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError
from driple.plainyaml import MAX_DEPTH, MAX_YAML_BYTES, read_plain_yaml
from tests.work import num_calls


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: 2", r"f has an anchor or alias .* in line 1; write the values out"),
        ("a: 1\nb: *x", "in line 2"),
        ("a: &x [*x]", "anchor"),
        ("a: 2026-02-30", "cannot be read: day is out of range"),
        ("a: " + "9" * 5000, "4300 digits"),
        ("a: [", "is no YAML"),
        ("a: !!python/object:os.system x", "has the tag '.*os.system' in line 1; write the value"),
        ("a: !!bool x", "f has the tag 'tag:yaml.org,2002:bool' in line 1"),
        ("b: 1\na: !!timestamp x", "has the tag '.*timestamp' in line 2"),
        ("a: !!int ''", "has the tag"),
        ("!!map {a: 1}", "has the tag"),
        ("a: \x00", "is no YAML"),
        ("a: 1\nb: 2\na: 3", "f has the key 'a' twice in one mapping, in lines 1 and 3; keep one"),
        ("- {count: 4, count: 5}", "the key 'count' twice in one mapping, in lines 1 and 1"),
        ("a: [[{b: {c: 1, c: 1}}]]", "the key 'c' twice"),
        ("{4: a, 0x4: b}", "the key '0x4' twice"),
        ("<<: {a: 1}\n<<: {a: 2}", "the key '<<' twice"),
        ("? {a: 1, a: 2}\n: b", "the key 'a' twice"),
        ("? [1]\n: b", "is no YAML: .* unhashable key"),
        ("a: 1\n--- \nb: 2", "is no YAML"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested over"),
        ("[" * 100_000, "nested over"),
        ("- " * 50_000, "nested over"),
        ("#" * (MAX_YAML_BYTES + 1), "bytes"),
    ],
)
def test_what_is_not_plain_is_refused(text: str, words: str) -> None:
    """With little work, in words of one line."""

    def refused() -> None:
        with pytest.raises(ConfigError, match=words) as error:
            read_plain_yaml(text, "f")
        assert len(str(error.value)) < 400

    assert num_calls(refused) < 200_000


def test_what_is_plain_is_read() -> None:
    """Up to the deepest."""
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_plain_yaml(deepest, "f") is not None
    assert read_plain_yaml("a: [1, {b: 2.5}]", "f") == {"a": [1, {"b": 2.5}]}
    assert read_plain_yaml("[{a: 1}, {a: 2}]", "f") == [{"a": 1}, {"a": 2}]
    assert read_plain_yaml("4: a\n'4': b", "f") == {4: "a", "4": "b"}
    assert read_plain_yaml("", "f") is None
