"""A job is an object of its own: it says what it is, and what was given to it is not changed."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from driple.api.inspecting import inspect
from driple.api.predicting import predict
from driple.cluster.setting import Setting
from driple.errors import ConfigError, GraphError
from driple.graph import read_graph
from driple.jobs.load import JobOptions, load_job
from driple.jobs.pytorch.modules import job_of_module
from driple.render.remarks import sentences

ROOT = Path(__file__).parents[2]
GRAPH = ROOT / "datasets/examples/resnet50.pbtxt"
VIT = "timm:vit_tiny_patch16_224"


def test_a_module_stays_as_it_is() -> None:
    """Weights, gradients, buffers and modes, also where a job of it cannot be made."""
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 10)).eval()
    model[2].weight.grad = torch.ones(10, 784)
    image = torch.randn(4, 1, 28, 28)
    weight, before = model[2].weight, model(image)
    state = copy.deepcopy(model.state_dict())
    assert job_of_module(model, batch_size=64, input_shape=(1, 28, 28)).batch_size == 64
    with pytest.raises(GraphError):
        job_of_module(model, batch_size=64, input_shape=(1, 29, 28))
    assert model[2].weight is weight and not model.training
    assert weight.grad is not None and weight.grad.sum() == 7840
    assert all(torch.equal(one, state[name]) for name, one in model.state_dict().items())
    assert torch.equal(model(image), before)


def test_a_recurrent_and_a_tied_module_stay_as_they_are() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
            self.layer = nn.LSTM(8, 8, batch_first=True)
            self.head.weight = self.embedding.weight

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.layer(self.embedding(tokens))[0])

    model, tokens = Model(), torch.randint(0, 50, (2, 5))
    before = model(tokens)
    job_of_module(model, batch_size=2, seq_len=5)
    assert torch.equal(model(tokens), before)
    assert model.head.weight is model.embedding.weight


def test_a_module_is_read_for_the_devices_of_its_setting() -> None:
    def layer() -> nn.Module:
        return nn.TransformerEncoderLayer(64, 4, batch_first=True)

    batch = torch.randn(8, 128, 64)
    shape = {"loss": lambda outputs, _: outputs.sum(), "precision": "amp-fp16"}
    usual = job_of_module(layer(), (batch, batch), **shape)
    volta = job_of_module(layer(), (batch, batch), setting="1xV100", **shape)
    assert usual.compute_capability == (8, 0) and volta.compute_capability == (7, 0)


def test_options_that_a_job_would_leave_out_are_refused() -> None:
    job, graph = load_job("mobilenet_v2", JobOptions(batch_size=8)), read_graph(GRAPH)
    with pytest.raises(ConfigError, match=r"^--batch-size and --precision: a Job has its own"):
        load_job(job, JobOptions(batch_size=64, precision="bf16"))
    assert load_job(job, JobOptions()) is job
    with pytest.raises(ConfigError, match=r"^--precision: a graph that was read is as it is"):
        load_job(graph, JobOptions(precision="bf16"))
    with pytest.raises(GraphError, match="the graph fixes its batch to 32"):
        load_job(graph, JobOptions(batch_size=6400))
    assert load_job(graph, JobOptions(batch_size=32)).batch_size == 32


def test_a_job_that_was_read_for_another_device_says_so() -> None:
    """Not where the kernels are the same, and not by its name, which is read anew."""
    options = JobOptions(batch_size=8, precision="amp-fp16")
    job = load_job(VIT, options)
    assert not any("another device" in one for one in _assumed(job, "1xH100"))
    (words,) = [one for one in _assumed(job, "1xV100") if "another device" in one]
    assert "compute capability 8.0" in words and "V100" in words
    there = Setting.parse("1xV100")
    assert not any(
        "another device" in one for one in _assumed(load_job(VIT, options, setting=there), there)
    )


def _assumed(job: object, setting: Setting | str) -> tuple[str, ...]:
    return sentences(predict(job, setting, num_steps=4).answers[0].assumptions)  # type: ignore[arg-type]


def test_inspect_reads_a_model_for_the_device_of_its_setting() -> None:
    """As predict does: their memory is the same."""
    options = JobOptions(batch_size=8, precision="amp-bf16")
    for name in ("1xV100", "1xA100"):
        (answer,) = predict(VIT, name, options=options, num_steps=4).answers
        inspected = inspect(VIT, name, options=options, memory=True).memory
        assert answer.memory is not None and answer.memory.estimate is not None
        assert answer.memory.estimate.allocated is not None
        assert inspected is not None and inspected.beside is not None
        assert inspected.beside.estimate == answer.memory.estimate


def test_jobs_are_read_in_threads() -> None:
    """PyTorch's dispatcher is one for all threads, so they wait for each other."""
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(load_job, ["mobilenet_v2", "resnet18", VIT, "mobilenet_v2"]))
    assert [job.name for job in jobs] == ["mobilenet_v2", "resnet18", VIT, "mobilenet_v2"]
    assert jobs[0].cost.total_flops == jobs[3].cost.total_flops


def test_answers_can_be_compared_and_shown() -> None:
    result = predict(GRAPH, ["V100", "V100-P1w2"])
    assert len(result.answers) == 2, (
        "one for each setting that is given, so that they can be zipped"
    )
    first, other = result.answers
    assert first != other and first in result.answers and len({first, other, first}) == 2
    for shown in (result, first, first.job, first.job.graph, inspect(GRAPH)):
        assert len(repr(shown)) < 200
    with pytest.raises(ConfigError, match="settings is empty"):
        predict(GRAPH, [])
