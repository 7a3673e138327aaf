"""A callback of the Trainer of transformers (and of trainers made from it, such as those of TRL).

    trainer = Trainer(model, args, train_dataset=data)
    watch(trainer, "hf:PATH", "1xH100", table="my-runs.csv")
    trainer.train()

Predicted and measured step time and memory are logged by `trainer.log`, so that they stand in
TensorBoard, W&B or wherever the trainer reports to. What its arguments state is taken from there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from driple.integrations.step_watch import StepWatch, with_options
from driple.jobs.load import JobOptions
from driple.jobs.training_config.fields import NotModelledError
from driple.jobs.training_config.rules import optimizer_named

__all__ = ["TrainerWatch", "options_of_arguments", "watch"]


class TrainerWatch(TrainerCallback):
    """Prints and logs predicted beside measured step time and memory.

    Args:
        job: JOB as on the command line, such as `hf:PATH`.
        setting: where it runs, such as `1xH100`.
        options: of the job; what is left out is taken from the training arguments.
        table: CSV file for `driple transfer --from gpu`; None for none.
        log: called with the numbers, such as `trainer.log`; None prints them alone.
    """

    def __init__(
        self,
        job: str,
        setting: str,
        *,
        options: JobOptions | None = None,
        table: Path | str | None = None,
        log: Callable[[dict[str, float]], None] | None = None,
    ) -> None:
        self.steps = StepWatch(job, setting, options=options, table=table)
        self._log = log

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Predict, with what the arguments state."""
        self.steps.options = options_of_arguments(args, self.steps.options)
        self.steps.begin()
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats(args.device)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Time a step; log where the trainer logs."""
        self.steps.step_done()
        if torch.cuda.is_available():
            self.steps.memory_bytes = float(torch.cuda.max_memory_allocated(args.device))
        numbers = self.steps.numbers()
        is_due = control.should_log or state.global_step >= state.max_steps
        if self._log is not None and numbers and is_due and state.is_world_process_zero:
            self._log(numbers)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """An evaluation is no part of a step."""
        self.steps.pause()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Nor is a checkpoint."""
        self.steps.pause()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Print the line, and append the run; a table that cannot be written is a warning."""
        if state.is_world_process_zero:
            self.steps.end()


def watch(
    trainer: Trainer,
    job: str,
    setting: str,
    *,
    options: JobOptions | None = None,
    table: Path | str | None = None,
) -> TrainerWatch:
    """Add the callback to a trainer, and log by it.

    Args:
        trainer: that will train.
        job: JOB as on the command line.
        setting: where it runs.
        options: of the job; what is left out is taken from the training arguments.
        table: CSV file for `driple transfer --from gpu`; None for none.
    """
    callback = TrainerWatch(job, setting, options=options, table=table, log=trainer.log)
    trainer.add_callback(callback)
    return callback


def options_of_arguments(args: TrainingArguments, options: JobOptions) -> JobOptions:
    """The options, with what the training arguments state where the user gave nothing."""
    precision = "amp-bf16" if args.bf16 else "amp-fp16" if args.fp16 else None
    return with_options(
        options,
        batch_size=args.per_device_train_batch_size,
        grad_accumulation=args.gradient_accumulation_steps,
        precision=precision,
        optimizer=_optimizer(args),
        activation_checkpointing="full" if _recomputes(args) else None,
        compiled=True if args.torch_compile else None,
    )


def _optimizer(args: TrainingArguments) -> str | None:
    """The optimizer by its name in Driple; None of one that Driple has no model of."""
    try:
        name = optimizer_named(getattr(args.optim, "value", args.optim), {})["optimizer"]
    except NotModelledError:
        return None
    return str(name)


def _recomputes(args: TrainingArguments) -> bool:
    """Whether activations are recomputed; transformers renamed the argument in version 5."""
    name = "activation_checkpointing"
    return bool(getattr(args, name if hasattr(args, name) else "gradient_checkpointing"))
