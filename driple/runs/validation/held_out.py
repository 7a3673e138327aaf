"""TensorFlow runs beside their predictions by fits that had not seen them, and the errors.

heldout_tensorflow.csv.gz --read_tensorflow--> HeldOutPrediction, ... --error_rows--> ErrorRow, ...

The fits take minutes: `scripts/fits/heldout.py` makes them and the table. A run has no name of its
own in the published tables: its id is its position among the runs of its source, in the order of
`read_tensorflow_runs`, and its published time is stored to check that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from driple.runs.tables import read_table
from driple.runs.tensorflow_runs import Kind, TensorFlowRun, read_tensorflow_runs

__all__ = [
    "TENSORFLOW_FILE",
    "ErrorRow",
    "HeldOut",
    "HeldOutPrediction",
    "Summary",
    "error_rows",
    "read_tensorflow",
    "run_ids",
    "summarise",
]

TENSORFLOW_FILE = "heldout_tensorflow.csv.gz"
_FACTS = ("id", "held_out", "name", "seconds", "simulated_s", "roofline_s")
_ASKED = "asked_s"  # empty where it is the simulated one; tables before it do not have it
_ROUNDING = 1e-4

HeldOut = Literal["nothing", "model", "device"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutPrediction:
    """One published run and what two models say of it.

    Attributes:
        run: the measurement.
        held_out: what the fit had not seen: nothing, a model, or a device.
        name: of that model or device; empty for nothing.
        simulated_s: by the simulator.
        roofline_s: by a roofline fitted to the same rows; of a cluster, the longer of the step
            that it tells and of the bytes at the link's nominal rate.
        asked_s: by the simulator as a user asks it, where the run's program did otherwise: with
            gradients that travel as they are, while others are computed; None elsewhere.
    """

    run: TensorFlowRun
    held_out: HeldOut
    name: str
    simulated_s: float
    roofline_s: float
    asked_s: float | None = None

    @property
    def answer_s(self) -> float | None:
        """Seconds that a user who asks for the run gets; None where they were not simulated.

        A ring that sends gradients when all are computed is asked for as every ring is.
        """
        is_asked = self.run.kind != "ring" or self.run.overlapped
        return self.simulated_s if is_asked else self.asked_s

    @property
    def error(self) -> float:
        """|simulated - measured| / measured."""
        return abs(self.simulated_s / self.run.step_s - 1)

    @property
    def roofline_error(self) -> float:
        """The same of the roofline."""
        return abs(self.roofline_s / self.run.step_s - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Errors of some predictions, as shares."""

    rows: int
    median: float
    p90: float
    roofline_median: float
    roofline_p90: float


def summarise(predictions: Iterable[HeldOutPrediction]) -> Summary:
    """Median and 90th percentile of the errors."""
    known = list(predictions)
    errors = [prediction.error for prediction in known]
    roofline = [prediction.roofline_error for prediction in known]
    return Summary(
        rows=len(known),
        median=float(np.median(errors)),
        p90=float(np.percentile(errors, 90)),
        roofline_median=float(np.median(roofline)),
        roofline_p90=float(np.percentile(roofline, 90)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorRow:
    """Errors of one source on one kind of cluster, percent; the attributes are `Summary`'s.

    Attributes:
        kind: of cluster.
        held_out: what the fit had not seen.
        source: of the published runs, or `all`.
    """

    kind: Kind
    held_out: HeldOut
    source: str
    rows: int
    median_pct: float
    p90_pct: float
    roofline_median_pct: float
    roofline_p90_pct: float


def error_rows(predictions: Sequence[HeldOutPrediction]) -> list[ErrorRow]:
    """Errors in percent by kind of cluster, what was held out, and source; all sources last."""
    rows = []
    for kind, held_out in product(get_args(Kind), get_args(HeldOut)):
        some = [p for p in predictions if p.run.kind == kind and p.held_out == held_out]
        sources: dict[str, list[HeldOutPrediction]] = defaultdict(list)
        for prediction in some:
            sources[prediction.run.source].append(prediction)
        for source, own in [*sorted(sources.items()), *([("all", some)] if some else [])]:
            errors = summarise(own)
            rows.append(
                ErrorRow(
                    kind=kind,
                    held_out=held_out,
                    source=source,
                    rows=errors.rows,
                    median_pct=100 * errors.median,
                    p90_pct=100 * errors.p90,
                    roofline_median_pct=100 * errors.roofline_median,
                    roofline_p90_pct=100 * errors.roofline_p90,
                )
            )
    return rows


def run_ids(folder: Path) -> dict[str, TensorFlowRun]:
    """Published TensorFlow runs by id.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    counts: Counter[str] = Counter()
    runs = {}
    for run in read_tensorflow_runs(folder):
        runs[f"{run.source}-{counts[run.source]}"] = run
        counts[run.source] += 1
    return runs


def read_tensorflow(folder: Path) -> list[HeldOutPrediction]:
    """The predictions of a folder.

    Args:
        folder: of published tables.

    Raises:
        ConfigError: the table is missing, damaged, or of other published runs.
    """
    runs = run_ids(folder)
    predictions = []
    for line in read_table(folder / TENSORFLOW_FILE, _FACTS):
        run = runs.get(line.text("id"))
        if run is None or abs(run.step_s / line.number_of("seconds") - 1) > _ROUNDING:
            raise line.error("id", "no published run has this id and time; make the table again")
        held_out = line.choice("held_out", get_args(HeldOut), "nothing")
        predictions.append(
            HeldOutPrediction(
                run=run,
                held_out=held_out,  # type: ignore[arg-type]  # one of the three
                name=line.text("name"),
                simulated_s=line.number_of("simulated_s"),
                roofline_s=line.number_of("roofline_s"),
                asked_s=line.number_of(_ASKED) if line.text(_ASKED) else None,
            )
        )
    return predictions
