"""Jobs from Python: a module with a batch, a loss, or a training step of the user's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

import driple
from driple.errors import ConfigError
from driple.jobs.pytorch.modules import job_of_module


def model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 10))


def step(module: nn.Module, batch: Any) -> torch.Tensor:
    images, labels = batch
    return nn.functional.cross_entropy(module(images), labels)


def test_a_module_and_its_batch_are_a_job_of_every_question() -> None:
    images, labels = torch.zeros(8, 3, 4, 4), torch.zeros(8, dtype=torch.long)
    job = job_of_module(model(), (images, labels), optimizer="adamw")
    assert (job.name, job.batch_size, job.optimizer) == ("Sequential", 8, "adamw")
    assert driple.inspect(job).job is job
    assert driple.predict(job, "V100-P1w2").answers[0].job is job
    shaped = job_of_module(model(), batch_size=8, input_shape=(3, 4, 4))
    assert shaped.graph.op_types == job.graph.op_types


def test_a_training_step_is_a_loss_of_model_and_batch() -> None:
    batch = torch.zeros(8, 3, 4, 4), torch.zeros(8, dtype=torch.long)
    stepped = job_of_module(model(), batch, step=step, name="mine")
    assert stepped.name == "mine"
    assert stepped.graph.op_types == job_of_module(model(), batch).graph.op_types
    with pytest.raises(ConfigError, match="give batch="):
        job_of_module(model(), step=step, batch_size=8)


_WITH_TRANSFORMERS = """
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
declare_torchvision_ops()
import driple, torch, transformers
config = transformers.GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64)
ids = torch.zeros(2, 8, dtype=torch.long)
model = transformers.GPT2LMHeadModel(config)
batch = {"input_ids": ids, "labels": ids}
"""


def test_transformers_prints_nothing_while_driple_reads_its_model() -> None:
    """A call of the model itself prints a line about its loss; reading it prints none."""

    def printed(line: str) -> str:
        code = f"{_WITH_TRANSFORMERS}{line}"
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    assert "loss_type" in printed("model(**batch)")
    assert "loss_type" not in printed("driple.job_of_module(model, batch)")
