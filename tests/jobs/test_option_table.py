"""Each row of the table of job options is typed, shown, stated and refused as it says."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
from torch import nn
from typer.testing import CliRunner

from driple.api.results import job_facts
from driple.cli.joboptions import job_options
from driple.cli.main import app
from driple.cli.overrides import set_values
from driple.codec import to_dict
from driple.errors import ConfigError
from driple.graph.torch.lora import LoraAdapters
from driple.jobs.load import load_job
from driple.jobs.option_row import MODULE, JobOption
from driple.jobs.options import JOB_OPTIONS, JobOptions, flags_for
from driple.jobs.pytorch.modules import job_of_module
from driple.jobs.readers import reader_of, registered_readers
from driple.jobs.training_config import TrainingConfig
from driple.render.job_facts import facts_words
from tests.cli.test_main import EXAMPLE, ROOT
from tests.cli.test_numbers import commands

# A text of each row that is not usual, and the value that it stands for.
TYPED: dict[str, tuple[str, Any]] = {
    "batch_size": ("8", 8),
    "inputs": ("images=8x3", {"images": (8, 3)}),
    "target": ("train:0", "train"),
    "loop_turns": ("3", 3),
    "max_bytes": ("1.5", 3 * 2**19),
    "seq_len": ("16", 16),
    "input_shape": ("3x8x8", (3, 8, 8)),
    "precision": ("bf16", "bf16"),
    "optimizer": ("adamw", "adamw"),
    "grad_accumulation": ("2", 2),
    "activation_checkpointing": ("full", "full"),
    "compiled": ("", True),
    "cuda_graphs": ("on", True),
    "tensor_overlap": ("on", True),
    "lora": ("r=4,targets=q_proj+v_proj", LoraAdapters(r=4, targets=("q_proj", "v_proj"))),
    "weights": ("nf4", "nf4"),
    "fused_loss": ("on", True),
    "fused_kernels": ("on", True),
    "clip_gradients": ("on", True),
    "task": ("forward", "forward"),
    "channels_last": ("yes", True),
    "library": ("torch1", "torch1"),
    "data": ("a.py:f", "a.py:f"),
    "loss": ("a.py:g", "a.py:g"),
    "trace": ("real", "real"),
    "own_code_s": ("60", 60.0),
    "own_code_gib": ("2.5", 2.5),
}
# A JOB of each kind that a command can be given.
JOBS = {
    "file": str(EXAMPLE), "onnx": "x.onnx", "workload": "a/b/c", "pytorch": "resnet50",
    "own_model": "own.py:f", "hugging_face": "hf:x", "timm": "timm:x",
}  # fmt: skip
WITH_JOB = ("predict", "plan", "sweep", "inspect", "profile links")
rows = pytest.mark.parametrize("row", JOB_OPTIONS, ids=lambda row: row.name)
typed_rows = pytest.mark.parametrize(
    "row", [row for row in JOB_OPTIONS if row.name != "config"], ids=lambda row: row.name
)


def typed(row: JobOption, text: str) -> list[str]:
    """What a user types for a row."""
    if row.set_name:
        return ["--set", f"{row.set_name}={text}"]
    return [row.typed, text] if text else [row.typed]


def options_from(words: list[str]) -> JobOptions:
    """What a command with a JOB gets."""
    got: list[JobOptions] = []
    command = typer.Typer()

    @command.command()
    @job_options
    def ask(options: JobOptions) -> None:
        got.append(options)

    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    return got[0]


@typed_rows
def test_what_is_typed_reaches_the_options(row: JobOption) -> None:
    text, value = TYPED[row.name]
    options = options_from(typed(row, text))
    assert options == JobOptions(**{row.name: value})
    assert [changed.name for changed in options.changed] == [row.name]
    assert options.given == (() if row.for_all else (row.flag,))


def test_a_training_config_reaches_the_options(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"per_device_train_batch_size": 4}')
    options = options_from(["--training-config", str(file)])
    assert (options.config.batch_size, options.given) == (4, ())


@rows
def test_every_command_with_a_job_shows_a_row(row: JobOption) -> None:
    assert row.help
    for path, command in commands(typer.main.get_command(app)):
        if " ".join(path) not in WITH_JOB:
            continue
        if row.set_name:
            values = {value.name: value for value in set_values(command.callback)}
            assert values[row.set_name].help == row.help
        elif (" ".join(path), row.typed) != ("sweep", "--batch-size"):  # it takes several
            (shown,) = [one.help for one in command.params if row.typed in one.opts]
            assert row.help in shown


@rows
def test_a_usual_value_is_allowed_and_another_type_is_not(row: JobOption) -> None:
    assert getattr(JobOptions(), row.name) == row.default
    with pytest.raises(ConfigError, match=f"{row.typed}|{row.name}"):
        JobOptions(**{row.name: object()})


@typed_rows
@pytest.mark.parametrize("kind", JOBS)
def test_a_kind_of_job_takes_what_suits_it_and_refuses_the_rest(row: JobOption, kind: str) -> None:
    options = JobOptions(**{row.name: TYPED[row.name][1]})
    assert (row.flag in flags_for(kind)) == (kind in row.suits and not row.for_all)
    if kind in row.suits or row.for_all:
        assert reader_of(JOBS[kind], options)
    else:
        with pytest.raises(ConfigError, match=rf"^{row.flag}: "):
            reader_of(JOBS[kind], options)


def test_which_jobs_take_which_options() -> None:
    """Graphs are as they are; models of all kinds take the same, but images have no tokens."""
    assert flags_for("workload") == flags_for("graph") == {"--batch-size"}
    assert flags_for("onnx") == {
        "--batch-size", "--input NAME=SHAPE", "--optimizer", "--precision", "--loss"
    }  # fmt: skip
    assert flags_for("file") == {
        "--batch-size", "--input NAME=SHAPE", "--set target", "--set loop_turns"
    }  # fmt: skip
    models = flags_for("hugging_face")
    assert models == flags_for("pytorch") == flags_for(MODULE) >= {"--seq-len", "--precision"}
    assert flags_for("timm") == models - {"--seq-len"}
    assert flags_for("own_model") == models | {"--data", "--loss", "--set trace"}


def test_a_training_config_stands_for_what_is_left_out() -> None:
    config = TrainingConfig(batch_size=4, precision="bf16", optimizer="adamw", compiled=True)
    merged = JobOptions(precision="fp32", config=config).with_config()
    assert (merged.batch_size, merged.precision, merged.compiled) == (4, "fp32", True)
    assert merged.optimizer == "adamw"
    assert JobOptions(task="forward", config=config).with_config().optimizer is None


@rows
def test_kinds_are_those_of_jobs(row: JobOption) -> None:
    kinds = {reader.origin.name for reader in registered_readers()}
    assert row.suits <= {*kinds, "graph", "other", MODULE}


@rows
def test_a_module_takes_the_rows_that_suit_it(row: JobOption) -> None:
    known = inspect.signature(job_of_module).parameters
    if MODULE in row.suits and not row.for_all:
        assert known[row.name].default == row.default
    else:
        assert row.name == "loss" or row.name not in known  # its loss is a function
        if row.name != "loss":
            with pytest.raises(TypeError, match=f"job_of_module has no {row.name}; it takes batch"):
                job_of_module(nn.Linear(2, 2), batch_size=1, **{row.name: None})


def test_the_json_states_the_rows_that_say_so() -> None:
    stated = [row.name for row in JOB_OPTIONS if row.stated]
    assert stated == [
        "batch_size", "seq_len", "input_shape", "precision", "optimizer", "grad_accumulation",
        "activation_checkpointing", "compiled", "cuda_graphs", "tensor_overlap", "lora", "weights",
        "fused_loss", "fused_kernels", "clip_gradients", "task", "channels_last", "library",
    ]  # fmt: skip
    facts = to_dict(job_facts(load_job(EXAMPLE)))
    assert [name for name in facts if name in {row.name for row in JOB_OPTIONS}] == stated
    asked = {
        name: TYPED[name][1]
        for name in stated
        if name
        not in (
            "seq_len",
            "task",
            "activation_checkpointing",
            "lora",
            "weights",
            "fused_loss",
            "fused_kernels",
        )
    }
    job = job_of_module(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten()), **asked)
    facts = to_dict(job_facts(job))
    assert {name: facts[name] for name in asked} == asked | {"input_shape": [3, 8, 8]}
    for words in (
        "2 passes per update",
        "compiled",
        "CUDA graphs",
        "gradients clipped",
        "PyTorch 1",
    ):
        assert words in facts_words(job)
    lora = {name: TYPED[name][1] for name in ("lora", "weights")} | {"lora": "r=4,targets=0"}
    job = job_of_module(
        nn.Sequential(nn.Linear(8, 8), nn.ReLU()), batch_size=2, input_shape=(8,), **lora
    )
    facts = to_dict(job_facts(job))
    assert facts["weights"] == "nf4"
    assert facts["lora"] == to_dict(LoraAdapters(r=4, targets=("0",)))
    assert "LoRA r=4,alpha=16,targets=0, nf4 weights" in facts_words(job)


def test_a_row_and_the_code_that_uses_it_are_an_option() -> None:
    """One row, and one field of `StepOptions`, in a process of its own: all else follows."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_ONE_MORE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["fact"] == 3
    assert facts["usual"] == 1
    assert facts["keyword"] == 4
    assert "rounds=1: turns of the wheel" in facts["help"]
    assert facts["refused"].startswith("--set rounds: for a Hugging Face model or")
    assert facts["wrong"] == "--set rounds must be a whole number from 1 to 9, got 10"


