"""The callback in a real Trainer of Lightning on a CPU."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger

from driple.integrations.lightning import LightningWatch, options_of_trainer
from driple.jobs.load import JobOptions
from driple.runs.users_table import read_runs

MODEL = """
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
"""


class Classifier(lightning.pytorch.LightningModule):
    """The same network as MODEL."""

    def __init__(self, optimizer: type[torch.optim.Optimizer] = torch.optim.SGD) -> None:
        super().__init__()
        space: dict[str, Any] = {}
        exec(MODEL, space)  # noqa: S102
        self.net = space["build"]()
        self.optimizer = optimizer

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images), labels)

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        self.training_step(batch, batch_idx)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.optimizer(self.parameters(), lr=0.1)  # type: ignore[call-arg]


def _loader() -> torch.utils.data.DataLoader[Any]:
    data = torch.utils.data.TensorDataset(torch.rand(80, 3, 8, 8), torch.randint(0, 10, (80,)))
    return torch.utils.data.DataLoader(data, batch_size=4)


def _trainer(folder: Path, callback: LightningWatch, **more: Any) -> lightning.pytorch.Trainer:
    given: dict[str, Any] = {
        "max_epochs": 1, "accelerator": "cpu", "accumulate_grad_batches": 2,
        "log_every_n_steps": 1, "enable_progress_bar": False, "enable_model_summary": False,
        "enable_checkpointing": False, "logger": CSVLogger(folder, name="logs", version=0),
    }  # fmt: skip
    return lightning.pytorch.Trainer(
        default_root_dir=folder, callbacks=[callback], **{**given, **more}
    )


@pytest.fixture
def job(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text(MODEL)
    return f"{file}:build"


def test_a_training_logs_prints_and_adds_its_run(
    job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 batches are 10 updates, of which four are timed: one for each after the warm-up."""
    table = tmp_path / "runs.csv"
    options = JobOptions(input_shape=(3, 8, 8))
    callback = LightningWatch(job, "1xCPU", options=options, table=table)
    _trainer(tmp_path, callback).fit(Classifier(), _loader())
    assert callback.steps.num_steps == 4
    assert "driple: step " in capsys.readouterr().out
    with (tmp_path / "logs/version_0/metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("driple/step_s_measured")]
    assert len(rows) == 4
    assert float(rows[-1]["driple/step_s_measured"]) == pytest.approx(callback.steps.step_s)
    assert float(rows[-1]["driple/step_s_predicted"]) > 0
    (run,) = read_runs(table)
    assert (run.job, run.setting, run.batch_size, run.optimizer) == (job, "1xCPU", 4, "sgd")
    assert run.input_shape == (3, 8, 8)
    assert run.grad_accumulation == 2
    assert run.step_s == pytest.approx(callback.steps.step_s, rel=1e-4)


def test_a_validation_is_no_step(job: str, tmp_path: Path) -> None:
    """Ten validations in an epoch of ten updates stand between all of them."""
    callback = LightningWatch(job, "1xCPU", options=JobOptions(input_shape=(3, 8, 8)))
    trainer = _trainer(tmp_path, callback, val_check_interval=2)
    trainer.fit(Classifier(), _loader(), _loader())
    assert callback.steps.num_steps == 0


def test_the_trainer_states_what_the_user_left_out(job: str, tmp_path: Path) -> None:
    callback = LightningWatch(job, "1xCPU", options=JobOptions(input_shape=(3, 8, 8)))
    trainer = _trainer(tmp_path, callback, precision="bf16-mixed")
    trainer.fit(Classifier(torch.optim.AdamW), _loader())
    read = options_of_trainer(trainer, JobOptions(batch_size=7))
    assert (read.batch_size, read.grad_accumulation) == (7, 2)
    assert (read.precision, read.optimizer) == ("amp-bf16", "adamw")
    assert callback.steps.options.batch_size == 4
