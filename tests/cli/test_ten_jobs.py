"""The same ten jobs through every command that takes a JOB: one grammar, one set of facts.

Jobs whose file is executed start a process each, so that three commands get them in the slow part.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.jobs.readers import registered_readers
from tests.cli.test_main import EXAMPLE, ROOT, driple, refused
from tests.jobs.test_hugging_face import SIZES, written

OWN = f"{ROOT / 'tests/jobs/own.py'}:"
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "predict": (("predict",), ("--setting", "V100-P1w2")),
    "plan": (("plan",), ("--instance", "p4d.24xlarge", "--samples", "1000")),
    "sweep": (("sweep",), ("--setting", "V100-P1w2", "--workers", "1,2")),
    "inspect": (("inspect",), ()),
    "profile links": (("profile", "links"), ("--setting", "V100-R2/ho-PCIe")),
}
FAST_OF_OWN = ("predict", "inspect")


def gpt(folder: Path) -> str:
    return f"hf:{written(folder, 'GPT2Config', {'n_layer': 2, 'n_embd': 64, 'n_head': 4})}"


def bert(folder: Path) -> str:
    return f"hf:{written(folder, 'BertConfig', SIZES, 'BertForSequenceClassification')}"


def perceptron(folder: Path) -> str:
    """An ONNX file with two layers and an open batch."""
    from onnx import TensorProto, helper, numpy_helper, save

    weights = [
        numpy_helper.from_array(np.zeros(shape, np.float32), name)
        for name, shape in (("w1", (16, 32)), ("b1", (32,)), ("w2", (32, 10)), ("b2", (10,)))
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        weights,
    )
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=9), folder / "model.onnx")
    return str(folder / "model.onnx")


# Name -> (what a user types, from a folder; options; facts that all commands state).
Given = Callable[[Path], str]
JOBS: dict[str, tuple[Given, tuple[str, ...], dict[str, Any]]] = {
    "TensorFlow graph": (
        lambda _: str(EXAMPLE), ("--batch-size", "32"),
        {"kind": "file", "batch_size": 32, "precision": "fp32", "optimizer": "momentum"},
    ),
    "PyTorch CNN with AMP": (
        lambda _: "resnet18", ("--batch-size", "4", "--precision", "amp-bf16",
                               "--input", "3x64x64"),
        {"kind": "pytorch", "batch_size": 4, "precision": "amp-bf16", "input_shape": [3, 64, 64]},
    ),
    "GPT with AdamW and checkpointing": (
        gpt, ("--batch-size", "2", "--seq-len", "64", "--optimizer", "adamw",
              "--activation-checkpointing", "full"),
        {"kind": "hugging_face", "seq_len": 64, "optimizer": "adamw",
         "activation_checkpointing": "full"},
    ),
    "LoRA": (
        lambda _: f"{OWN}lora", ("--batch-size", "8", "--input", "64", "--optimizer", "adamw"),
        {"kind": "own_model", "batch_size": 8, "input_shape": [64]},
    ),
    "BERT with a dictionary": (
        lambda _: f"{OWN}dict_batch", ("--grad-accumulation", "2"),
        {"kind": "own_model", "batch_size": 4, "seq_len": 16, "grad_accumulation": 2},
    ),
    "LSTM": (
        lambda _: f"{OWN}words", ("--batch-size", "2", "--seq-len", "8"),
        {"kind": "own_model", "batch_size": 2, "seq_len": 8},
    ),
    "ONNX": (
        perceptron, ("--batch-size", "8", "--optimizer", "adam"),
        {"kind": "onnx", "batch_size": 8, "optimizer": "adam"},
    ),
    "workload": (
        lambda _: "lenet/mnist/b32/sgd/sync", (),
        {"kind": "workload", "batch_size": 32, "optimizer": "sgd"},
    ),
    "timm": (
        lambda _: "timm:tinynet_e", ("--batch-size", "2",),
        {"kind": "timm", "batch_size": 2, "input_shape": [3, 106, 106]},
    ),
    "transformers": (
        bert, ("--batch-size", "2", "--seq-len", "32", "--precision", "bf16"),
        {"kind": "hugging_face", "batch_size": 2, "seq_len": 32, "precision": "bf16"},
    ),
}  # fmt: skip


def cases() -> list[Any]:
    """Each job with each command."""
    return [
        pytest.param(
            job,
            command,
            id=f"{job}-{command}",
            marks=[pytest.mark.slow] if is_own(job) and command not in FAST_OF_OWN else [],
        )
        for job in JOBS
        for command in COMMANDS
    ]


def is_own(job: str) -> bool:
    return JOBS[job][2]["kind"] == "own_model"


def answer(command: str, text: str, options: tuple[str, ...]) -> dict[str, Any]:
    words, others = COMMANDS[command]
    done = driple(*words, text, *options, *others, "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(("job", "command"), cases())
def test_every_command_takes_every_job(job: str, command: str, tmp_path: Path) -> None:
    """And states the same of it: batch, length, precision, optimizer and what was assumed."""
    given, options, facts = JOBS[job]
    result = answer(command, given(tmp_path), options)
    stated = (result["answers"][0] if "answers" in result else result)["job"]
    assert {key: stated[key] for key in facts} == facts
    assert isinstance(stated["assumptions"], list)


SAVE = """
import sys
import tensorflow as tf
module = tf.Module()
module.weight = tf.Variable(tf.zeros([4, 4]))
module.infer = tf.function(
    lambda x: tf.matmul(x, module.weight), input_signature=[tf.TensorSpec([8, 4])]
)
tf.saved_model.save(module, sys.argv[1])
"""


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TensorFlow's own, from a process of its own: the catalogue switches eager mode off here."""
    folder = tmp_path_factory.mktemp("saved_model")
    subprocess.run([sys.executable, "-c", SAVE, str(folder)], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_saved_model_without_a_training_step_is_refused_with_the_way_out(
    command: str, saved_model: Path
) -> None:
    """`inspect` describes it as it is."""
    words, others = COMMANDS[command]
    if command == "inspect":
        assert driple(*words, saved_model, *others).returncode == 0
        return
    size = ("--batch-size", 8) if command == "plan" else ()
    line = refused(*words, saved_model, *others, *size)
    assert "no training step" in line
    assert "driple.tensorflow.training_graph" in line


def test_every_kind_of_job_is_here() -> None:
    """A new reader needs a job in this file."""
    kinds = {facts["kind"] for _, _, facts in JOBS.values()}
    assert len(kinds) == len(registered_readers())


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_assumed_is_printed_on_the_first_screen(command: str, tmp_path: Path) -> None:
    """Before any number with --explain of predict, and of commands that explain all."""
    words, others = COMMANDS[command]
    asked = (*words, gpt(tmp_path), "--batch-size", "2", "--seq-len", "16", *others)
    done = driple(*asked)
    assert done.returncode == 0, done.stderr
    facts = ": 2 samples per device, 16 tokens per sample, fp32, adamw, PyTorch 2"
    if command == "plan":
        shown = " ".join(done.stdout.split())
        assert f"{facts}; " in shown
        assert "; assumed: precision fp32, optimizer adamw; set them with --precision, " in shown
        return
    if command == "predict":
        shown = " ".join(done.stdout.split())
        assert f"{facts} assumed precision fp32, optimizer adamw; set them " in shown
        done = driple(*asked, "--explain")
    first, second, *_ = done.stdout.splitlines()
    assert first == "job: 2 samples per device, 16 tokens per sample, fp32, adamw, PyTorch 2"
    assert second == "assumed: precision fp32, optimizer adamw; set them with --precision, " \
        "--optimizer"  # fmt: skip


def test_a_training_config_stands_for_options(tmp_path: Path) -> None:
    config = tmp_path / "trl.yaml"
    config.write_text("per_device_train_batch_size: 3\nmax_length: 24\nbf16: true\nx: 1\n")
    options = ("--training-config", str(config), "--seq-len", "16")
    stated = answer("inspect", gpt(tmp_path), options)["job"]
    assert (stated["batch_size"], stated["seq_len"], stated["precision"]) == (3, 16, "amp-bf16")
    (unknown,) = stated["undecided"]
    assert (unknown["field"], unknown["reason"]) == ("x", "not_known")
