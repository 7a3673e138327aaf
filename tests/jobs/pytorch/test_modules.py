"""Jobs from Python: a module with a batch, a loss, or a training step of the user's."""

from __future__ import annotations

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
