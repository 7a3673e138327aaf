"""YAML of users: plain values, bounded, no aliases."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.plainyaml import MAX_DEPTH, MAX_YAML_BYTES, read_plain_yaml
from driple.planning.instances import read_instances


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: 2", r"f has an anchor or alias .* in line 1; write the values out"),
        ("a: 1\nb: *x", "in line 2"),
        ("a: &x [*x]", "anchor"),
        ("a: 2026-02-30", "cannot be read: day is out of range"),
        ("a: " + "9" * 5000, "4300 digits"),
        ("a: [", "is no YAML"),
        ("a: !!python/object:os.system x", "is no YAML"),
        ("a: \x00", "is no YAML"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested over"),
        ("[" * 100_000, "nested over"),
        ("- " * 50_000, "nested over"),
        ("#" * (MAX_YAML_BYTES + 1), "bytes"),
    ],
)
def test_what_is_not_plain_is_refused(text: str, words: str) -> None:
    """At once, in words of one line."""
    started = time.process_time()
    with pytest.raises(ConfigError, match=words) as refused:
        read_plain_yaml(text, "f")
    assert len(str(refused.value)) < 400
    assert time.process_time() - started < 5


def test_what_is_plain_is_read() -> None:
    """Up to the deepest."""
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_plain_yaml(deepest, "f") is not None
    assert read_plain_yaml("a: [1, {b: 2.5}]", "f") == {"a": [1, {"b": 2.5}]}


BOX = "instances:\n- {name: b, device: V100, devices: 2, interconnect: PCIe, %s}"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("prices: 3", "prices of .* must be a list"),
        ("prices: [3]", "a price of .* has no per_hour"),
        ("prices: [{per_hour: 1, date: 2026-01-02 10:00:00}]", "must be a day such as 2026-08-26"),
        ("prices: [{per_hour: 1, date: 3}]", "must be a day such as 2026-08-26"),
        ("prices: [{per_hour: .nan}]", "per_hour"),
        ("price_per_hour: .inf", "price_per_hour"),
        ("network_is_burst: 3", "network_is_burst"),
        ("interconnect: 10", "interconnect of .* must be a text"),
        ("interconnect: [a]", "interconnect of .* must be a text"),
        ("device: {a: 1}", "device of .* must be a text"),
        ("devices: 1000000000", "devices of"),
        ("devices: 2.5", "devices of"),
        ("memory_gb: x", "memory_gb of"),
        ("1: 2", "unknown field 1"),
    ],
)
def test_values_of_other_types_are_refused(tmp_path: Path, field: str, words: str) -> None:
    """The line names file and instance."""
    file = tmp_path / "own.yaml"
    file.write_text(BOX % field)
    with pytest.raises(ConfigError, match=words) as refused:
        read_instances([file])
    assert "own.yaml" in str(refused.value)


@pytest.mark.parametrize("head", ["sources: [1]", "sources: 3", "format: [1]", "format: 2"])
def test_odd_heads_are_refused(tmp_path: Path, head: str) -> None:
    """Sources are texts by name, and the format is one."""
    file = tmp_path / "own.yaml"
    file.write_text(f"{head}\n{BOX % 'vcpus: 1'}")
    with pytest.raises(ConfigError, match=r"own\.yaml"):
        read_instances([file])
