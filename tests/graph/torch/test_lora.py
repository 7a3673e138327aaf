"""Adapters as they are typed."""

from __future__ import annotations

from typing import Any

import pytest

from driple.errors import ConfigError
from driple.graph.torch.lora import LoraAdapters


@pytest.mark.parametrize(
    "adapters",
    [
        LoraAdapters(),
        LoraAdapters(r=64, alpha=8.5, targets=("q_proj", "mlp.up"), dropout=0.05, dtype="bf16"),
        LoraAdapters(rest="bf16"),
    ],
)
def test_adapters_are_read_as_they_are_shown(adapters: LoraAdapters) -> None:
    assert LoraAdapters.read(str(adapters)) == adapters
    assert LoraAdapters.checked(adapters) is adapters
    assert LoraAdapters.checked(str(adapters)) == adapters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "KEY=VALUE pairs"),
        ("rank=8", "such as r=16"),
        ("r=8,r=9", "KEY=VALUE pairs"),
        ("r=x", "r of --lora must be a number, got 'x'"),
        ("r=0", "whole number from 1"),
        ("r=8,alpha=nan", "alpha of --lora must be a number above 0"),
        ("dropout=1", "from 0 to below 1"),
        ("targets=", "all-linear or names of layers"),
        ("targets=a++b", "all-linear or names of layers"),
        ("dtype=int8", "one of fp32, bf16, fp16"),
        ("rest=int8", "rest of --lora must be one of fp32, bf16, fp16"),
    ],
)
def test_what_is_no_adapter_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        LoraAdapters.read(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [3, None, {"r": 8}])
def test_other_values_from_python_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="KEY=VALUE pairs"):
        LoraAdapters.checked(value)
