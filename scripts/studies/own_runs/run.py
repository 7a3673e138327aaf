"""How far a few runs of one's own bring the simulator to a device: results.jsonl.

    python -m scripts.studies.own_runs.run

Each device with enough published steps is left out of the fit of kernels, as a user's device is;
5, 10, 20 and 40 of its steps then tune it, as `driple transfer --from gpu` does, and all others
are predicted. The same with the steps that we measured on an H100 and an H200, each by a fit that
has seen neither its time nor kernels of its model's family. Fits are those of
`scripts/fits/part_fits.py`. What is done is not done again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from driple.catalog.fields import TUNED
from driple.cluster.setting import Setting
from driple.errors import DripleError
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.runs.measured_run import MeasuredRun, fold_of
from driple.runs.step_store import StepStore
from driple.runs.tuning import TunedStep, errors_pct, factors_of, tuned_step
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.gpu_fits import LeftOut
from scripts.fits.heldout import fits, shipped
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import stored_job
from scripts.runs.gpu_tables import graph_of
from scripts.studies.kit.results import add_result, pick, read_results

FloatArray = npt.NDArray[np.float64]

HOME = Path(__file__).parent
RESULTS = HOME / "results.jsonl"
_DATASETS = Path(__file__).resolve().parents[3] / "datasets"
MEASURED = {
    "H100": _DATASETS / "runs" / "measured-h100",
    "H200": _DATASETS / "runs" / "measured-h200",
}
SIZES = (5, 10, 20, 40)
DRAWS = 5
_LEAST, _MOST = 60, 300  # steps of a device and a task; of more, so many are drawn
_LEAST_LEFT = 10  # steps of other models, for an error of a draw
_OWN = "ours"
BUSY, _BUSY = "busy", 0.9  # share of a step


def main() -> None:
    """Do what is not done yet."""
    warnings.simplefilter("ignore")
    for device, task, source in parts():
        if pick(read_results(RESULTS), device=device, task=task, source=source):
            continue
        steps = list(
            own_steps(device, busy=task == BUSY)
            if source == _OWN
            else published_steps(device, task)
        )
        for row in list(errors_of(steps)):
            add_result(RESULTS, {"device": device, "task": task, "source": source, **row})
        print(device, task, source, len(steps), flush=True)


def parts() -> list[tuple[str, str, str]]:
    """Devices and tasks with enough steps on one device, then our own."""
    counts: dict[tuple[str, str], int] = {}
    for row in _single():
        key = (row.device, row.task)
        counts[key] = counts.get(key, 0) + 1
    keys = sorted(key for key, count in counts.items() if count >= _LEAST)
    own = [(device, task, _OWN) for device in MEASURED for task in ("both", BUSY)]
    return [(*key, "published") for key in keys] + own


def published_steps(device: str, task: str) -> Iterator[TunedStep]:
    """Steps of a device that the fit did not see; those of one job follow each other."""
    model = fits(training=False).without(LeftOut(device=device))
    calibrated = replace(shipped_calibration(), model=model).device(device)
    rows = [row for row in _single() if (row.device, row.task) == (device, task)]
    some = np.random.default_rng(0).permutation(len(rows))[:_MOST]
    source = shipped(training=False).steps
    for row in sorted((rows[i] for i in some), key=lambda one: repr(one.step_key)):
        yield tuned_step(
            source.prepared(row), calibrated, name=row.id, group=row.job, seconds=row.step_s
        )


def own_steps(device: str, *, busy: bool) -> Iterator[TunedStep]:
    """Steps that we measured, on the path of `driple predict`, without their family in the fit.

    Args:
        device: that ran them.
        busy: only those in which the GPU is busy for most of the time, so that it is the limit.
    """
    declare_torchvision_ops()  # torchvision's own may be of another build
    folder, setting = MEASURED[device], Setting.parse(f"1x{device}")
    store, folds = StepStore.open(folder), shipped(training=False).folds
    for number, row in enumerate(read_profiled_runs(folder / MEASURED_FILE)):
        if isnan(row.step_s) or (busy and (row.busy_s or 0.0) < _BUSY * row.step_s):
            continue
        try:
            job = stored_job(row, store) or PreparedJob(graph_of(row, setting))
        except DripleError as error:
            print(f"{row.job} is left aside: {error}", flush=True)
            continue
        if row.parameters != int(job.graph.parameters.elements.sum()):
            print(f"{row.job} is left aside: another version of its library", flush=True)
            continue
        left_out = LeftOut(fold=fold_of(row.family, folds))
        model = fits(training=False).without(left_out)
        calibrated = replace(shipped_calibration(), model=model).device(device)
        yield tuned_step(job, calibrated, name=str(number), group=row.job, seconds=row.step_s)


def errors_of(steps: Sequence[TunedStep]) -> Iterator[dict[str, object]]:
    """Errors of all steps untuned, then of those that were not among the drawn ones."""
    measured = np.array([one.seconds for one in steps])
    usual = np.array([one.predicted_s(np.ones(len(TUNED))) for one in steps]) / measured
    yield {"way": "untuned", "runs": 0, "draw": 0, **_quantiles(usual)}
    for size in SIZES:
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(len(steps))
            seen, groups = order[:size], {steps[i].group for i in order[:size]}
            # A model that was run is known: only others are counted.
            rest = [i for i in order[size:] if steps[i].group not in groups]
            if len(rest) < _LEAST_LEFT:
                continue
            factors = factors_of([steps[i] for i in seen])
            tuned = np.array([steps[i].predicted_s(factors) for i in rest]) / measured[rest]
            scaled = usual[rest] / np.median(usual[seen])
            anew = learned_anew(steps, seen)[rest] / measured[rest]
            for way, ratios in (("tuned", tuned), ("scaled", scaled), ("anew", anew)):
                yield {"way": way, "runs": size, "draw": draw, **_quantiles(ratios)}


def learned_anew(steps: Sequence[TunedStep], seen: npt.NDArray[np.int64]) -> FloatArray:
    """Seconds of all steps by a linear model that knows the runs alone, not the simulator.

    Logarithms of the seconds from those of the multiply-adds and of the bytes and of the number of
    kernels, and whether the step trains; its penalty is chosen by leaving out each run in turn.
    Bytes count at the rates that kernels reach in the simulator, which flatters this way a little.
    """
    inputs = np.array(
        [
            (
                np.log(one.compute_s.sum()),
                np.log(one.memory_s.sum()),
                np.log(one.starts.sum()),
                float(one.update_starts > 0),
            )
            for one in steps
        ]
    )
    measured = np.log([one.seconds for one in steps])
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 2, 11)))
    model.fit(inputs[seen], measured[seen])
    seconds: FloatArray = np.exp(model.predict(inputs))
    return seconds


def _quantiles(ratios: FloatArray) -> dict[str, float]:
    errors = errors_pct(ratios)
    return {
        "steps": len(errors),
        "median_pct": round(float(np.median(errors)), 2),
        "p90_pct": round(float(np.quantile(errors, 0.9)), 2),
    }


def _single() -> list[MeasuredRun]:
    return [row for row in shipped(training=False).rows if row.scheme == "single"]


if __name__ == "__main__":
    main()
