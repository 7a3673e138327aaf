"""No verdict on memory, time or cost is printed that a decisive field changes which nobody read.

A valid config of each tool, and each decisive field of the tool put in -> the answer has no
verdict on what the field changes; the field is named first.
"""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from driple.api.inspecting import inspect
from driple.api.planning import plan
from driple.api.predicting import predict
from driple.api.sweeping import sweep
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.graph.step_facts import TensorRole
from driple.jobs.load import Job, load_job
from driple.jobs.options import JobOptions
from driple.jobs.training_config import FORMATS, read_training_config
from driple.memory.device_tensors import device_tensors
from driple.memory.estimate import memory_of
from driple.memory.place import MemoryPlace
from driple.memory.step_memory import StepMemory
from driple.render.answer_lines import answer_lines

SETTING = "8xA100"
BASES: dict[str, dict[str, Any]] = {
    "Accelerate": {"distributed_type": "FSDP", "mixed_precision": "bf16"},
    "DeepSpeed": {"train_micro_batch_size_per_gpu": 2, "zero_optimization.stage": 2},
    "Trainer": {"per_device_train_batch_size": 2, "optim": "adamw_torch", "bf16": True},
    "TRL": {"per_device_train_batch_size": 2, "max_length": 32, "packing": True},
    "axolotl": {"base_model": "a", "micro_batch_size": 2, "sequence_len": 32, "bf16": True},
    "torchtune": {"batch_size": 2, "tokenizer.max_seq_len": 32, "dtype": "bf16"},
    "torchtitan": {"training.local_batch_size": 2, "training.seq_len": 32},
    "LLaMA-Factory": {"finetuning_type": "full", "cutoff_len": 32, "stage": "sft"},
}
BY_NAME = {tool.name: tool for tool in FORMATS}


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        at = nested
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return nested


def _options(folder: Path, values: dict[str, Any]) -> JobOptions:
    file = folder / "config.json"
    file.write_text(json.dumps(_nested(values)))
    return JobOptions(config=read_training_config(file), seq_len=16, batch_size=2)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("jobs") / "gpt"
    folder.mkdir()
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_head": 2,
        "n_embd": 32, "vocab_size": 128, "n_positions": 64,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return f"hf:{folder}"


@pytest.mark.parametrize("tool", BASES)
def test_the_valid_configs_have_a_verdict(tool: str, tmp_path: Path) -> None:
    options = _options(tmp_path, BASES[tool])
    assert options.config.tool == tool
    assert not options.undecided(Setting.parse(SETTING))


@pytest.mark.parametrize("tool", BASES)
def test_each_decisive_field_is_left_open(tool: str, tmp_path: Path) -> None:
    """Of each tool each decisive field, with a value that its tool does not have by itself."""
    for name, entry in BY_NAME[tool].decisive.items():
        key = f"{name[:-1]}x" if name.endswith("*") else name
        if any(key.startswith(f"{one}.") or one.startswith(f"{key}.") for one in BASES[tool]):
            continue
        options = _options(tmp_path, {**BASES[tool], key: "unusual"})
        open_fields = {one.field: one.changes for one in options.config.undecided}
        assert open_fields == {key[:60]: entry.changes} or key == "deepspeed", (name, open_fields)


# Fields that another field decides: of FSDP where no field switches it on, of LLaMA-Factory the
# switch that turns checkpointing off; and the model, which the job is.
NOT_READ_ALONE = ("fsdp_config.", "deepspeed_config.zero_stage", "cut_cross_entropy",
                  "gradient_checkpointing", "model._component_")  # fmt: skip


@pytest.mark.parametrize("tool", BASES)
def test_no_value_that_is_not_understood_passes_unseen(tool: str, tmp_path: Path) -> None:
    """Of each field that is read: refused, or left open."""
    for key in BY_NAME[tool].read:
        base = {
            name: value
            for name, value in BASES[tool].items()
            if not f"{name}.".startswith(f"{key}.") and not key.startswith(f"{name}.")
        }
        try:
            config = _options(tmp_path, {**base, key: "unusual"}).config
        except ConfigError:
            continue
        is_open = key[:60] in {one.field for one in config.undecided}
        assert is_open or key.startswith(NOT_READ_ALONE), key


SWITCHED_ON = {
    "adapter": "qlora", "use_peft": True, "plugins": ["a.LigerPlugin"], "finetuning_type": "lora",
    "model._component_": "a.lora_b", "fsdp": "full_shard", "use_liger_kernel": True,
}  # fmt: skip


VALUES: tuple[Any, ...] = ([], ["a", {}], {"a": {}}, -1, float("nan"), 10**30, True, "")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tool", BASES)
def test_values_of_other_types_end_in_one_line(tool: str, step: int, tmp_path: Path) -> None:
    """Of each field that a rule reads or looks at, alone and where other fields switch it on.

    Every fifth value in turn in the usual run: of each field one or two.
    """
    form, passed = BY_NAME[tool], count()
    for key in sorted({*form.read, *form.beside}):
        for more in ({}, {name: one for name, one in SWITCHED_ON.items() if name in form.read}):
            base = {
                name: value
                for name, value in {**BASES[tool], **more}.items()
                if not f"{name}.".startswith(f"{key}.") and not key.startswith(f"{name}.")
            }
            for value in VALUES:
                if next(passed) % step:
                    continue
                try:
                    _options(tmp_path, {**base, key: value})
                except ConfigError as error:
                    assert "\n" not in str(error), (key, value)


