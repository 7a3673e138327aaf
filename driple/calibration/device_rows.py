"""Published steps on one device, with the ops of their jobs, as the fit of devices takes them.

PublishedRow, StepStore -> OpKinds, StepRow      (PyTorch)
PublishedRun, BatchedGraph -> OpKinds, StepRow   (TensorFlow)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from driple.calibration.batched import BatchedGraph
from driple.calibration.device_fit import StepRow
from driple.calibration.links import program_of
from driple.calibration.published import PublishedRun
from driple.calibration.published_rows import PublishedRow
from driple.calibration.step_key import StepKey
from driple.calibration.step_store import StepStore
from driple.catalog import device_named
from driple.errors import ConfigError
from driple.graph.step_facts import OptimizerUpdate, Phase
from driple.simulate.gpu_kernels import Library, Runtime
from driple.simulate.prepared_job import OpKinds, PreparedJob

__all__ = ["job_of_row", "library_of", "step_key", "tensorflow_steps", "torch_steps"]

_ACCESSES_OF_SGD = 3
_KERNELS_OF_MOMENTUM = 3  # for each parameter, where none updates several
_FIRST_NGC_OF_TORCH2 = 23.0
_NGC = re.compile(r"ngc(\d+)\.(\d+)")
_TORCH = re.compile(r"torch(\d+)\.")


def step_key(row: PublishedRow) -> StepKey:
    """The stored step of a row."""
    return StepKey(
        job=row.job,
        size=row.size or 0,
        task=row.task,
        precision=row.precision,
        channels_last=row.channels_last,
    )


def library_of(name: str) -> Library | None:
    """Generation of a row's library; None for frameworks that are not fitted."""
    ngc, torch = _NGC.fullmatch(name), _TORCH.match(name)
    if ngc is not None:
        return "torch2" if float(ngc[1]) >= _FIRST_NGC_OF_TORCH2 else "torch1"
    if torch is not None:
        return "torch1" if torch[1] == "1" else "torch2"
    return "torch1" if name in {"ngc", ""} else None


def job_of_row(row: PublishedRow, store: StepStore) -> PreparedJob:
    """The job of a row, with its accumulation, checkpointing and update.

    Raises:
        ConfigError: the row has no batch size, or the store lacks the step.
    """
    if row.batch is None:
        raise ConfigError(f"row {row.id} states no batch size")
    stored = store.step(step_key(row))
    optimizer = row.job_optimizer if row.job_optimizer in stored.updates else ""
    made = stored.job(row.batch, compiled=row.compiled, optimizer=optimizer)
    executions = made.kinds.executions * row.grad_accumulation
    if row.activation_checkpointing == "full":
        executions = executions * (1 + (stored.phases == Phase.FORWARD))
    library = library_of(row.library)
    graph = made.graph
    if library == "torch1" and graph.is_training:
        graph = replace(graph, update=_one_by_one(graph.update, len(graph.traffic.received_bytes)))
    return PreparedJob(
        graph,
        kinds=replace(made.kinds, executions=executions.astype(np.int64)),
        program=replace(made.program, library=library),
    )


def _one_by_one(update: OptimizerUpdate, parameters: int) -> OptimizerUpdate:
    """The update as PyTorch 1 makes it: parameter by parameter."""
    if update.optimizer.endswith("-fused"):
        return update
    return replace(update, num_kernels=max(_KERNELS_OF_MOMENTUM * parameters, update.num_kernels))


def torch_steps(
    rows: Iterable[PublishedRow], weights: Sequence[float], store: StepStore
) -> Iterator[tuple[OpKinds, StepRow]]:
    """Steps of PyTorch on one device, those of one job after each other.

    Args:
        rows: usable ones, on one device.
        weights: of each.
        store: of the jobs' steps.
    """
    last: tuple[tuple[object, ...], PreparedJob] | None = None
    for row, weight in zip(rows, weights, strict=True):
        key = (step_key(row), row.batch, row.compiled, row.job_optimizer, row.grad_accumulation,
               row.activation_checkpointing, library_of(row.library))  # fmt: skip
        if last is None or last[0] != key:
            last = (key, job_of_row(row, store))
        job = last[1]
        if row.step_s is None:
            raise ConfigError(f"row {row.id} states no time")
        yield (
            job.kinds,
            StepRow(
                device=device_named(row.device),
                runtime=job.runtime,
                update=job.graph.update,
                source=f"{row.source} {row.library}",
                seconds=row.step_s,
                weight=weight,
            ),
        )


def tensorflow_steps(
    runs: Iterable[PublishedRun],
    weights: Sequence[float],
    graphs: Mapping[tuple[str, bool], BatchedGraph],
) -> Iterator[tuple[OpKinds, StepRow]]:
    """Steps of TensorFlow on one device."""
    made: dict[tuple[str, bool, int, bool], PreparedJob] = {}
    for run, weight in zip(runs, weights, strict=True):
        key = (run.model, run.half, run.batch_size, run.fused)
        if key not in made:
            made[key] = graphs[run.model, run.half].job(run.batch_size, program_of(run))
        graph = graphs[run.model, run.half].graph
        update = OptimizerUpdate(
            optimizer="sgd",
            moved_bytes=int(_ACCESSES_OF_SGD * graph.received_bytes),
            num_kernels=len(graph.traffic.received_bytes),
        )
        yield (
            made[key].kinds,
            StepRow(
                device=device_named(run.device),
                runtime=Runtime("tensorflow", compiled=run.fused),
                update=update,
                source=run.source,
                seconds=run.seconds,
                weight=weight,
            ),
        )
