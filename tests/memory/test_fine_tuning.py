"""Memory of fine-tuning beside published runs: LoRA, QLoRA, ZeRO with and without offload."""

from __future__ import annotations

from statistics import median

import pytest

pytest.importorskip("transformers")

from scripts.checks.fine_tuning_memory import PredictedRun, predicted_runs, published_runs


@pytest.fixture(scope="module")
def predicted() -> list[PredictedRun]:
    return list(predicted_runs(published_runs()))


def errors(runs: list[PredictedRun], *kinds: str) -> list[float]:
    """Errors of all rows of some kinds, doubtful ones too."""
    return [abs(one.error_pct) for one in runs if one.run.kind in kinds]


def test_rows_are_enough() -> None:
    runs = published_runs()
    assert sum(run.kind in ("lora", "qlora") for run in runs) >= 8
    zero = [run for run in runs if run.kind == "zero"]
    assert len(zero) >= 6
    assert sum(bool(run.offload) for run in zero) >= 3
    assert all(run.source and run.allocated_gib > 0 for run in runs)


def test_lora_with_and_without_fsdp() -> None:
    """Two rows of a 3B model, which is read once for each."""
    chosen = [run for run in published_runs() if run.kind == "lora" and run.model == "powerlm-3b"]
    runs = list(predicted_runs(chosen[:2]))
    assert {one.run.setting.scheme.name for one in runs} == {"ddp", "fsdp"}
    assert max(abs(one.error_pct) for one in runs) < 5


@pytest.mark.slow
def test_adapters_and_quantized_weights(predicted: list[PredictedRun]) -> None:
    """The error of LoRA and QLoRA: 10 % in the median, none over 25 %."""
    errors_pct = errors(predicted, "lora", "qlora")
    assert median(errors_pct) < 10
    assert max(errors_pct) < 25


@pytest.mark.slow
def test_full_fine_tuning(predicted: list[PredictedRun]) -> None:
    """With FSDP's fp32 shards, and without."""
    assert max(errors(predicted, "full")) < 5


@pytest.mark.slow
def test_zero(predicted: list[PredictedRun]) -> None:
    """At least six peaks of ZeRO-2 and ZeRO-3 within 15 %, three of them with offload."""
    near = [one for one in predicted if one.run.kind == "zero" and abs(one.error_pct) < 15]
    assert len(near) >= 6
    assert sum(bool(one.run.offload) for one in near) >= 3
