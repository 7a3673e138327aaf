"""The training loop: epochs, best weights so far, and a state for resuming after a kill.

    Prepared --one epoch after another--> best weights, log.jsonl, state.safetensors

Every epoch has its own random numbers, from the seed and the number of the epoch. So only the
weights and the optimizer are saved: best epoch, patience and schedule follow from the validation
losses in the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from driple.errors import ConfigError
from driple.inspector.batch import GroupBatch
from driple.inspector.model import Inspector
from driple.training.config import TrainConfig
from driple.training.optimize import RateSchedule, loss_of, make_optimizer, set_rate
from driple.training.prepare import PreparedData, PreparedPart, select
from driple.training.runfiles import EpochRecord, LogWriter, TrainState, save_state

__all__ = ["Progress", "ProgressCallback", "Trainer", "predict_scaled"]

EVALUATION_BATCH_SIZE = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Progress of a run; passed to the callback after every graph built and every epoch.

    Attributes:
        stage: `inputs` while graphs are grouped, then `epochs`.
        done: graphs or epochs done.
        total: graphs in all, or `max_epochs`.
        record: losses of the epoch just done, in the stage `epochs`.
        best_epoch: epoch with the lowest validation loss so far; 0 before the first.
    """

    stage: Literal["inputs", "epochs"]
    done: int
    total: int
    record: EpochRecord | None = None
    best_epoch: int = 0


ProgressCallback = Callable[[Progress], None]


