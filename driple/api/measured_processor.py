"""The three numbers of a processor's cores, from training steps that were timed on them.

network, batch, seconds -> ProcessorStep;  ProcessorSteps -> MachineProcessor
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.catalog.machine_file import MachineProcessor
from driple.errors import MeasureError
from driple.simulate.optable import OpTable
from driple.simulate.processor import ProcessorPace, op_seconds, processor_update_s

__all__ = ["ProcessorStep", "pace_of", "processor_of"]

FloatArray = npt.NDArray[np.float64]
_LEAST_PROGRAMS = 5
_START = (1e11, 1e10, 1e-5)  # FLOP/s, bytes/s and seconds of an op
_FARTHEST = 1e3  # from there


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorStep:
    """A timed training step as the simulator takes it.

    Attributes:
        table: of its ops.
        executions: of each row of the table.
        update_bytes: that the optimizer reads and writes.
        tensors: that are trained.
        seconds: measured.
    """

    table: OpTable
    executions: FloatArray
    update_bytes: float
    tensors: int
    seconds: float

    @classmethod
    def of(
        cls, module: Any, batch: Any, seconds: float, *, optimizer: str = "momentum"
    ) -> ProcessorStep:
        """A network that was trained.

        Args:
            module: of PyTorch.
            batch: inputs and labels.
            seconds: of a step.
            optimizer: that trained it.
        """
        from driple.jobs.pytorch.modules import job_of_module
        from driple.simulate.prepared_job import PreparedJob

        job = PreparedJob.of_job(job_of_module(module, batch, optimizer=optimizer))
        kinds = job.kinds
        return cls(
            table=kinds.table,
            executions=np.bincount(
                kinds.kind_of,
                weights=kinds.executions.astype(np.float64),
                minlength=len(kinds.table.moved),
            ).astype(np.float64),
            update_bytes=job.graph.update.moved_bytes,
            tensors=job.handed_tensors,
            seconds=seconds,
        )

    def predicted_s(self, pace: ProcessorPace) -> float:
        """Seconds of the step on cores of a pace."""
        computing_s = float((op_seconds(self.table, pace) * self.executions).sum())
        return computing_s + processor_update_s(self.update_bytes, self.tensors, pace)


def pace_of(steps: Sequence[ProcessorStep]) -> ProcessorPace:
    """The pace that leaves least of the logarithm of predicted over measured seconds.

    Raises:
        MeasureError: fewer than five steps.
        MissingExtraError: scipy is not installed.
    """
    from driple.runs.solver import least_squares

    if len(steps) < _LEAST_PROGRAMS:
        raise MeasureError(
            f"{len(steps)} programs do not show the pace of a processor, {_LEAST_PROGRAMS} do"
        )

    def left(logs: FloatArray) -> FloatArray:
        pace = _pace(logs)
        return np.array([np.log(one.predicted_s(pace) / one.seconds) for one in steps])

    begin = np.log(_START)
    bounds = (begin - np.log(_FARTHEST), begin + np.log(_FARTHEST))
    fit = least_squares(left, begin, bounds=bounds, loss="soft_l1", f_scale=0.15)
    return _pace(fit.x)


def _pace(logs: FloatArray) -> ProcessorPace:
    flops, nbytes, op_s = np.exp(logs).tolist()
    return ProcessorPace(flops_per_s=flops, bytes_per_s=nbytes, op_s=op_s)


def processor_of(steps: Sequence[ProcessorStep], threads: int) -> MachineProcessor:
    """The table of a machine file.

    Args:
        steps: that were timed.
        threads: of a worker.

    Raises:
        MeasureError: fewer than five steps.
        MissingExtraError: scipy is not installed.
    """
    pace = pace_of(steps)
    errors = [abs(one.predicted_s(pace) / one.seconds - 1) for one in steps]
    return MachineProcessor(
        flops_per_s=pace.flops_per_s,
        bytes_per_s=pace.bytes_per_s,
        us_per_op=1e6 * pace.op_s,
        threads=threads,
        programs=len(steps),
        median_pct=100 * float(np.median(errors)),
    )
