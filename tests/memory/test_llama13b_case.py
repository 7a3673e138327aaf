"""Llama of 13B on two groups of four A100 of 80 GB: published at 1,900 and 2,357 tokens/s a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driple.api.predicting import predict
from driple.jobs.load import JobOptions

_CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 5120,
    "intermediate_size": 13824, "num_hidden_layers": 40, "num_attention_heads": 40,
    "num_key_value_heads": 40, "vocab_size": 32000, "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}  # fmt: skip
_TOKENS = 2 * 16 * 2048 / 8  # of a device, in a step
_PARAMETERS = 13_015_864_320


@pytest.mark.slow
def test_tensor_parallel_training_has_memory_and_an_interval(tmp_path: Path) -> None:
    """It runs as published, within the interval; a device has a fourth of the states."""
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(_CONFIG))
    result: Any = predict(
        f"hf:{tmp_path}",
        "8xA100-80G@tp4",
        options=JobOptions(
            batch_size=1, seq_len=2048, precision="bf16", optimizer="adamw", grad_accumulation=16
        ),
    ).to_dict()
    answer = result["answers"][0]
    step, memory = answer["iteration_time_s"], answer["memory"]
    assert step is not None
    for published in (1900, 2357):
        assert step["interval"]["low"] < _TOKENS / published < step["interval"]["high"]
    assert memory is not None
    assert memory["known"]
    assert memory["fits"] == "yes"
    parts = memory["parts"]
    for kind, each in (("parameters", 2), ("gradients", 2), ("optimizer", 4)):
        assert parts[kind] == pytest.approx(each * _PARAMETERS / 4, rel=0.01)
    total = memory["device_total_bytes"]
    assert total["lower"] < total["value"] < total["upper"]