class Trainer:
    """State of a training: weights, optimizer, best weights so far.

    Draws from torch's global random generator, which the caller restores.
    """

    def __init__(
        self,
        prepared: PreparedData,
        config: TrainConfig,
        folder: Path,
        state: TrainState | None,
        *,
        make_model: Callable[[], nn.Module],
    ) -> None:
        torch.manual_seed(config.seed)
        self.prepared, self.config, self.folder = prepared, config, folder
        self.model = make_model()
        self.moving = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.inspectors = [part for part in self.model.modules() if isinstance(part, Inspector)]
        shared = [w for part in self.inspectors if part.shared for w in part.shared.parameters()]
        self.optimizer = make_optimizer(config, self.moving, shared)
        self.best = _copy(self.model.state_dict())
        self.last = state
        if state is not None:
            self._restore(state)
        self.log = LogWriter(folder, keep_epochs=0 if state is None else state.epoch)
        self.best_epoch, self.best_loss = 0, math.inf
        for record in self.log.records:
            self._note_best(record)
        self.schedule = RateSchedule(config, [record.val_loss for record in self.log.records])

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.log.records)

    @property
    def out_of_patience(self) -> bool:
        """Whether the validation loss has not improved for too long."""
        since = max(self.best_epoch, self.config.growth_epochs)
        return self.epoch - since >= self.config.patience_epochs

    def run(
        self, report: ProgressCallback, clock: Callable[[], float], save_every_s: float
    ) -> None:
        """Train until patience or epochs run out; save the state regularly and when stopped."""
        try:
            self._run(report, clock, save_every_s)
        except (KeyboardInterrupt, SystemExit):
            self._save()
            raise
        self._save()

    def _run(
        self, report: ProgressCallback, clock: Callable[[], float], save_every_s: float
    ) -> None:
        saved_at = clock()
        while self.epoch < self.config.max_epochs and not self.out_of_patience:
            record = self._one_epoch(clock)
            if self._note_best(record):
                self.best = _copy(self.model.state_dict())
            self.schedule.observe(record.val_loss)
            self.log.append(record)
            self.last = self._state()
            if clock() - saved_at >= save_every_s:
                self._save()
                saved_at = clock()
            report(
                Progress(
                    stage="epochs",
                    done=self.epoch,
                    total=self.config.max_epochs,
                    record=record,
                    best_epoch=self.best_epoch,
                )
            )

    def best_model(self) -> nn.Module:
        """The model with its best weights, in evaluation mode."""
        self._set_depth(self.config.growth_epochs + 1)
        self.model.load_state_dict(self.best)
        return self.model.eval()

    def _set_depth(self, epoch: int) -> None:
        for part in self.inspectors:
            num_repeated = part.num_layers - 1 - part.num_tuned
            part.shorten(self.config.num_passed(epoch, num_repeated))

    def _one_epoch(self, clock: Callable[[], float]) -> EpochRecord:
        started = clock()
        epoch = self.epoch + 1
        rate = self.schedule.rate(epoch)
        set_rate(self.optimizer, rate, shared=epoch > self.config.growth_epochs)
        self._set_depth(epoch)
        generator = np.random.default_rng([self.config.seed, epoch])
        torch.manual_seed(int(generator.integers(2**62)))  # dropout of this epoch
        part = self.prepared.parts["train"]
        order = torch.from_numpy(generator.permutation(len(part.scaled)))
        self.model.train()
        total = 0.0
        for rows in torch.split(order, self.config.batch_size):
            total += self._one_step(part, rows) * len(rows)
        validation = self.prepared.parts["validation"]
        predicted = torch.from_numpy(predict_scaled(self.model, validation.batch))
        record = EpochRecord(
            epoch=epoch,
            train_loss=total / len(order),
            val_loss=float(self._loss(predicted, validation.scaled)),
            lr=rate,
            seconds=clock() - started,
        )
        self._check_finite(record)
        return record

    def _one_step(self, part: PreparedPart, rows: Tensor) -> float:
        """Train on one batch; its loss before the step."""
        self.optimizer.zero_grad(set_to_none=True)
        outputs = self.model(select(part.batch, rows))
        members = len(outputs) if outputs.dim() == 3 else 1
        loss = self._loss(outputs, part.scaled[rows].expand_as(outputs))
        # Gradients of the members are independent.
        (loss * members).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if self.config.clip_norm > 0:
            nn.utils.clip_grad_norm_(self.moving, self.config.clip_norm * math.sqrt(members))
        self.optimizer.step()
        return float(loss.detach())

    def _loss(self, outputs: Tensor, scaled: Tensor) -> Tensor:
        return loss_of(self.config, outputs, scaled, self.prepared.target_scaler.scale)

    def _check_finite(self, record: EpochRecord) -> None:
        for name in ("train_loss", "val_loss"):
            value = getattr(record, name)
            if not math.isfinite(value):
                raise ConfigError(
                    f"training diverged: {name} is {value} in epoch {record.epoch}, with "
                    f"learning rate {self.config.learning_rate:g} and gradients clipped at "
                    f"{self.config.clip_norm:g}; look for extreme labels in the data set, or use "
                    "another seed"
                )

    def _note_best(self, record: EpochRecord) -> bool:
        grown = record.epoch > self.config.growth_epochs
        better = grown and record.val_loss < self.best_loss
        if better:
            self.best_epoch, self.best_loss = record.epoch, record.val_loss
        return better

    def _state(self) -> TrainState:
        """A copy of the state after whole epochs: an epoch that is stopped has moved weights."""
        slots = [self.optimizer.state[parameter] for parameter in self.moving]
        return TrainState(
            epoch=self.epoch,
            model=_copy(self.model.state_dict()),
            best=self.best,
            optimizer=[_copy(slot) for slot in slots],
        )

    def _save(self) -> None:
        self.log.sync()
        if self.last is not None:
            save_state(self.folder, self.last)

    def _restore(self, state: TrainState) -> None:
        try:
            self.model.load_state_dict(state.model)
            for parameter, slots in zip(self.moving, state.optimizer, strict=True):
                self.optimizer.state[parameter] = _copy(slots)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"the saved state in {self.folder} does not fit the model; "
                "delete the folder and train anew"
            ) from error
        self.best = state.best


def predict_scaled(model: nn.Module, batch: GroupBatch) -> npt.NDArray[np.float32]:
    """Scaled targets of all graphs of a batch, shape [n, 12]; sets evaluation mode."""
    model.eval()
    with torch.no_grad():
        rows = torch.split(torch.arange(len(batch.x)), EVALUATION_BATCH_SIZE)
        scaled: npt.NDArray[np.float32] = torch.cat(
            [model(select(batch, some)) for some in rows]
        ).numpy()
    return scaled


def _copy(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}
