"""Predict every published row by fits that had not seen it: writes what answers state as errors.

    python -m scripts.fits.heldout [--processes 2] [--only family] [--training] [--state]
                                   [--only family --part "fold 0"]

Each fold of families, each device and each source is left out of a fit of its own, which then
predicts what was left out; so are the largest sizes of each fold with the smallest of another. A
finished part is kept in build/heldout, so that the script goes on where it was stopped; delete the
folder after other fits. Fits are those of `scripts.fits.part_fits`. At the end it writes

    datasets/runs/published/heldout.csv.gz            id, split, predicted seconds
    datasets/runs/published/heldout_tensorflow.csv.gz the same of TensorFlow runs, by id of the run
    driple/answers/checked_runs.json          what `driple predict` takes its stated errors from
    driple/answers/error_scale.json           how large they are, by what is known of an answer
    driple/simulate/calibration-gpu.json         its errors on TensorFlow runs, which data sets keep

With --part, of the splits that --only names, only that part is made, and only its predictions are
written: other rows of heldout.csv.gz stay.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from driple.answers.checked_runs import FILE, RunColumns
from driple.answers.error_scale import FILE as SCALE
from driple.answers.error_scale import ErrorScale
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.tensorflow_runs import read_tensorflow_runs
from driple.runs.validation.contest import HELD_OUT
from driple.runs.validation.held_out import (
    TENSORFLOW_FILE,
    read_tensorflow,
)
from driple.runs.validation.predictions import (
    Predictions,
    RowPrediction,
    read_predictions,
)
from driple.runs.validation.shipped import HELD_OUT as HELD_OUT_FILE
from driple.runs.validation.shipped import Shipped, read_shipped
from driple.runs.validation.simulated import simulate_rows
from driple.runs.validation.splits import HeldOutPart, parts_of
from driple.simulate.calibration import shipped_calibration
from scripts.fits.checked import (
    checked_rows,
    checked_runs,
    cluster_errors,
    with_distances,
    without_repeats,
)
from scripts.fits.checked_files import runs_to_json, scale_to_json
from scripts.fits.coverage import coverage_of, cross_conformal
from scripts.fits.gpu_fits import FITS, GpuFits, left_out_of
from scripts.fits.measured_gpu import measured_beside
from scripts.fits.refit import read_graphs
from scripts.fits.refit import validate as predict_tensorflow
from scripts.fits.sampled import sampled_forward
from scripts.fits.sizes import parts_of_sizes, sizes_of
from scripts.fits.writing import write_predictions, write_tensorflow

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "datasets" / "runs" / "published"
GRAPHS = ROOT / "datasets" / "graphs" / "calibration"
CHECKED = ROOT / "driple" / "answers" / FILE
CALIBRATION = ROOT / "driple" / "simulate" / "calibration-gpu.json"
SPLIT = PUBLISHED / "split_runs.json"  # by scripts.checks.split_rows
STATE = ROOT / "build" / "heldout"
MADE = (*HELD_OUT, "size")  # splits whose fits are made


@cache
def shipped(*, training: bool) -> Shipped:
    """The rows with their steps, once in each process."""
    shipped_rows = read_shipped(PUBLISHED, forward=not training)
    if shipped_rows is None:
        raise SystemExit(f"{PUBLISHED} has no published rows")
    return shipped_rows


@cache
def fits(*, training: bool, kernels: bool = True) -> GpuFits:
    """Fits to the rows and to measured kernels, once in each process; finished ones are kept.

    Those without rows of forward passes or without kernels do not ship.
    """
    return GpuFits(
        shipped=shipped(training=training),
        runs=read_tensorflow_runs(PUBLISHED),
        graphs=read_graphs(GRAPHS),
        published=PUBLISHED,
        measured=measured_beside(PUBLISHED) if kernels else None,
        cache=FITS if kernels and not training else STATE / "fits",
        progress=lambda what: print(what, flush=True),
    )


def parts_made(splits: Sequence[str], *, training: bool) -> list[HeldOutPart]:
    """Parts of some splits."""
    benchmark = shipped(training=training)
    parts = [
        part
        for split in splits
        if split != "size"
        for part in parts_of(benchmark.rows, split, benchmark.folds)
    ]
    if "size" in splits:
        ends = sizes_of(benchmark.rows, benchmark.steps).ends
        parts += parts_of_sizes(benchmark.rows, ends, benchmark.folds)
    return parts


def state_of(part: HeldOutPart) -> Path:
    """File of a finished part; another set of rows is another part."""
    rows = hashlib.sha256(repr((part.train, part.test)).encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{part.split}-{part.name}")
    return STATE / f"{name}-{rows}.csv"


def predict_part(part: HeldOutPart, *, training: bool) -> str:
    """Fit without a part, predict it, and keep the predictions; its name."""
    benchmark = shipped(training=training)
    # Links stay: few rows tell of them, and the published latencies are no fit.
    model = fits(training=training).without(left_out_of(part))
    calibration = replace(shipped_calibration(), model=model)
    rows = [benchmark.rows[i] for i in part.test]
    seconds = simulate_rows(rows, benchmark.steps, calibration)
    predictions = {
        (part.split, row.id): RowPrediction(one)
        for row, one in zip(rows, seconds.tolist(), strict=True)
    }
    write_predictions(Predictions(predictions), state_of(part))
    return f"{part.split} {part.name}: {len(rows)} rows"


def predict_all(
    splits: Sequence[str], processes: int, *, training: bool, only_part: str = ""
) -> Predictions:
    """Predictions of every part, made or kept, or of the parts of one name."""
    parts = parts_made(splits, training=training)
    if only_part:
        parts = [part for part in parts if part.name == only_part]
        if not parts:
            raise ConfigError(f"--part {only_part!r} is no part of {', '.join(splits)}")
    STATE.mkdir(parents=True, exist_ok=True)
    todo = [part for part in parts if not state_of(part).exists()]
    print(f"{len(parts)} parts, {len(todo)} to make", flush=True)
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(predict_part, part, training=training) for part in todo]
        for number, future in enumerate(futures, 1):
            print(f"{number} of {len(todo)}: {future.result()}", flush=True)
    predictions: dict[tuple[str, str], RowPrediction] = {}
    for part in parts:
        predictions |= read_predictions(state_of(part)).by_split
    return Predictions(predictions)


def main() -> None:
    """Make what is not made yet, then write the three files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--processes", type=int, default=2, help="parallel processes")
    parser.add_argument("--only", choices=MADE, action="append", help="splits; all by default")
    parser.add_argument("--part", default="", help="that alone, such as 'fold 0'")
    parser.add_argument("--training", action="store_true", help="without rows of forward passes")
    parser.add_argument("--refit-tensorflow", action="store_true", help="TensorFlow runs too")
    parser.add_argument("--state", action="store_true", help="errors of predictions that are there")
    given = parser.parse_args()
    if given.state:
        state_errors(read_predictions(PUBLISHED / HELD_OUT_FILE), training=given.training)
        return
    file = PUBLISHED / HELD_OUT_FILE
    if given.part:
        new = predict_all(
            given.only or MADE, given.processes, training=given.training, only_part=given.part
        )
        kept = read_predictions(file).by_split if file.exists() else {}
        write_predictions(Predictions({**kept, **new.by_split}), file)
        return
    new = predict_all(given.only or MADE, given.processes, training=given.training)
    # Last, as most of its fits are those of parts, which several processes have made.
    if given.refit_tensorflow or not (PUBLISHED / TENSORFLOW_FILE).exists():
        held_out = predict_tensorflow(
            PUBLISHED, GRAPHS, lambda what: print(what, flush=True), cache=FITS
        )
        write_tensorflow(held_out, PUBLISHED)
    predictions = new
    if given.only:  # other splits keep what is there
        known = read_predictions(file).by_split
        predictions = Predictions({**known, **new.by_split})
    write_predictions(predictions, file)
    state_errors(predictions, training=given.training)