@pytest.mark.parametrize("tool", BASES)
def test_an_answer_has_no_verdict_on_what_an_open_field_changes(
    tool: str, tmp_path: Path, gpt: str
) -> None:
    """Of each kind of change one decisive field, and a field that no list has."""
    fields = {entry.changes: name for name, entry in BY_NAME[tool].decisive.items()
              if not name.endswith("*") and not entry.settled_by and "." not in name}  # fmt: skip
    picked = [*fields.values(), "unheard_of"]
    for name in random.Random(0).sample(picked, len(picked)):
        options = _options(tmp_path, {**BASES[tool], name: "unusual"})
        (answer,) = predict(gpt, SETTING, options=options).answers
        changes = answer.job.undecided[0].changes
        lines = answer_lines(answer)
        assert lines[0].startswith("left open"), lines
        assert name in lines[0]
        text = "\n".join(lines)
        stated = answer.to_dict()
        if "time" in changes:
            assert "samples/s" not in text
            assert "MFU" not in text
            assert stated["iteration_time_s"] is None
            assert stated["throughput"] is None
            with pytest.raises(ConfigError, match=name):
                _ = answer.iteration_time_s
        if "memory" in changes:
            assert "fits" not in text
            assert "fit:" not in text
            assert stated["memory"]["known"] is False  # type: ignore[index, call-overload]
        assert [one["field"] for one in stated["job"]["undecided"]] == [name]  # type: ignore[index, call-overload, union-attr]


def _open(tmp_path: Path, **more: Any) -> JobOptions:
    return _options(tmp_path, {**BASES["Trainer"], "use_ipex": True, **more})


def test_plan_ranks_nothing_on_an_open_field(tmp_path: Path, gpt: str) -> None:
    result = plan(gpt, options=_open(tmp_path), instances="p4d", samples=1000)
    assert result.offers == ()
    assert result.choice.best is None
    assert result.no_price is not None
    assert "use_ipex" in result.no_price.values["fields"]  # type: ignore[operator]


def test_other_questions_refuse_or_leave_out_what_an_open_field_changes(
    tmp_path: Path, gpt: str
) -> None:
    options = _open(tmp_path)
    with pytest.raises(ConfigError, match="use_ipex"):
        sweep(gpt, options=options)
    with pytest.raises(ConfigError, match="use_ipex"):
        inspect(gpt, "1xA100", options=options, memory=True)
    seen = inspect(gpt, "1xA100", options=options)
    assert seen.breakdown.total_s is None
    assert all(share.time_s is None for share in seen.breakdown.kinds)
    assert seen.to_dict()["least_device_memory"] is None


def test_offload_moves_states_and_shards_to_the_host(tmp_path: Path, gpt: str) -> None:
    """With states and parameters on the host the device holds less, and the host what it lacks."""
    base = {"bf16.enabled": True, "zero_optimization.stage": 3,
            "zero_optimization.reduce_bucket_size": 1000}  # fmt: skip
    setting = Setting.parse("8xA100@fsdp")
    name = "zero_optimization.offload_"
    states = {f"{name}optimizer.device": "cpu"}
    both = {**states, f"{name}param.device": "cpu"}
    kept, host = [], []
    for more in ({}, states, both):
        job = _job(gpt, _options(tmp_path, {**base, **more}))
        estimate = memory_of(job, setting)
        kept.append(
            {part: estimate.parts[part] for part in ("parameters", "optimizer", "gradients")}
        )
        host.append(estimate.host_bytes)
    assert kept[0]["optimizer"] > 0
    assert kept[1]["optimizer"] == 0
    assert kept[1]["parameters"] == kept[0]["parameters"] > 0
    assert kept[2]["parameters"] < kept[1]["parameters"] / 10  # what no table has stays
    assert host[0] is None
    assert host[2] is not None
    assert host[1] is not None
    # 2 bytes of each parameter of the machine, in 8 shards that are rounded up
    elements = int(_job(gpt, _options(tmp_path, base)).graph.parameters.elements.sum())
    assert host[2] - host[1] == pytest.approx(2 * elements, rel=1e-3)
    assert host[1] == pytest.approx((12 + 4) * elements, rel=1e-2)


def test_an_update_in_the_backward_pass_frees_each_gradient(tmp_path: Path, gpt: str) -> None:
    """No gradient outlives the step, on one device or as a shard; all else stays."""
    tune = {"batch_size": 2, "tokenizer.max_seq_len": 16, "dtype": "fp32",
            "optimizer._component_": "torch.optim.AdamW"}  # fmt: skip
    for where in ("1xA100", "8xA100@fsdp"):
        kept = []
        for more in ({}, {"optimizer_in_bwd": True}):
            options = _options(tmp_path, {**tune, **more})
            assert not options.config.undecided
            job = load_job(gpt, options, setting=where)
            (place,) = MemoryPlace.of_job(job, Setting.parse(where))
            assert place.sharding is not None
            tensors = device_tensors(
                StepMemory.of(job.graph), place.sharding, place.shards, place.replicas
            )
            gradients = tensors.nbytes[tensors.kinds == TensorRole.GRADIENT]
            kept.append((
                tensors.kept_bytes(TensorRole.GRADIENT), tensors.states.sum(),
                tensors.kept_bytes(TensorRole.PARAMETER), gradients.sum() > 0,
            ))  # fmt: skip
        usual, at_once = kept
        assert usual[0] > 0
        assert at_once == (0, *usual[1:])


def _job(source: str, options: JobOptions) -> Job:
    return load_job(source, options, setting="8xA100@fsdp")
