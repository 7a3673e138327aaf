"""`--set library=torch1`: no kind of job has the fused attention that came with PyTorch 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

import driple
from driple.api.device_remarks import device_remarks
from driple.api.memory import memory_beside
from driple.cluster.setting import Setting
from driple.jobs.job import Job
from driple.jobs.load import JobOptions, load_job

GPT = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_embd": 64,
    "n_head": 4, "vocab_size": 100, "n_positions": 128,
}  # fmt: skip
NET = """
import torch
from torch import nn

def build_model():
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.zeros(4, 16, 32)

def loss(outputs, labels):
    return outputs.sum()
"""
ATTENTION = {"attention", "attention_gradient"}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(64, 192)

    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.project(tokens).unflatten(-1, (3, 2, 32)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*heads.unbind(0))
        return attended.transpose(1, 2).flatten(2)


def read(kind: str, folder: Path, **values: Any) -> Job:
    """A job of each kind that PyTorch runs."""
    options = {"batch_size": 4, **values}
    forward = values.get("task") == "forward"
    if kind == "module":
        batch: Any = torch.zeros(4, values.pop("length", 128), 64)
        if not forward:
            batch, values["loss"] = (batch, torch.zeros(4)), lambda made, _: made.square().sum()
        return driple.job_of_module(Attention(), batch, **values)
    if kind == "hf":
        (folder / "config.json").write_text(json.dumps(GPT), encoding="utf-8")
        return load_job(f"hf:{folder}", JobOptions(seq_len=64, **options), forward=forward)
    if kind == "own":
        file = folder / "net.py"
        file.write_text(NET, encoding="utf-8")
        if not forward:
            values["loss"] = f"{file}:loss"
        return load_job(f"{file}:build_model", JobOptions(**values), forward=forward)
    return load_job(kind, JobOptions(**options), forward=forward)


KINDS = ("module", "hf", "own", "timm:vit_tiny_patch16_224", "bert-base")


@pytest.mark.parametrize("task", ["train", "forward"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_job_has_fused_attention(kind: str, task: str, tmp_path: Path) -> None:
    old, new = (read(kind, tmp_path, library=name, task=task) for name in ("torch1", "torch2"))
    assert not ATTENTION & set(old.graph.kinds)
    assert ATTENTION & set(new.graph.kinds)
    blocks = new.graph.kinds.count("attention")
    assert old.graph.kinds.count("softmax") - new.graph.kinds.count("softmax") == blocks
    products = 2 if task == "forward" else 6
    more = old.graph.kinds.count("batch_matmul") - new.graph.kinds.count("batch_matmul")
    assert more == products * blocks


def test_pytorch_2_1_has_it(tmp_path: Path) -> None:
    kinds = read("module", tmp_path, library="torch2.1").graph.kinds
    assert set(kinds) >= ATTENTION


def test_memory_grows_with_the_square_of_the_length(tmp_path: Path) -> None:
    """At the peak, in the backward pass: the weights, their gradient and that of the scores."""

    def allocated(length: int, library: str) -> float:
        job = read("module", tmp_path, library=library, length=length)
        estimate = memory_beside(job, Setting.parse("1xA100")).estimate
        assert estimate is not None
        return estimate.allocated.value

    def square(library: str) -> float:
        low, middle, high = (allocated(length, library) for length in (1024, 2048, 3072))
        return (high - 2 * middle + low) / 2 / 1024**2

    scores = 4 * 2 * 4  # bytes of each pair of tokens: samples, heads, single precision
    assert square("torch1") == pytest.approx(3 * scores, rel=0.01)
    assert square("torch2") == pytest.approx(0, abs=0.01 * scores)


def test_devices_do_not_differ_in_it() -> None:
    there = Setting.parse("1xV100")
    options = JobOptions(batch_size=2, precision="amp-fp16", library="torch1")
    for setting in (None, there):
        job = load_job("timm:vit_tiny_patch16_224", options, setting=setting)
        assert not device_remarks(job, there, "simulator")