def state_errors(predictions: Predictions, *, training: bool) -> None:
    """Write the runs that stated errors come from, and print how their intervals hold."""
    benchmark = shipped(training=training)
    known = [row for row in benchmark.rows if row.library]  # PyTorch's, as a user's job is
    some = [row for row in known if row.task != "forward"] + sampled_forward(known)
    ends = sizes_of(benchmark.rows, benchmark.steps).ends
    end_of = {row.id: end for row, end in zip(benchmark.rows, ends, strict=True)}
    rows = checked_rows(some, predictions, benchmark.steps, ends=end_of)
    graphs = read_graphs(GRAPHS)
    predicted = read_tensorflow(PUBLISHED)
    tensorflow = [one for one in predicted if (one.run.job, one.run.half) in graphs]
    errors = {kind: cluster_errors(tensorflow, kind) for kind in ("single", "ring", "servers")}
    calibration = replace(shipped_calibration(), errors=errors)
    text = json.dumps(calibration.to_dict()) + "\n"
    atomic_write(CALIBRATION, text.encode(), error=ConfigError)
    split = RunColumns.from_json(SPLIT.read_text(encoding="utf-8")).runs()
    # Rows of one job that differ by their degrees alone are no repeats of each other.
    runs = [*without_repeats([*checked_runs(tensorflow, graphs), *rows]), *split]
    runs = with_distances(runs)
    stored = runs_to_json(runs)
    atomic_write(CHECKED, stored.encode(), error=ConfigError)
    scale = ErrorScale.of(RunColumns.from_json(stored))
    atomic_write(SCALE, scale_to_json(scale).encode(), error=ConfigError)
    print(f"{CHECKED.relative_to(ROOT)}: {len(runs)} runs")
    for coverage in coverage_of(cross_conformal(runs, benchmark.folds)):
        print(
            f"{coverage.by} {coverage.group}, {coverage.task}, without the {coverage.held_out}: "
            f"{coverage.runs} runs, {coverage.coverage_pct:.0f} % in their interval, "
            f"{coverage.below_p90_pct:.0f} % below the stated 90th percentile, width "
            f"{coverage.width:.2f}"
        )


if __name__ == "__main__":
    main()
