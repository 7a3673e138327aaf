"""How long kernels run, by kind of kernel and of job, beside PyTorch's profiler: results.jsonl.

    python -m scripts.studies.gpu_time.run

Steps of datasets/runs/measured-h100 and -h200, each by the fit that has not seen its model's
family, and the jobs of scripts/studies/own_jobs, which no fit has seen, by the shipped one; with
the kernels of PyTorch's present libraries and without. Fits are those of `scripts/fits/heldout.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.errors import ConfigError
from driple.runs.measured_run import fold_of
from driple.runs.step_store import StepStore
from driple.simulate.calibration import CalibratedDevice, shipped_calibration
from driple.simulate.gpu_times import GpuEfficiency, gpu_op_times, update_seconds
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.gpu_fits import LeftOut
from scripts.fits.heldout import fits, shipped
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import (
    REST,
    UPDATE,
    kinds_of_parts,
    seconds_of_parts,
    stored_job,
)
from scripts.studies.kit.results import add_result
from scripts.studies.own_jobs.jobs import own_jobs
from scripts.studies.own_runs.run import MEASURED

RESULTS = Path(__file__).parent / "results.jsonl"
OWN, OWN_DEVICE = "own jobs", "H200"
_NO_HOST = 1e-9  # of the usual pace


def main() -> None:
    """Price all steps."""
    RESULTS.unlink(missing_ok=True)
    shipped_known = shipped_calibration()
    models = {
        fold: replace(shipped_known, model=fits(training=False).without(LeftOut(fold=fold)))
        for fold in range(10)
    }
    for device, folder in MEASURED.items():
        store, times = StepStore.open(folder), seconds_of_parts(folder)
        for row in read_profiled_runs(folder / MEASURED_FILE):
            job = stored_job(row, store) if row.key in times else None
            if job is None or row.busy_s is None:
                continue
            calibrated = models[fold_of(row.family, shipped(training=False).folds)].device(device)
            parts = dict(times[row.key])
            parts[REST] = parts.get(REST, 0.0) + parts.pop(UPDATE, 0.0)
            add_result(
                RESULTS,
                {
                    "where": device,
                    "job": row.job,
                    "precision": row.precision,
                    "task": row.task,
                    "busy_s": row.busy_s,
                    "measured_s": parts,
                    **both(job, calibrated),
                },
            )
    known = shipped_known.device(OWN_DEVICE)
    for own_job in own_jobs():
        facts = {"job": own_job.name, "precision": own_job.precision, "task": "train"}
        prices = both(own_job.ready().prepared, known)
        add_result(RESULTS, {"where": OWN, **facts, "busy_s": own_job.busy_s, **prices})


def both(job: PreparedJob, device: CalibratedDevice) -> dict[str, dict[str, float]]:
    """Seconds of each part of a step, without and with present kernels."""
    efficiency = _gpu(device)
    before = replace(device, efficiency=replace(efficiency, present=None))
    return {
        name: {part: round(seconds, 9) for part, seconds in kernels_s(job, one)}
        for name, one in (("before_s", before), ("now_s", device))
    }


def kernels_s(job: PreparedJob, device: CalibratedDevice) -> Iterator[tuple[str, float]]:
    """Seconds in which the kernels of each part run, launches left out as a profiler does."""
    efficiency = _gpu(device)
    alone = replace(efficiency, host=efficiency.host.slower(_NO_HOST))
    update = job.graph.update
    for part, kinds in kinds_of_parts(job):
        times = gpu_op_times(
            kinds.table, kinds.kind_of, kinds.executions, kinds.fused, None, device.spec, alone,
            job.runtime, 0,
        )  # fmt: skip
        gap_s = 0.0
        if efficiency.present is not None:
            runs = kinds.executions * (kinds.table.moved > 0)[kinds.kind_of]
            starts = efficiency.op_starts(kinds.table, kinds.table.facts, job.runtime)
            gap_s = float((runs * starts.gap_s[kinds.kind_of]).sum())
        seconds = float(np.sum(times.duration_s)) - gap_s
        if part == REST and update is not None:
            seconds += update_seconds(update, device.spec, efficiency)
        yield part, seconds


def _gpu(device: CalibratedDevice) -> GpuEfficiency:
    """What a GPU reaches.

    Raises:
        ConfigError: the device is none.
    """
    if not isinstance(device.efficiency, GpuEfficiency):
        raise ConfigError(f"{device.spec.name} is no GPU")
    return device.efficiency


if __name__ == "__main__":
    main()