WITH_ONE_MORE = """
import importlib.machinery, json, sys

PATCHES = {
    "driple.jobs.options": (
        "    # fmt: on",
        "    rounds: int = option(1, '--set rounds', whole(1, 9), 'turns of the wheel',"
        " suits=MODELS, stated=True)",
    ),
    "driple.graph.torch.options": ('    kernels: Kernels = "gpu"', "    rounds: int = 1"),
}


class Patched(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        place, line = PATCHES[name]
        source = self.get_source(name)
        assert source.count(place) == 1
        return compile(source.replace(place, line + "\\n" + place), self.path, "exec")


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        spec.loader = Patched(name, spec.origin)
        return spec


sys.meta_path.insert(0, Finder())

from torch import nn
from typer.testing import CliRunner
import driple
from driple.api.results import job_facts
from driple.cli.main import app
from driple.codec import to_dict
from driple.errors import ConfigError


def said(function):
    try:
        function()
    except ConfigError as error:
        return str(error)


options = driple.JobOptions(rounds=3, batch_size=1)
module = driple.job_of_module(nn.Linear(2, 2), batch_size=1, input_shape=(2,), rounds=4)
print(json.dumps({
    "fact": job_facts(driple.load_job("mobilenet_v2", options))["rounds"],
    "usual": job_facts(driple.load_job("datasets/examples/resnet20.pbtxt"))["rounds"],
    "keyword": job_facts(module)["rounds"],
    "help": " ".join(CliRunner().invoke(app, ["inspect", "--help"]).output.split()),
    "refused": said(lambda: driple.load_job("datasets/examples/resnet20.pbtxt", options)),
    "wrong": said(lambda: driple.JobOptions(rounds=10)),
}))
"""
