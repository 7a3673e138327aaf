"""Enter the baselines of the benchmark, each fitted to the training part of each split alone.

    python -m scripts.entries.baselines

    data-sheet    roofline of the device's data sheet: peak FLOP/s, bytes/s, link; nothing is fitted
    flops-ratio   the known run with the nearest work on the same device and precision, scaled by
                  FLOPs over peak
    roofline      three numbers for each device and precision (driple.runs.validation.baselines)
    boosted-trees the same module's `trees`, on the time over a plain roofline
    extra-trees   scikit-learn's ExtraTreesRegressor on the logarithm of the time

rows, their work, parts of a split -> datasets/runs/benchmark/entries/NAME.csv.gz
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.baselines import Baseline, roofline, trees
from driple.runs.validation.contest import HELD_OUT
from driple.runs.validation.metrics import family_weights
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.runs.validation.splits import parts_of
from driple.runs.validation.work import RowWork, work_of
from scripts.entries.table import ENTRIES
from scripts.fits.heldout import shipped
from scripts.fits.writing import write_predictions

__all__ = ["ENTERED", "data_sheet", "extra_trees", "flops_ratio", "main", "predictions_of"]

FloatArray = npt.NDArray[np.float64]
_TREES = 100


def data_sheet(
    _: RowWork, __: Sequence[MeasuredRun], test: RowWork, ___: Sequence[MeasuredRun]
) -> FloatArray:
    """Each op at the larger of its compute and its memory time, or the link if that is longer."""
    each_s = np.maximum(test.compute_s, test.memory_s)
    seconds: FloatArray = np.maximum(test.summed(each_s), test.link_s)
    return seconds


def flops_ratio(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, wanted: Sequence[MeasuredRun]
) -> FloatArray:
    """A known run's time, scaled by FLOPs over peak.

    The run is the one with the nearest time at peak on the same device in the same precision; where
    none is known, on any device in that precision, else any.
    """
    known_s, wanted_s = train.summed(train.compute_s), test.summed(test.compute_s)
    places: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        for key in _keys(row):
            places.setdefault(key, []).append(place)
    seconds = np.empty(len(wanted))
    for place, row in enumerate(wanted):
        some = np.array(next(places[key] for key in _keys(row) if key in places))
        away = np.abs(np.log(known_s[some] / wanted_s[place]))
        nearest = some[int(np.argmin(away))]
        seconds[place] = rows[nearest].step_s * wanted_s[place] / known_s[nearest]
    return seconds


def _keys(row: MeasuredRun) -> tuple[tuple[str, ...], ...]:
    return (row.device, row.precision), (row.precision,), ()


def extra_trees(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, _: Sequence[MeasuredRun]
) -> FloatArray:
    """Extremely randomized trees (Geurts et al., 2006) on features of job and device."""
    from sklearn.ensemble import ExtraTreesRegressor

    model = ExtraTreesRegressor(
        _TREES, min_samples_leaf=2, max_features=0.5, random_state=0, n_jobs=1
    )
    measured = np.log([row.step_s for row in rows])
    model.fit(train.features, measured, sample_weight=len(rows) * family_weights(rows))
    seconds: FloatArray = np.exp(model.predict(test.features))
    return seconds


ENTERED: Mapping[str, Baseline] = {
    "data-sheet": data_sheet,
    "flops-ratio": flops_ratio,
    "roofline": roofline,
    "boosted-trees": trees,
    "extra-trees": extra_trees,
}


def predictions_of(
    baseline: Baseline, rows: Sequence[MeasuredRun], work: RowWork, folds: Mapping[str, int]
) -> Predictions:
    """A prediction of each row in each split, by a fit to the other parts of the split."""
    predicted: dict[tuple[str, str], RowPrediction] = {}
    for split in HELD_OUT:
        for part in parts_of(rows, split, folds):
            seconds = baseline(
                work.take(np.array(part.train, dtype=np.int64)),
                [rows[place] for place in part.train],
                work.take(np.array(part.test, dtype=np.int64)),
                [rows[place] for place in part.test],
            )
            for place, predicted_s in zip(part.test, seconds.tolist(), strict=True):
                predicted[split, rows[place].id] = RowPrediction(predicted_s)
    return Predictions(predicted)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and predict, and write the entries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=ENTERED, action="append", help="baselines; all")
    given = parser.parse_args(argv)
    known = shipped(training=True)
    work = work_of(known.rows, known.steps)
    ENTRIES.mkdir(parents=True, exist_ok=True)
    for name in given.only or ENTERED:
        print(name, flush=True)
        predictions = predictions_of(ENTERED[name], known.rows, work, known.folds)
        write_predictions(predictions, ENTRIES / f"{name}.csv.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
