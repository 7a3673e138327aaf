"""Published steps on one device as one table of their ops, which rooflines are fitted to.

    TensorFlowRun, graphs -> StepRows (unit times of every kind of op of every step)

The simulator's own model of GPUs is fitted by `scripts.fits.device_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import DEVICES
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.simulate.op_facts import OpFacts
from driple.simulate.optable import OpTable
from scripts.fits.batched import BatchedGraph

__all__ = ["StepRows", "step_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ACCESSES_OF_SGD = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRows:
    """Whole steps on single devices as one table.

    Runs of the same step on the same device are one case, which is simulated once.

    Attributes:
        case_of: shape [num_measurements], case of each.
        table: kinds of ops that run, one case after another.
        executions: shape [num_rows], how often each kind runs.
        starts: shape [num_cases], first row of each case.
        update_s: shape [num_cases], seconds at the peak to apply the gradients.
        seconds: shape [num_measurements], measured.
    """

    case_of: IntArray
    table: OpTable
    executions: FloatArray
    starts: IntArray
    update_s: FloatArray
    seconds: FloatArray


def step_rows(
    runs: Sequence[TensorFlowRun], graphs: Mapping[tuple[str, bool], BatchedGraph]
) -> StepRows:
    """The steps of runs on single devices.

    Args:
        runs: on one device each, one or more.
        graphs: of each model in single and half precision.
    """
    keys = [(run.device, run.job, run.half, run.batch_size, run.compiled) for run in runs]
    cases = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    tables, executions, update_s = [], [], []
    for name, model, half, batch_size, _ in cases:
        graph, device = graphs[model, half], DEVICES[name]
        table = graph.table(batch_size)
        some = np.flatnonzero((table.moved > 0) & (graph.runs > 0))
        tables.append(table.take(some))
        executions.append(graph.runs[some])
        update_s.append(_ACCESSES_OF_SGD * graph.graph.received_bytes / device.bytes_per_s)
    lengths = [len(rows) for rows in executions]
    return StepRows(
        case_of=np.array([cases[key] for key in keys], dtype=np.int64),
        table=_joined(tables),
        executions=np.concatenate(executions),
        starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        update_s=np.array(update_s),
        seconds=np.array([run.step_s for run in runs]),
    )


def _joined(tables: Sequence[OpTable]) -> OpTable:
    """One table after another."""
    return OpTable(
        facts=OpFacts(
            kinds=tuple(kind for table in tables for kind in table.facts.kinds),
            groups=np.concatenate([table.facts.groups for table in tables]),
            values=np.concatenate([table.facts.values for table in tables]),
            picks=np.concatenate([table.facts.picks for table in tables]),
            turns=np.concatenate([table.facts.turns for table in tables]),
        ),
        **{
            name: np.concatenate([getattr(table, name) for table in tables])
            for name in OpTable.__dataclass_fields__
            if name != "facts"
        },
    )
