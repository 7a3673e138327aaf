"""`--set task=forward` and `--set channels_last=on` from what a user types to the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import driple
from driple.errors import ConfigError
from driple.jobs.load import JobOptions, load_job
from driple.jobs.readers import reader_of
from driple.render.errors_stated import stated_error_sentence
from driple.render.job_facts import facts_words
from driple.render.remarks import sentences

FORWARD = JobOptions(batch_size=2, task="forward")
MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 10)

    def forward(self, images, labels=None):
        logits = self.head(self.conv(images).mean((2, 3)))
        if labels is None:
            return logits
        return nn.functional.cross_entropy(logits, labels)

def plain():
    return Net(), {"images": torch.zeros(2, 3, 16, 16), "labels": torch.zeros(2).long()}

def last():
    model, batch = plain()
    return model.to(memory_format=torch.channels_last), batch
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "net.py"
    file.write_text(MODEL, encoding="utf-8")
    return file


def test_an_own_model_computes_no_loss(own: Path) -> None:
    job = load_job(f"{own}:plain", JobOptions(task="forward"), forward=True)
    assert job.graph.kinds == ("conv", "bias_add", "reduce_mean", "matmul")
    assert "a forward pass in eval mode" in facts_words(job)
    assert not any("optimizer" in words for words in sentences(job.assumptions))


def test_an_own_model_in_channels_last_is_read_so(own: Path) -> None:
    by_code = load_job(f"{own}:last", JobOptions())
    by_option = load_job(f"{own}:plain", JobOptions(channels_last=True))
    assert by_code.graph.signatures == by_option.graph.signatures
    assert by_code.graph.signatures != load_job(f"{own}:plain").graph.signatures


def test_a_hugging_face_model_computes_no_loss(tmp_path: Path) -> None:
    config = {"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 64,
              "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
              "vocab_size": 100}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    job = load_job(f"hf:{tmp_path}", FORWARD, forward=True)
    assert "attention" in job.graph.kinds
    assert not {"nll_loss", "log_softmax", "dropout"} & set(job.graph.kinds)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_answer_says_that_it_is_a_forward_pass(compiled: bool) -> None:
    options = JobOptions(
        batch_size=2, task="forward", compiled=compiled, precision="fp16", channels_last=True
    )
    answer = driple.predict("timm:resnet18", "1xA100", options=options).answers[0]
    assert answer.to_dict()["job"]["task"] == "forward"  # type: ignore[index,call-overload]
    assert answer.stated is not None
    assert "forward pass" in stated_error_sentence(answer.stated)
    trained = driple.predict(
        "timm:resnet18", "1xA100", options=JobOptions(batch_size=2, compiled=compiled)
    )
    assert answer.iteration_time_s.value < trained.answers[0].iteration_time_s.value / 2


def test_a_module_from_python_takes_both() -> None:
    from torch import nn

    job = driple.job_of_module(
        nn.Conv2d(3, 8, 3), input_shape=(3, 8, 8), batch_size=2, task="forward", channels_last=True
    )
    assert job.graph.kinds == ("conv", "bias_add")
    assert ("channels_last", (1,)) in job.graph.signatures[0].numbers


def test_questions_about_training_refuse_it() -> None:
    with pytest.raises(ConfigError, match="about training"):
        load_job("timm:resnet18", FORWARD)
    job = load_job("timm:resnet18", FORWARD, forward=True)
    with pytest.raises(ConfigError, match="about training"):
        driple.plan(job)
    with pytest.raises(ConfigError, match="--method analytic answers for training"):
        driple.predict(job, "CPU-P1w2", method="analytic")


def test_options_of_training_contradict_it() -> None:
    with pytest.raises(ConfigError, match="--optimizer: of training"):
        JobOptions(task="forward", optimizer="adam")
    with pytest.raises(ConfigError, match="--set task must be one of train, forward"):
        JobOptions(task="infer")


def test_graph_files_have_no_use_for_them() -> None:
    with pytest.raises(ConfigError, match="--set task"):
        reader_of("datasets/examples/resnet20.pbtxt", FORWARD)
