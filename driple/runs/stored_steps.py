"""Steps of rows from the store of published steps, which needs neither PyTorch nor timm.

MeasuredRun --StepKey--> StoredStep --batch size, optimizer, compiler, passes--> PreparedJob
"""

from __future__ import annotations

from dataclasses import replace

from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.step_key import StepKey
from driple.runs.step_store import LEAST_BATCH, StepStore, StoredStep
from driple.simulate.prepared_job import PreparedJob, Program

__all__ = ["StoredSteps", "key_of"]


class StoredSteps:
    """Steps of the store; a row whose step it lacks is refused.

    Args:
        store: the store.
    """

    def __init__(self, store: StepStore) -> None:
        self._store = store
        self._last: tuple[StepKey, StoredStep] | None = None
        self._has: dict[StepKey, bool] = {}

    def lacks(self, row: MeasuredRun) -> str:
        """Why the store has no step of a row; empty if it has one."""
        if not row.batch_size:
            return "the row has no batch size"
        if row.batch_size < LEAST_BATCH:
            return "of one example, PyTorch runs other ops than the stored ones"
        key = key_of(row)
        if key not in self._has:
            self._has[key] = key in self._store
        return "" if self._has[key] else f"the store has no step {key.name}"

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        """The step of one device.

        Raises:
            ConfigError: the store lacks it, or the update of its optimizer.
            DatasetError: the store is damaged.
        """
        key = key_of(row)
        if self._last is None or self._last[0] != key:
            self._last = (key, self._store.step(key))
        if row.batch_size is None:
            raise ConfigError(f"{row.named} has no batch size, which a stored step needs")
        step = self._last[1]
        job = step.job(
            row.batch_size,
            Program(cuda_graphs=row.cuda_graphs),
            compiled=row.compiled,
            optimizer=row.optimizer if row.optimizer in step.updates else "",
            passes=row.grad_accumulation,
        )
        return _as_library(job, row)


def key_of(row: MeasuredRun) -> StepKey:
    """The stored step of a row, whether the store has it or not."""
    return StepKey(
        job=row.job,
        size=(row.input_shape or (row.seq_len or 0,))[-1],
        task=row.task,
        precision=row.precision or "fp32",
        channels_last=row.channels_last,
        activation_checkpointing=row.activation_checkpointing or "none",
        accumulates=row.grad_accumulation > 1,
        capability=row.capability,
    )


def _as_library(job: PreparedJob, row: MeasuredRun) -> PreparedJob:
    """The job run by the row's library: PyTorch 1 updates parameter by parameter."""
    if not row.library:
        return job
    graph, library = job.graph, row.library
    update = graph.update
    if library == "torch1" and graph.is_training:
        update = update.one_by_one(len(graph.traffic.received_bytes))
    program = replace(job.program, library=library)  # type: ignore[arg-type]  # checked as it is read
    return PreparedJob(replace(graph, update=update), kinds=job.kinds, program=program)
