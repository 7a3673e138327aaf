"""Published steps on several devices that tell of computing, since their exchange hides behind it.

    MeasuredRun on several devices --less what its exchange adds--> MeasuredRun, its computing

Large language models are published on eight devices and more alone. Of a step whose exchange adds
little, the simulator takes that little off; an error of a tenth of it is no error of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from driple.cluster.setting import Setting
from driple.graph.step_facts import OptimizerUpdate
from driple.runs.measured_run import ALL_REDUCE, MeasuredRun
from driple.runs.steps import StepSource
from driple.runs.validation.simulated import NUM_STEPS, simulate_rows
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s

__all__ = ["computing_of", "telling_rows", "update_on_one"]

_MOST_ADDED = 0.2  # by the exchange, as a share of the step


def telling_rows(rows: Iterable[MeasuredRun]) -> list[MeasuredRun]:
    """Training steps of PyTorch on several devices, of jobs without a row on one such device."""
    known = list(rows)
    alone = {(row.job, row.device, row.library) for row in known if row.scheme == "single"}
    return [
        row
        for row in known
        if row.scheme in {ALL_REDUCE, "sharded"}
        and row.task == "train"
        and row.library
        and (row.job, row.device, row.library) not in alone
    ]


def computing_of(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    calibration: Calibration,
    progress: Callable[[str], None] = lambda _: None,
) -> list[MeasuredRun]:
    """The rows whose exchange adds at most a fifth, with the seconds that are left without it.

    Args:
        rows: on several devices.
        steps: where their steps come from.
        calibration: what devices and links reach, by rows on one device.
        progress: called with the job of each row.

    Raises:
        DripleError: a row's step cannot be made or simulated.
    """
    computing = []
    whole = simulate_rows(rows, steps, calibration, progress)
    for row, whole_s in zip(rows, whole.tolist(), strict=True):
        job = steps.prepared(row)
        graph = replace(job.graph, update=update_on_one(row, job.graph.update))
        own = PreparedJob(graph, kinds=job.kinds, program=job.program)
        alone = Setting.parse(f"1x{row.device}")
        share = simulated_step_s(own, alone, calibration, num_steps=NUM_STEPS) / whole_s
        if share >= 1 - _MOST_ADDED:
            computing.append(replace(row, step_s=row.step_s * min(share, 1.0)))
    return computing


def update_on_one(row: MeasuredRun, update: OptimizerUpdate) -> OptimizerUpdate:
    """What one device updates: a shard, where the devices share the parameters out."""
    sharding = scheme_named(Setting.parse(row.setting).scheme.name).sharding
    count = 1
    if sharding is not None and sharding.shards_states:
        count = sharding.num_shards(row.num_devices, row.num_devices // row.num_machines)
    return replace(update, moved_bytes=update.moved_bytes // count)
