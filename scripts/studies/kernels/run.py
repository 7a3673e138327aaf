"""Does the fit of kernels get better by the kernels of steps that we measured? results.jsonl.

    python -m scripts.studies.kernels.run

Each fold of model families is left out of two fits: to published steps alone, and with the times of
kernels of datasets/runs/measured-h100. Both predict the published steps of the fold on one device,
and the kernels of the measured ones. Fits with kernels are those of `scripts/fits/part_fits.py`,
others are kept in build/heldout. What is done is not done again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.catalog.fields import TUNED
from driple.runs.measured_run import fold_of
from driple.runs.step_store import StepStore
from driple.runs.tuning import tuned_step
from driple.runs.validation.simulated import simulate_rows
from driple.simulate.calibration import GpuModel, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.gpu_fits import LeftOut
from scripts.fits.heldout import fits, shipped
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import MEASURED_DEVICE, stored_job
from scripts.fits.sampled import sampled_forward
from scripts.studies.kit.results import add_result, pick, read_results

FloatArray = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results.jsonl"
MEASURED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "measured-h100"
FOLDS = range(10)
WAYS = ("published steps", "with kernels")


def main() -> None:
    """Do what is not done yet."""
    for fold in FOLDS:
        for way in WAYS:
            if pick(read_results(RESULTS), fold=fold, way=way):
                continue
            model = fits(training=False, kernels=way == WAYS[1]).without(LeftOut(fold=fold))
            for what, logs in logs_of(model, fold).items():
                row = {"fold": fold, "way": way, "what": what}
                add_result(RESULTS, {**row, "logs": [round(one, 4) for one in logs]})
            print(fold, way, flush=True)


def logs_of(model: GpuModel, fold: int) -> dict[str, list[float]]:
    """ln(predicted / measured) of what the fit did not see, by what it is."""
    logs: dict[str, list[float]] = defaultdict(list)
    calibration = replace(shipped_calibration(), model=model)
    source = shipped(training=False)
    single = [row for row in source.rows if row.scheme == "single" and row.library]
    rows = [row for row in single if row.task == "train"] + sampled_forward(single)
    rows = [row for row in rows if fold_of(row.family, source.folds) == fold]
    seconds = simulate_rows(rows, source.steps, calibration)
    for row, step_s in zip(rows, seconds.tolist(), strict=True):
        what = "forward passes" if row.task == "forward" else "training"
        if row.compiled:
            what += ", compiled"
        elif row.task == "train":
            what += ", timm" if row.source == "timm" else ", others"
        logs[what].append(float(np.log(step_s / row.step_s)))
    for what, log in own_logs(model, fold):
        logs[what].append(log)
    return logs


def own_logs(model: GpuModel, fold: int) -> Iterator[tuple[str, float]]:
    """Of the kernels of each measured step, all together."""
    store, folds = StepStore.open(MEASURED), shipped(training=False).folds
    for row in read_profiled_runs(MEASURED / MEASURED_FILE):
        if row.busy_s is None or fold_of(row.family, folds) != fold:
            continue
        job = stored_job(row, store)
        if job is not None:
            yield f"kernels on our H100, {row.task}", busy_log(job, model, row.busy_s)


def busy_log(job: PreparedJob, model: GpuModel, busy_s: float) -> float:
    """ln(predicted / measured) of the time in which kernels run."""
    calibrated = replace(shipped_calibration(), model=model).device(MEASURED_DEVICE)
    step = tuned_step(job, calibrated, name="", group="", seconds=busy_s)
    factors = np.ones(len(TUNED))
    factors[-1] = 1e-9  # a host that delays nothing
    return float(np.log(step.predicted_s(factors) / busy_s))


if __name__ == "__main__":
    main()
