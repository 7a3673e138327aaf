"""Published steps on one device, with the ops of their jobs, as the fit of devices takes them.

MeasuredRun, StepSource -> OpKinds, StepRow      (PyTorch)
TensorFlowRun, BatchedGraph -> OpKinds, StepRow    (TensorFlow)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from driple.catalog import device_named
from driple.runs.measured_run import MeasuredRun
from driple.runs.steps import StepSource
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.prepared_job import OpKinds, PreparedJob
from scripts.fits.batched import BatchedGraph
from scripts.fits.fit_table import StepRow
from scripts.fits.links import program_of
from scripts.fits.spread_rows import update_on_one

__all__ = ["tensorflow_steps", "torch_steps"]


def torch_steps(
    rows: Iterable[MeasuredRun], weights: Sequence[float], steps: StepSource
) -> Iterator[tuple[OpKinds, StepRow]]:
    """Steps of PyTorch on one device; those of one job should follow each other.

    Args:
        rows: on one device, or what a step on several takes without its exchange.
        weights: of each in the fit.
        steps: of the rows.
    """
    last: tuple[tuple[object, ...], PreparedJob] | None = None
    for row, weight in zip(rows, weights, strict=True):
        if last is None or last[0] != row.step_key:
            last = (row.step_key, steps.prepared(row))
        job = last[1]
        yield (
            job.kinds,
            StepRow(
                device=device_named(row.device),
                runtime=job.runtime,
                update=update_on_one(row, job.graph.update),
                source=f"{row.source} {row.library}",
                seconds=row.step_s,
                weight=weight,
                tensors=job.handed_tensors,
            ),
        )


def tensorflow_steps(
    runs: Iterable[TensorFlowRun],
    weights: Sequence[float],
    graphs: Mapping[tuple[str, bool], BatchedGraph],
) -> Iterator[tuple[OpKinds, StepRow]]:
    """Steps of TensorFlow on one device.

    Args:
        runs: on one device.
        weights: of each in the fit.
        graphs: of each model in single and half precision.
    """
    jobs: dict[tuple[str, bool, int, bool], PreparedJob] = {}
    for run, weight in zip(runs, weights, strict=True):
        key = (run.job, run.half, run.batch_size, run.compiled)
        if key not in jobs:
            jobs[key] = graphs[run.job, run.half].job(run.batch_size, program_of(run))
        graph = graphs[run.job, run.half].graph
        yield (
            jobs[key].kinds,
            StepRow(
                device=device_named(run.device),
                runtime=Runtime("tensorflow", compiled=run.compiled),
                update=graph.update,
                source=run.source,
                seconds=run.step_s,
                weight=weight,
            ),
        )
