"""What llm-analysis is asked, and which rows are refused; the package itself is not needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import device_named
from driple.runs.measured_run import MeasuredRun

pytest.importorskip("transformers")

from scripts.entries.llm_analysis import GPUS, model_facts, refusal

RUN = MeasuredRun(
    id="a", job="own:mpt-125m", setting="1xA100", batch_size=8, seq_len=128, precision="bf16",
    domain="language",
)  # fmt: skip


def test_models_are_described_as_their_configs_are() -> None:
    assert model_facts("own:mpt-125m") == {
        "num_layers": 12,
        "n_head": 12,
        "hidden_dim": 768,
        "vocab_size": 50368,
    }
    bert = model_facts("own:bert-large-squad")
    assert (bert["num_layers"], bert["hidden_dim"]) == (24, 1024)
    assert model_facts("own:transformer-big") == {}, "two stacks are none of its models"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"domain": "vision", "job": "timm:resnet50"}, "no transformer"),
        ({"job": "own:mistral-7b+qlora"}, "adapters"),
        ({"precision": "fp32"}, "single precision"),
        ({"setting": "1xB200"}, "no such GPU"),
        ({"job": "own:gnmt"}, "no transformer"),
        ({}, ""),
    ],
)
def test_rows_that_it_does_not_do_are_refused(change: dict[str, str], words: str) -> None:
    why = refusal(replace(RUN, **change))  # type: ignore[arg-type]  # fields by name
    assert (words in why) if words else why == ""


def test_devices_are_of_the_catalogue() -> None:
    assert all(device_named(name) for name in GPUS)
