"""How well learning curves of `driple transfer` tell what more labels would bring (decision 0008).

    python scripts/curve_forecasts.py

Prints root mean square and mean of log(forecast / measured error) over settings and seeds, for
several ways to forecast. Transfers of 12, 24 and 48 labels that docs/transfer/curve-sizes.jsonl
lacks are run first (75 of about a second each); 20, 40, 80 and all come from
docs/transfer/results.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
from shipped import markdown, measured_datasets
from transfer_experiments import HOME, MOVED, RESULTS, SEEDS, Experiment, run

from driple.dataset.example import fingerprint
from driple.inputs import Groupings
from driple.training.curve import SPREAD, TYPICAL_WEIGHT

MORE = HOME / "curve-sizes.jsonl"
MORE_SIZES = (12, 24, 48)
ALL = 96  # labels to learn from of a setting's 120
PRESET = "default"
# Sizes that are seen, and the one that is forecast.
COLUMNS = (((12, 24, 48), ALL), ((24, 48), ALL), ((20, 40), 80), ((20, 40, 80), ALL))
Curve = Mapping[int, float]
Curves = dict[tuple[str, int], dict[int, float]]
Forecast = Callable[[np.ndarray, np.ndarray, float, float], float]


def line(sizes: np.ndarray, logs: np.ndarray, wanted: float, _: float) -> float:
    """The least-squares line itself."""
    slope, start = np.polyfit(sizes, logs, 1)
    return float(start + slope * wanted)


def last_doubling(sizes: np.ndarray, logs: np.ndarray, wanted: float, _: float) -> float:
    """As from the last point but one to the last."""
    slope = (logs[-1] - logs[-2]) / (sizes[-1] - sizes[-2])
    return float(logs[-1] + min(slope, 0) * (wanted - sizes[-1]))


def weighed(sizes: np.ndarray, logs: np.ndarray, wanted: float, _: float) -> float:
    """A line in which n labels weigh n^2, from the last point."""
    slope = np.polyfit(sizes, logs, 1, w=2.0**sizes)[0]
    return float(logs[-1] + min(slope, 0) * (wanted - sizes[-1]))


def no_gain(sizes: np.ndarray, logs: np.ndarray, wanted: float, _: float) -> float:
    """The last point."""
    del sizes, wanted
    return float(logs[-1])


def typical_alone(sizes: np.ndarray, logs: np.ndarray, wanted: float, typical: float) -> float:
    """The slope of the other settings, from the last point."""
    return float(logs[-1] - typical * (wanted - sizes[-1]))


def drawn(sizes: np.ndarray, logs: np.ndarray, wanted: float, typical: float) -> float:
    """As `LearningCurve.through`, with the typical slope of the other settings."""
    away = sizes - sizes.mean()
    slope = (TYPICAL_WEIGHT * typical - away @ logs) / (away @ away + TYPICAL_WEIGHT)
    return float(logs[-1] - max(slope, 0) * (wanted - sizes[-1]))


WAYS: dict[str, Forecast] = {
    "line": line,
    "last doubling alone": last_doubling,
    "line, weights n^2": weighed,
    "no gain at all": no_gain,
    "typical slope alone": typical_alone,
    "slope drawn to the typical one": drawn,
}


def measured_curves() -> Curves:
    """NRMSE by number of labels, of each setting and seed; what is missing is trained."""
    usual = MOVED[PRESET]
    rows = [json.loads(text) for text in RESULTS.read_text().splitlines()]
    rows += [json.loads(text) for text in MORE.read_text().splitlines()] if MORE.exists() else []
    curves: Curves = {}
    for row in rows:
        how = {"layers": tuple(row["layers"]), "share": row["share"], "aligned": row["aligned"]}
        if row["preset"] == PRESET and how == usual:
            curve = curves.setdefault((row["target"], row["seed"]), {})
            curve[row["size"] or ALL] = row["nrmse"]
    groupings = Groupings()
    for dataset in measured_datasets()[1:]:
        mark = fingerprint(dataset)
        for seed in SEEDS:
            curve = curves.setdefault((dataset.setting, seed), {})
            for size in (size for size in MORE_SIZES if size not in curve):
                item = Experiment(
                    target=dataset.setting, preset=PRESET, seed=seed, size=size, **usual
                )  # type: ignore[arg-type]  # fields of a dictionary of objects
                row = run(item, dataset, mark, groupings, 1)
                with MORE.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({**row, "fingerprint": mark}) + "\n")
                curve[size] = float(str(row["nrmse"]))
    return curves


def slope_of(curve: Curve) -> float:
    """Of the least-squares line through 20 labels and more, in doublings."""
    sizes = [size for size in (20, 40, 80, ALL) if size in curve]
    return -float(np.polyfit(np.log2(sizes), np.log2([curve[size] for size in sizes]), 1)[0])


def forecast_errors(curves: Curves, way: Forecast, seen: tuple[int, ...], size: int) -> np.ndarray:
    """log(forecast / measured error), a number for each curve."""
    errors = []
    for (setting, _), curve in curves.items():
        others = [slope_of(other) for (name, _), other in curves.items() if name != setting]
        logs = np.log2([curve[one] for one in seen])
        told = way(np.log2(seen), logs, float(np.log2(size)), float(np.mean(others)))
        errors.append(np.log(2) * (told - np.log2(curve[size])))
    return np.array(errors)


def main() -> None:
    """Print the table, the typical slope, and how many forecasts lie within the range."""
    curves = measured_curves()
    head = ["forecast", *(f"{', '.join(map(str, seen))} -> {size}" for seen, size in COLUMNS)]
    rows = []
    for name, way in WAYS.items():
        cells = []
        for seen, size in COLUMNS:
            errors = forecast_errors(curves, way, seen, size)
            cells.append(
                f"{100 * np.sqrt(np.square(errors).mean()):.1f} %, {100 * errors.mean():+.0f} %"
            )
        rows.append([name, *cells])
    print("\n".join(markdown(head, rows)))
    slopes = [slope_of(curve) for curve in curves.values()]
    print(f"{len(curves)} curves; slope {np.mean(slopes):.3f} a doubling, deviation "
          f"{np.std(slopes, ddof=1):.3f}")  # fmt: skip
    doublings = [
        forecast_errors(curves, drawn, seen, size) / np.log(2) / np.log2(size / seen[-1])
        for seen, size in COLUMNS[1:3]
    ]
    inside = np.abs(np.concatenate(doublings)) <= SPREAD
    print(f"of forecasts of a doubling, {100 * inside.mean():.0f} % are within {SPREAD} in slope")


if __name__ == "__main__":
    main()
