"""A callback of Lightning's Trainer.

    Trainer(callbacks=[LightningWatch("train.py:build_model", "1xH100", table="my-runs.csv")])

Predicted and measured step time and memory are logged by `log_dict` of the module, so that they
stand in every logger of the trainer. What the trainer states is taken from there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from driple.integrations.step_watch import StepWatch, with_options
from driple.jobs.load import JobOptions

__all__ = ["LightningWatch", "options_of_trainer"]

_PRECISIONS = {
    "16-mixed": "amp-fp16",
    "bf16-mixed": "amp-bf16",
    "bf16-true": "bf16",
    "16-true": "fp16",
    "32-true": "fp32",
}


class LightningWatch(Callback):
    """Prints and logs predicted beside measured step time and memory.

    Args:
        job: JOB as on the command line, such as `timm:resnet50`.
        setting: where it runs, such as `1xH100`.
        options: of the job; what is left out is taken from the trainer.
        table: CSV file for `driple transfer --from gpu`; None for none.
    """

    def __init__(
        self,
        job: str,
        setting: str,
        *,
        options: JobOptions | None = None,
        table: Path | str | None = None,
    ) -> None:
        super().__init__()
        self.steps = StepWatch(job, setting, options=options, table=table)
        self._updates = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Predict, with what the trainer states."""
        self.steps.options = options_of_trainer(trainer, self.steps.options)
        self.steps.begin()
        self._updates = trainer.global_step
        if pl_module.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(pl_module.device)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Time a step once the parameters were updated, and log it."""
        if trainer.global_step == self._updates:
            return
        self._updates = trainer.global_step
        self.steps.step_done()
        if pl_module.device.type == "cuda":
            self.steps.memory_bytes = float(torch.cuda.max_memory_allocated(pl_module.device))
        numbers = self.steps.numbers()
        if numbers:
            pl_module.log_dict(numbers, on_step=True, on_epoch=False)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """A validation is no part of a step."""
        self.steps.pause()

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Nor is a checkpoint."""
        self.steps.pause()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print the line, and append the run; a table that cannot be written is a warning."""
        if trainer.is_global_zero:
            self.steps.end()


def options_of_trainer(trainer: Trainer, options: JobOptions) -> JobOptions:
    """The options, with what the trainer states where the user gave nothing."""
    return with_options(
        options,
        batch_size=_batch_size(trainer),
        grad_accumulation=trainer.accumulate_grad_batches,
        precision=_PRECISIONS.get(str(trainer.precision)),
        optimizer=_optimizer(trainer),
    )


def _batch_size(trainer: Trainer) -> int | None:
    """Samples of a batch by the loader; None of loaders that state none."""
    size = getattr(trainer.train_dataloader, "batch_size", None)
    return size if isinstance(size, int) else None


def _optimizer(trainer: Trainer) -> str | None:
    """Name of the one optimizer; None of several, and of those that Driple does not know."""
    if len(trainer.optimizers) != 1:
        return None
    optimizer = trainer.optimizers[0]
    name = type(optimizer).__name__.lower()
    if name == "sgd":
        return "momentum" if optimizer.param_groups[0].get("momentum") else "sgd"
    return name if name in {"adam", "adamw"} else None
