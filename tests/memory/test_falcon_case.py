"""Falcon-7B with ZeRO-2 in bfloat16 on eight A100 of 40 GB: published to run out of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.jobs.load import JobOptions, load_job
from driple.memory.estimate import memory_of

FALCON = Path(__file__).parents[1] / "data/training_configs/falcon"


@pytest.mark.slow
def test_falcon_with_zero2_fills_a_device_of_40_gb() -> None:
    """Bfloat16 weights, gradients in DeepSpeed's buffer, and shards of fp32 masters and states."""
    pytest.importorskip("transformers")
    options = JobOptions(
        batch_size=1, seq_len=4096, activation_checkpointing="full", optimizer="adamw",
        precision="bf16-mixed",
    )  # fmt: skip
    job = load_job(f"hf:{FALCON}", options, setting="8xA100@zero2")
    estimate = memory_of(job, Setting.parse("8xA100@zero2"))
    assert estimate.device_total is not None
    assert estimate.usable_bytes is not None
    assert estimate.device_total.value > 0.99 * estimate.usable_bytes
    elements = int(job.graph.parameters.elements.sum())
    assert estimate.parts["parameters"] == pytest.approx(2 * elements, rel=0.01)
    assert estimate.parts["optimizer"] == pytest.approx(12 * elements / 8, rel=0.01)
    assert estimate.parts["communication"] == pytest.approx(2 * 500_000_000, rel=0.01)
