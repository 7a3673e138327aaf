"""The callback in a real Trainer on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from driple.errors import DripleError
from driple.integrations.hugging_face import TrainerWatch, options_of_arguments, watch
from driple.jobs.load import JobOptions
from driple.runs.users_table import read_runs
from tests.planning.gpt import write_gpt

SEQ_LEN = 32
# As transformers 5 came to call its argument.
NEW_NAME = hasattr(transformers.TrainingArguments, "activation_checkpointing")
RECOMPUTE = "activation_checkpointing" if NEW_NAME else "gradient_checkpointing"


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Random texts."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, 2000, (SEQ_LEN,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


@pytest.fixture(autouse=True)
def _no_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder datasets/ of this repository looks like the package datasets to transformers."""
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


def _arguments(folder: Path, **more: Any) -> transformers.TrainingArguments:
    given: dict[str, Any] = {
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "max_steps": 12,
        "logging_steps": 4, "save_strategy": "no", "report_to": "none", "use_cpu": True,
        "disable_tqdm": True,
    }  # fmt: skip
    return transformers.TrainingArguments(output_dir=str(folder / "out"), **{**given, **more})


def _trainer(folder: Path, args: transformers.TrainingArguments) -> transformers.Trainer:
    config = transformers.AutoConfig.from_pretrained(folder / "gpt")
    model = transformers.AutoModelForCausalLM.from_config(config)
    return transformers.Trainer(model, args, train_dataset=Tokens(), eval_dataset=Tokens())


def test_a_training_logs_prints_and_adds_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers reach TensorBoard through the trainer, and the run its table."""
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    job, table = write_gpt(tmp_path), tmp_path / "runs.csv"
    trainer = _trainer(tmp_path, _arguments(tmp_path, report_to="tensorboard"))
    callback = watch(trainer, job, "1xCPU", options=JobOptions(seq_len=SEQ_LEN), table=table)
    trainer.train()
    assert "driple: step " in capsys.readouterr().out
    logged = [entry for entry in trainer.state.log_history if "driple/step_s_measured" in entry]
    assert [entry["step"] for entry in logged] == [8, 12]
    assert all(entry["driple/step_s_predicted"] > 0 for entry in logged)
    (file,) = (tmp_path / "events").rglob("events.out.tfevents.*")
    events = EventAccumulator(str(file.parent))
    events.Reload()
    (measured,) = [tag for tag in events.Tags()["scalars"] if tag.endswith("step_s_measured")]
    assert [event.step for event in events.Scalars(measured)] == [8, 12]
    (run,) = read_runs(table)
    assert (run.job, run.setting, run.batch_size, run.seq_len) == (job, "1xCPU", 2, SEQ_LEN)
    assert run.grad_accumulation == 2
    assert run.step_s == pytest.approx(callback.steps.step_s, rel=1e-4)
    assert callback.steps.num_steps == 6, "12 updates, the first and five for warm-up left out"


def test_as_an_argument_it_prints_and_an_evaluation_is_no_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = _arguments(tmp_path, eval_strategy="steps", eval_steps=1, max_steps=9)
    callback = TrainerWatch(write_gpt(tmp_path), "1xCPU", options=JobOptions(seq_len=SEQ_LEN))
    trainer = _trainer(tmp_path, args)
    trainer.add_callback(callback)
    trainer.train()
    assert "so none was timed" in capsys.readouterr().out
    assert callback.steps.num_steps == 0, "an evaluation stands between all steps"


def test_a_job_that_is_none_ends_before_the_first_step(tmp_path: Path) -> None:
    write_gpt(tmp_path)
    trainer = _trainer(tmp_path, _arguments(tmp_path))
    watch(trainer, "hf:nowhere", "1xCPU")
    with pytest.raises(DripleError, match="nowhere"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_a_table_that_goes_away_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    job = write_gpt(tmp_path)
    trainer = _trainer(tmp_path, _arguments(tmp_path))
    watch(trainer, job, "1xCPU", options=JobOptions(seq_len=SEQ_LEN), table=folder / "runs.csv")
    folder.rmdir()
    with pytest.warns(UserWarning, match="the run was not added to"):
        trainer.train()
    assert trainer.state.global_step == 12


def test_arguments_state_what_the_user_left_out(tmp_path: Path) -> None:
    args = _arguments(tmp_path, bf16=True, **{RECOMPUTE: True}, optim="adafactor")
    options = options_of_arguments(args, JobOptions(batch_size=16))
    assert (options.batch_size, options.grad_accumulation) == (16, 2)
    assert (options.precision, options.optimizer) == ("amp-bf16", "adafactor")
    assert options.activation_checkpointing == "full"
    fused = options_of_arguments(_arguments(tmp_path, optim="adamw_torch_fused"), JobOptions())
    assert fused.optimizer == "adamw-fused"
    other = options_of_arguments(_arguments(tmp_path, optim="galore_adamw"), JobOptions())
    assert other.optimizer is None
