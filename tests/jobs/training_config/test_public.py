"""Configs of public repositories mean what their tools make of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from driple.graph.torch.lora import LoraAdapters
from driple.jobs.training_config import read_training_config

DATA = Path(__file__).parents[2] / "data/training_configs"
PUBLIC = DATA / "public"
# scheme, precision on several devices and on one, passes, checkpointing, optimizer, clipping,
# adapters with their base weights, and the fields whose meaning has no model here
EXPECTED: dict[str, dict[str, Any]] = {
    "accelerate_zero3.yaml": {
        "tool": "Accelerate", "scheme": "fsdp", "precision": "bf16-mixed",
        "bucket_elements": 500_000_000, "undecided": [],
    },
    "accelerate_fsdp2.yaml": {
        "tool": "Accelerate", "scheme": "fsdp", "precision": "bf16-mixed",
        "precision_alone": "amp-bf16", "activation_checkpointing": "none", "undecided": [],
    },
    "deepspeed_zero2.json": {
        "tool": "DeepSpeed", "scheme": "zero2", "precision": "fp16-mixed", "batch_size": 8,
        "grad_accumulation": 3, "clip_gradients": True, "bucket_elements": 7_000_000,
        "undecided": [
            "zero_optimization.allgather_bucket_size",
            "activation_checkpointing.partition_activations",
            "activation_checkpointing.contiguous_memory_optimization",
        ],
    },
    "deepspeed_zero2_offload.json": {
        "tool": "DeepSpeed", "scheme": "zero2", "precision": None, "offload": ("states",),
        "undecided": [],
    },
    "trl_sft.yaml": {
        "tool": "TRL", "scheme": "", "precision": "amp-bf16", "batch_size": 8, "seq_len": 1024,
        "grad_accumulation": 1, "activation_checkpointing": "full", "optimizer": "adamw-fused",
        "clip_gradients": True, "undecided": [],
    },
    "axolotl_fft.yaml": {
        "tool": "axolotl", "scheme": "", "precision": "bf16", "batch_size": 1, "seq_len": 8192,
        "grad_accumulation": 8, "activation_checkpointing": "full", "optimizer": "adam8bit",
        "clip_gradients": True, "undecided": [],
    },
    "axolotl_qlora_fsdp.yaml": {
        "tool": "axolotl", "scheme": "fsdp", "precision": "amp-bf16", "precision_alone": None,
        "batch_size": 1, "seq_len": 512, "grad_accumulation": 4, "optimizer": "adamw-fused",
        "activation_checkpointing": "full", "offload": ("states", "parameters"),
        "lora": LoraAdapters(r=8, alpha=16, rest="bf16"), "weights": "nf4-double",
        "undecided": [],
    },
    "torchtune_full.yaml": {
        "tool": "torchtune", "scheme": "fsdp", "precision": "bf16", "precision_alone": None,
        "batch_size": 2, "seq_len": None, "grad_accumulation": 1, "optimizer": "adamw-fused",
        "activation_checkpointing": "full", "clip_gradients": False, "compiled": None,
        "undecided": ["loss._component_"],
    },
    "torchtune_qlora.yaml": {
        "tool": "torchtune", "scheme": "", "precision": "bf16", "batch_size": 2,
        "grad_accumulation": 8, "optimizer": "adamw-fused", "activation_checkpointing": "full",
        "lora": LoraAdapters(
            r=8,
            alpha=16,
            targets=("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
            dtype="bf16",
        ),
        "weights": "nf4-double", "undecided": ["loss._component_"],
    },
    "torchtitan_8b.toml": {
        "tool": "torchtitan", "scheme": "fsdp", "precision": "bf16-mixed",
        "precision_alone": "amp-bf16", "batch_size": 1, "seq_len": 8192,
        "optimizer": "adamw-fused", "activation_checkpointing": "selective",
        "clip_gradients": True, "undecided": [],
    },
    "llama_factory_full.yaml": {
        "tool": "LLaMA-Factory", "scheme": "fsdp", "precision": "bf16-mixed", "batch_size": 1,
        "seq_len": 2048, "grad_accumulation": 2, "optimizer": "adamw-fused",
        "activation_checkpointing": "full", "clip_gradients": True,
        "bucket_elements": 4096**2, "undecided": [],
    },
    "llama_factory_lora.yaml": {
        "tool": "LLaMA-Factory", "scheme": "", "precision": "amp-bf16", "batch_size": 1,
        "seq_len": 2048, "grad_accumulation": 8, "activation_checkpointing": "full",
        "optimizer": "adamw-fused", "clip_gradients": True,
        "lora": LoraAdapters(r=8, alpha=16, rest="bf16"), "weights": None,
        "undecided": [],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_public_config_means_what_its_tool_makes_of_it(name: str) -> None:
    config = read_training_config(PUBLIC / name)
    expected = {"lora": None, "weights": None, **EXPECTED[name]}
    assert [one.field for one in config.undecided] == expected.pop("undecided")
    assert {key: getattr(config, key) for key in expected} == expected
    assert config.unknown == ()


def test_all_public_configs_have_an_expectation() -> None:
    """At least ten, of at least five tools."""
    assert {one.name for one in PUBLIC.iterdir() if one.is_file()} == set(EXPECTED)
    assert len(EXPECTED) >= 10
    assert len({one["tool"] for one in EXPECTED.values()}) >= 5


def test_the_tools_own_parsers_agree() -> None:
    """`scripts/checks/training_configs_by_tools.py` wrote what the tools' parsers make of them."""
    record = json.loads((DATA / "by_tools.json").read_text())
    assert len(record) >= 10
    assert len({EXPECTED[name]["tool"] for name in record}) >= 5
    for name, entry in record.items():
        assert entry["versions"] and entry["date"], name
        stated = dict(entry["states"])
        if stated.get("lora"):
            stated["lora"] = LoraAdapters.read(stated["lora"])
        config = read_training_config(PUBLIC / name)
        read = {key: getattr(config, key) for key in stated}
        if isinstance(read.get("lora"), LoraAdapters):  # the order of names says nothing
            read["lora"], stated["lora"] = (
                replace(one, targets=tuple(sorted(one.targets)))
                for one in (read["lora"], stated["lora"])
            )
        assert read == stated, name
