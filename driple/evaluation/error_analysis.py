"""Error of one method by family and target, the worst workloads, and error over floor.

    BenchmarkResult, method  ->  Breakdown  ->  tables, JSON

The floor is the difference of two runs of one workload, a lower bound for the error of any
predictor. The data set measured it on the workloads that ran more than once
(`driple.trace.repeatability`). Noise has no direction: if all iterations of a family are predicted
too slow, the cause is the model. Simulated labels have no noise at all. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.evaluation.benchmark import ALL, BenchmarkResult
from driple.trace.provenance import Repeatability
from driple.trace.repeatability import smape_shares
from driple.trace.targets import TARGET_NAMES
from driple.training.metrics import predicted_times_s

if TYPE_CHECKING:
    from driple.evaluation.json_types import ErrorBreakdownJson

__all__ = ["ErrorBreakdown", "OverFloor", "WorkloadError", "break_down"]

FloatArray = npt.NDArray[np.float64]

NUM_WORST = 10
# Minimum number of workloads for a family's bias and noise.
NUM_TO_LEAN, NUM_TO_REPEAT = 3, 2
LEANING_SHARE = 0.75  # of a family's workloads that are predicted too slow, or too fast
TIME_NAME = "iteration_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadError:
    """One workload, over all seeds in which it was tested; predictions are means over them.

    Attributes:
        workload: its name.
        family: its model family.
        num_tested: folds in which it was tested.
        smape_pct: mean over the 12 targets, percent.
        predicted_time_s: seconds per iteration.
        time_s: as in the label.
        worst_target: the target with the largest error.
        worst_smape_pct: its error, percent.
        worst_predicted: its prediction, in the target's unit.
        worst_label: its label.
        repeat_smape_pct: SMAPE between two runs of this very workload; None if it ran once.
        reason: cause of the error, from its repeats and the bias of its family.
    """

    workload: str
    family: str
    num_tested: int
    smape_pct: float
    predicted_time_s: float
    time_s: float
    worst_target: str
    worst_smape_pct: float
    worst_predicted: float
    worst_label: float
    repeat_smape_pct: float | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OverFloor:
    """The error of one target (or all, or the iteration time) and what repeats differ by.

    Attributes:
        name: target, `all 12` or `iteration_time`.
        smape_pct: SMAPE of the method, mean over all tested workloads, percent.
        floor_pct: SMAPE between two runs of one workload, percent; None if nothing ran twice.
    """

    name: str
    smape_pct: float
    floor_pct: float | None

    @property
    def ratio(self) -> float | None:
        """Error over floor; None without a floor, or where repeats do not differ at all."""
        return self.smape_pct / self.floor_pct if self.floor_pct else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorBreakdown:
    """Error of one method, broken down.

    Attributes:
        method: its name.
        families: names, sorted.
        by_family: shape [12 + 1, num_families], SMAPE in percent of each target and of all.
        num_workloads: tested workloads of each family.
        over_floor: each target, all of them, the iteration time.
        worst: the workloads with the largest errors, the worst first.
        num_repeated: workloads that ran more than once.
    """

    method: str
    families: tuple[str, ...]
    by_family: FloatArray
    num_workloads: tuple[int, ...]
    over_floor: tuple[OverFloor, ...]
    worst: tuple[WorkloadError, ...]
    num_repeated: int

    def to_json_dict(self) -> ErrorBreakdownJson:
        """All of it, by name."""
        rows = [*TARGET_NAMES, ALL]
        return {
            "method": self.method,
            "smape_pct_by_family": {
                family: {
                    "num_workloads": self.num_workloads[i],
                    **dict(zip(rows, self.by_family[:, i].tolist(), strict=True)),
                }
                for i, family in enumerate(self.families)
            },
            "num_repeated_workloads": self.num_repeated,
            "over_floor": {
                row.name: {
                    "smape_pct": row.smape_pct,
                    "floor_pct": row.floor_pct,
                    "ratio": row.ratio,
                }
                for row in self.over_floor
            },
            "worst": self.worst,
        }


def break_down(result: BenchmarkResult, method: str) -> ErrorBreakdown:
    """Break down the error of a method, over all seeds and folds.

    Every test of a workload counts the same; in the table of the benchmark, every fold does.

    Raises:
        ConfigError: the result holds no fold of that method.
    """
    tested = _predictions(result, method)
    examples = {item.workload: item for item in result.dataset.examples}
    names = sorted(tested)
    labels = np.array([examples[name].targets.flat for name in names])
    times_s = np.array([examples[name].iteration_time_s for name in names])
    errors = np.array(  # [workloads, 12], mean over the seeds
        [
            smape_shares(rows, np.broadcast_to(label, rows.shape)).mean(axis=0)
            for rows, label in zip((tested[name] for name in names), labels, strict=True)
        ]
    )
    time_errors = np.array(
        [
            smape_shares(predicted_times_s(tested[name]), np.full(len(tested[name]), true)).mean()
            for name, true in zip(names, times_s, strict=True)
        ]
    )
    weights = np.array([len(tested[name]) for name in names], dtype=np.float64)
    families = np.array([examples[name].family for name in names])
    shown = sorted(set(families.tolist()))
    by_family = np.stack(
        [_with_mean(_mean(errors, weights, families == family)) for family in shown], axis=1
    )
    everywhere = np.ones(len(names), dtype=np.bool_)
    overall = [
        *_with_mean(_mean(errors, weights, everywhere)),
        100 * np.average(time_errors, weights=weights),
    ]
    repeat = result.dataset.about.repeatability or Repeatability()
    simulated = all(item.label_source == "simulated" for item in result.dataset.examples)
    evidence = _Evidence(
        families={item.workload: item.family for item in result.dataset.examples},
        repeats_pct=repeat.smape_pct_by_workload,
        time_floor_pct=0.0 if simulated else _floor(repeat, TIME_NAME),
        simulated=simulated,
        leanings={
            name: float(np.log(predicted_times_s(tested[name]) / true).mean())
            for name, true in zip(names, times_s, strict=True)
        },
    )
    worst = []
    for i in np.argsort(-errors.mean(axis=1), kind="stable")[:NUM_WORST]:
        example, rows, target = examples[names[i]], tested[names[i]], int(errors[i].argmax())
        smape = 100 * float(errors[i].mean())
        worst.append(
            WorkloadError(
                workload=names[i],
                family=example.family,
                num_tested=len(rows),
                smape_pct=smape,
                predicted_time_s=float(predicted_times_s(rows).mean()),
                time_s=example.iteration_time_s,
                worst_target=TARGET_NAMES[target],
                worst_smape_pct=100 * float(errors[i, target]),
                worst_predicted=float(rows[:, target].mean()),
                worst_label=float(labels[i, target]),
                repeat_smape_pct=evidence.repeats_pct.get(names[i]),
                reason=evidence.reason(names[i], smape),
            )
        )
    return ErrorBreakdown(
        method=method,
        families=tuple(shown),
        by_family=by_family,
        num_workloads=tuple(int((families == family).sum()) for family in shown),
        over_floor=tuple(
            OverFloor(name=name, smape_pct=float(error), floor_pct=_floor(repeat, name))
            for name, error in zip((*TARGET_NAMES, ALL, TIME_NAME), overall, strict=True)
        ),
        worst=tuple(worst),
        num_repeated=len(evidence.repeats_pct),
    )


def _predictions(result: BenchmarkResult, method: str) -> dict[str, FloatArray]:
    """Shape [tests, 12] by workload: a row for each fold that tested it."""
    folds = result.folds_of(method)
    if not folds:
        raise ConfigError(f"there is no fold of {method!r}; run driple evaluate --against {method}")
    rows: dict[str, list[list[float]]] = {}
    for fold in folds:
        for name, row in fold.predictions.items():
            rows.setdefault(name, []).append(row)
    return {name: np.array(found, dtype=np.float64) for name, found in rows.items()}


def _mean(errors: FloatArray, weights: FloatArray, rows: npt.NDArray[np.bool_]) -> FloatArray:
    """Percent, shape [12], of some workloads; every test counts the same."""
    mean: FloatArray = 100 * np.average(errors[rows], axis=0, weights=weights[rows])
    return mean


def _with_mean(values: FloatArray) -> FloatArray:
    """Shape [12] to [13]: the mean of all is the last."""
    return np.append(values, values.mean())


def _floor(repeat: Repeatability, name: str) -> float | None:
    """SMAPE between two runs, percent; None if no workload ran twice."""
    known = repeat.smape_pct
    if not known:
        return None
    if name == ALL:
        return float(np.mean([known[target] for target in TARGET_NAMES]))
    return float(known[name])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Evidence:
    """Separate noise of the labels from errors of the model.

    Attributes:
        families: families by workload.
        repeats_pct: SMAPE between two runs, by workload that ran more than once.
        time_floor_pct: the same of the iteration time, mean over them; None if nothing ran twice.
        simulated: whether the labels come from the simulator, which is deterministic.
        leanings: logarithm of predicted over true iteration time, by tested workload.
    """

    families: Mapping[str, str]
    repeats_pct: Mapping[str, float]
    time_floor_pct: float | None
    simulated: bool
    leanings: Mapping[str, float]

    def reason(self, workload: str, smape_pct: float) -> str:
        """Label noise or model, by the nearest evidence that there is.

        First its own runs, then a family that leans as it does, then the runs of its family, then
        those of all.
        """
        leans = self._leans_with_its_family(workload)
        if self.simulated:
            return f"model: {leans or 'simulated labels are the same each time'}"
        if not self.repeats_pct:
            return "unknown: nothing ran more than once"
        own = self.repeats_pct.get(workload)
        if own is not None:
            source = "label noise" if own >= smape_pct / 2 else "model"
            also = f"; {leans}" if leans and source == "model" else ""
            return f"{source}: its own runs differ by {own:.0f} %{also}"
        if leans:
            return f"model: {leans}"
        return self._by_other_runs(self.families[workload], smape_pct)

    def _by_other_runs(self, family: str, smape_pct: float) -> str:
        """Reason by the repeated workloads of the family, or of all families."""
        mine = [pct for name, pct in self.repeats_pct.items() if self.families.get(name) == family]
        if len(mine) >= NUM_TO_REPEAT and max(mine) < smape_pct / 2:
            return (
                f"model: runs of the {len(mine)} repeated workloads of its family differ by "
                f"{max(mine):.0f} % at most"
            )
        as_far = sum(pct >= smape_pct / 2 for pct in self.repeats_pct.values())
        if as_far == 0:
            return (
                f"model: no repeated workload's runs differ by half as much "
                f"(at most {max(self.repeats_pct.values()):.0f} %)"
            )
        return (
            f"may be label noise: runs of {as_far} of {len(self.repeats_pct)} repeated workloads "
            "differ by half as much or more"
        )

    def _leans_with_its_family(self, workload: str) -> str:
        """Sentence on a family that is predicted too slow or too fast; empty if this one is not.

        It leans if its median is further off than two runs of one workload are, and most of its
        workloads are off in that direction.
        """
        if self.time_floor_pct is None:
            return ""
        family = self.families[workload]
        logs = np.array([x for name, x in self.leanings.items() if self.families[name] == family])
        middle, floor = float(np.median(logs)), self.time_floor_pct / 100
        leaning = np.mean(logs * middle > 0) >= LEANING_SHARE and abs(middle) > floor
        if len(logs) < NUM_TO_LEAN or not leaning or self.leanings[workload] * middle <= 0:
            return ""
        if abs(self.leanings[workload]) <= floor:
            return ""
        way = "slow" if middle > 0 else "fast"
        return f"the family is predicted {100 * abs(np.expm1(middle)):.0f} % too {way} (median)"
