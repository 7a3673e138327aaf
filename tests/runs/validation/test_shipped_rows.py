"""The shipped rows have their own steps: those of their device, passes and recomputation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from driple.runs.published_runs import TRAINING_FILE, as_asked, library_of, read_published
from driple.runs.validation.shipped import Shipped, read_shipped
from driple.runs.validation.simulated import simulate_rows
from driple.simulate.calibration import shipped_calibration

PUBLISHED = Path(__file__).parents[3] / "datasets" / "runs" / "published"
LEAST_SHARE = 0.6


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    rows = read_shipped(PUBLISHED, forward=False)
    assert rows is not None
    return rows


def test_most_rows_of_every_source_are_used(shipped: Shipped) -> None:
    """A key of steps that leaves out passes, recomputation or device loses whole sources."""
    usable = as_asked(read_published(PUBLISHED / TRAINING_FILE, usable_only=True))
    every = Counter(row.source for row in usable)
    used = Counter(row.source for row in shipped.rows)
    few = [name for name, count in every.items() if used[name] < LEAST_SHARE * count]
    assert few == ["NeuSight labels"]  # most of its batches are of one example
    assert len(shipped.rows) > 4_900


def test_recomputation_and_passes_are_in_the_step(shipped: Shipped) -> None:
    """Recomputing takes a fourth to a half longer; each pass runs the ops once more."""
    pairs = [
        (row, without)
        for row in shipped.rows
        if row.activation_checkpointing == "full"
        and not shipped.steps.lacks(without := replace(row, activation_checkpointing="none"))
    ]
    row, without = pairs[0]
    seconds = simulate_rows(
        [replace(one, setting=f"1x{one.device}") for one in (row, without)],
        shipped.steps,
        shipped_calibration(),
    )
    assert 1.15 < seconds[0] / seconds[1] < 1.6
    many = next(row for row in shipped.rows if row.grad_accumulation > 1)
    job = shipped.steps.prepared(many)
    assert {0, many.grad_accumulation} >= set(job.executions.tolist()) - {
        many.grad_accumulation - 1  # what adds to gradients that are there already
    }


def test_a_device_without_flash_attention_has_its_own_step(shipped: Shipped) -> None:
    bert = next(row for row in shipped.rows if row.job == "own:bert-base-pretrain")
    old, new = replace(bert, setting="1xV100-SXM2"), replace(bert, setting="1xA100")
    assert old.step_key != new.step_key
    assert not shipped.steps.lacks(old)
    assert shipped.steps.lacks(new)  # no such row was published


def test_rows_of_pytorch_1_have_no_fused_attention(shipped: Shipped) -> None:
    """Those of timm; models that brought a kernel of another library keep it."""
    old = [row for row in shipped.rows if row.library == "torch1"]
    deit = next(row for row in old if row.job == "timm:deit_small_patch16_224")
    mpt = next(row for row in old if row.job.startswith("own:mpt"))
    for row, fused in ((deit, False), (replace(deit, library="torch2"), True), (mpt, True)):
        kinds = set(shipped.steps.prepared(row).graph.kinds)
        assert ("attention_gradient" in kinds, "softmax" in kinds) == (fused, not fused)
    assert deit.step_key != replace(deit, library="torch2").step_key


def test_models_of_no_language_are_not_among_those_of_language(shipped: Shipped) -> None:
    """Tables of transformers must hold transformers; look at a new family."""
    language = {row.family for row in shipped.rows if row.domain == "language"}
    assert language == {
        "bart", "bert", "gnmt", "gpt", "gpt-oss", "internlm", "llama", "mistral", "mixtral", "mpt",
        "opt", "qwen", "santacoder", "transformer-mt", "transformerxl",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("torch1.13", "torch1"), ("torch2.1", "torch2.1"), ("torch2.2", "torch2.7"),
        ("torch2.7", "torch2.7"), ("torch2.8", "torch2"), ("torch2.10", "torch2"),
        ("ngc22.09", "torch1"), ("ngc23.09", "torch2.1"),
        ("ngc23.10", "torch2.7"), ("ngc25.03", "torch2.7"), ("ngc25.06", "torch2"),
        ("ngc", "torch1"), ("mxnet1.6", ""),
    ],
)  # fmt: skip
def test_the_generation_of_a_library_follows_from_its_version(name: str, library: str) -> None:
    assert library_of(name) == library
