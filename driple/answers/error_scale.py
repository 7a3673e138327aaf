"""How large the error of an answer is by what is known of it, and the 90 % interval that follows.

    checked runs --ErrorScale.of--> ErrorScale --spread(task, traits, distance)--> Spread

The residual of a run is ln(simulated / published). Its size is a product of factors: one for each
trait of the run (kind of cluster, kind of network, number of devices, precision, device, ...), and
one that grows with the distance of its job from those that the fit had seen,

    ln size = base + sum of the traits' effects + slope * distance,

fitted as the scale of a Laplace distribution. A ridge penalty draws a trait of few families to
those around it. The ends of an interval are quantiles of residuals over their sizes, times the size
of the answer (conformal prediction with a local scale: Lei et al., JASA 2018). The size of each run
comes from a fit without its fold of families, so no run is judged by itself. A device that the fit
has not seen adds in squares what keeps nine of ten runs on devices that were left out inside.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, hypot
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.answers.checked_runs import RunColumns, size_class
from driple.answers.op_mix import network_of
from driple.codec import from_json
from driple.estimate import LEVEL

__all__ = [
    "FILE",
    "ErrorScale",
    "Spread",
    "error_quantiles",
    "shipped_scale",
    "traits_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

FILE = Path(__file__).with_name("error_scale.json")
_FOLDS = 10  # of families, each left out of the fit that gives the sizes of its runs
_MOST_OF_FAMILY, _MOST_OF_DEVICE = 1.0, 10.0  # that the runs of one weigh together
_RIDGE = 4.0  # families that hold each effect at none
_LEAST_LOG = 0.01  # added to each residual: repeated runs differ by as much
_FAR = 0.4  # distance from which on residuals grow no more
_MOST_ROUNDS, _MOST_MOVE, _SMALL_MOVE = 30, 1.5, 1e-3


@dataclass(frozen=True, slots=True)
class Spread:
    """Errors that belong to one answer.

    Attributes:
        low: factor on the simulated time to the lower end of its interval, at most 1.
        high: to the upper end, at least 1.
        median: of |simulated - true| / true.
        p90: its 90th percentile.
    """

    low: float
    high: float
    median: float
    p90: float

    def at_least(self, other: Spread) -> Spread:
        """Errors no smaller than others, nor the interval narrower at either end."""
        return Spread(
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            median=max(self.median, other.median),
            p90=max(self.p90, other.p90),
        )


def traits_of(
    *,
    kind: str,
    network: str,
    num_devices: int,
    half: bool,
    several_machines: bool,
    framework: str,
    compiled: bool,
    devices: Sequence[str] = (),
) -> tuple[str, ...]:
    """What of a run or an answer its error may depend on.

    Args:
        kind: of cluster.
        network: kind of network.
        num_devices: all workers.
        half: whether most multiply-adds are in half precision.
        several_machines: whether workers are on more than one machine.
        framework: `tensorflow`, `pytorch` or `onnx`.
        compiled: whether a compiler fuses ops.
        devices: that fits have seen; none for a device that they have not.
    """
    flags = {"half precision": half, "compiled": compiled, f"{kind}, machines": several_machines}
    return (
        kind, network, f"{kind}, {network}", size_class(num_devices), framework,
        *(name for name, is_so in flags.items() if is_so), *(f"device {name}" for name in devices),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskScale:
    """Sizes of residuals of one task, and quantiles of residuals over their sizes.

    Attributes:
        base: logarithm of the size without any trait.
        slope: added to it for each unit of distance, not negative.
        effects: added to it for each trait.
        low: quantile (1 - LEVEL) / 2 of residuals over sizes.
        high: quantile (1 + LEVEL) / 2.
        median: of |simulated - published| / published over sizes.
        p90: its quantile LEVEL.
    """

    base: float
    slope: float
    effects: Mapping[str, float]
    low: float
    high: float
    median: float
    p90: float

    def size(self, traits: Sequence[str], distance: float) -> float:
        """Size of the residual of an answer; a trait that no run has changes nothing."""
        effects = sum(self.effects.get(trait, 0.0) for trait in traits)
        return exp(self.base + effects + self.slope * min(distance, _FAR))


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorScale:
    """Sizes of the errors of all answers.

    Attributes:
        tasks: by task.
        unseen_device: logarithm that a device which no fit has seen adds to both ends, in squares.
    """

    tasks: Mapping[str, TaskScale]
    unseen_device: float

    @classmethod
    def of(cls, columns: RunColumns) -> ErrorScale:
        """The scale that runs show.

        Args:
            columns: of the runs; where only devices were left out, those speak for all.
        """
        runs = _Runs(columns)
        tasks = {
            task: _task_scale(runs, some)
            for task in sorted(set(runs.tasks))
            if len(some := runs.judging(task))
        }
        return cls(tasks=tasks, unseen_device=_unseen_device(runs, tasks))

    def spread(self, task: str, traits: Sequence[str], distance: float, *, known: bool) -> Spread:
        """Errors of an answer.

        Args:
            task: of its job, which runs have.
            traits: of the answer.
            distance: of its job from those that the fit has seen.
            known: whether fits have seen its device.
        """
        scale = self.tasks[task]
        size = scale.size(traits, distance)
        low, high = scale.low * size, scale.high * size
        grown = 1.0
        if not known:
            usual = (high - low) / 2
            low, high = -hypot(low, self.unseen_device), hypot(high, self.unseen_device)
            grown = (high - low) / 2 / usual
        return Spread(
            low=min(exp(-high), 1.0),
            high=max(exp(-low), 1.0),
            median=scale.median * size * grown,
            p90=scale.p90 * size * grown,
        )


@cache
def shipped_scale() -> ErrorScale:
    """The scale of the installed runs."""
    return from_json(ErrorScale, json.loads(FILE.read_text(encoding="utf-8")), where=FILE.name)


class _Runs:
    """Checked runs as arrays, shape [n] each, with a matrix of their traits.

    Args:
        columns: of the runs.
    """

    def __init__(self, columns: RunColumns) -> None:
        table = columns.columns
        network = cache(network_of)
        self.tasks: npt.NDArray[np.str_] = np.array(table["task"])
        self.families: npt.NDArray[np.str_] = np.array(table["family"])
        self.held_out: npt.NDArray[np.str_] = np.array(table["held_out"])
        self.devices: npt.NDArray[np.str_] = np.array(["+".join(d) for d in table["devices"]])
        self.logs = np.array(table["log_ratio"], dtype=np.float64)
        self.weights = np.array(table["weight"], dtype=np.float64)
        self.distances = np.minimum(np.array(table["distance"], dtype=np.float64), _FAR)
        names = (
            "kind", "num_devices", "half", "several_machines", "framework", "compiled",
        )  # fmt: skip
        self.traits = [
            traits_of(
                network=network(mix),
                devices=() if held_out == "device" else devices,
                **dict(zip(names, values, strict=True)),
            )
            for mix, held_out, devices, *values in zip(
                table["mix"],
                table["held_out"],
                table["devices"],
                *(table[name] for name in names),
                strict=True,
            )
        ]

    def judging(self, task: str) -> IntArray:
        """Places of the runs that sizes are taken from: those whose device the fit had seen."""
        of_task = self.tasks == task
        seen = of_task & (self.held_out != "device")
        return np.flatnonzero(seen if seen.any() else of_task)

    def capped(self, places: IntArray, groups: Sequence[Hashable], most: float) -> FloatArray:
        """Weights of some runs, those of one group together no more than some."""
        sums: dict[Hashable, float] = defaultdict(float)
        for group, weight in zip(groups, self.weights[places], strict=True):
            sums[group] += float(weight)
        share = np.array([min(most / sums[group], 1.0) for group in groups])
        return np.asarray(self.weights[places] * share, dtype=np.float64)


def _task_scale(runs: _Runs, places: IntArray) -> TaskScale:
    """The scale of some runs of one task."""
    fitted = _Fit(runs, places)
    families = np.unique(runs.families[places])
    sizes = fitted.sizes(places)
    if len(families) > 1:
        for fold in range(min(_FOLDS, len(families))):
            out = np.isin(runs.families[places], families[fold::_FOLDS])
            sizes[out] = _Fit(runs, places[~out], start=fitted).sizes(places[out])
    logs, weights = runs.logs[places], runs.weights[places]
    tail = (1 - LEVEL) / 2
    low, high = _quantiles(logs / sizes, weights, (tail, 1 - tail), len(families))
    median, p90 = _quantiles(np.abs(np.expm1(logs)) / sizes, weights, (0.5, LEVEL), len(families))
    return TaskScale(
        base=fitted.base,
        slope=fitted.slope,
        effects=fitted.effects,
        low=low,
        high=high,
        median=median,
        p90=p90,
    )


class _Fit:
    """Effects of traits on the size of residuals: the most likely Laplace scale, with a ridge.

    Args:
        runs: of which some count.
        places: of these.
        start: a fit of more runs, from which to start.
    """

    def __init__(self, runs: _Runs, places: IntArray, *, start: _Fit | None = None) -> None:
        self._runs = runs
        names = sorted({trait for i in places for trait in runs.traits[i]})
        groups = list(zip(runs.held_out[places], runs.families[places], strict=True))
        weights = runs.capped(places, groups, _MOST_OF_FAMILY)
        residuals = np.abs(runs.logs[places]) + _LEAST_LOG
        first = np.zeros(len(names) + 2)
        first[-1] = np.log(np.average(residuals, weights=weights))
        if start is not None:
            first = np.array(
                [*(start.effects[name] for name in names), start.slope * _FAR, start.base]
            )
        design = np.hstack([
            _matrix([runs.traits[i] for i in places], names),
            runs.distances[places, None] / _FAR,
            np.ones((len(places), 1)),
        ])  # fmt: skip
        coefficients = _most_likely(design, residuals, weights, first)
        if coefficients[-2] < 0:  # what is further off is no surer
            design[:, -2], first[-2] = 0.0, 0.0
            coefficients = _most_likely(design, residuals, weights, first)
        self.effects: dict[str, float] = dict(zip(names, coefficients[:-2].tolist(), strict=True))
        self.slope: float = float(coefficients[-2]) / _FAR
        self.base: float = float(coefficients[-1])

    def sizes(self, places: IntArray) -> FloatArray:
        """Sizes of the residuals of some runs; a trait that no fitted run has changes nothing."""
        traits = [self._runs.traits[i] for i in places]
        effects = [sum(self.effects.get(trait, 0.0) for trait in own) for own in traits]
        return np.exp(self.base + np.array(effects) + self.slope * self._runs.distances[places])


def _matrix(traits: Sequence[Sequence[str]], names: Sequence[str]) -> FloatArray:
    """Which run has which trait, shape [n, k] of 0 and 1."""
    at = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(traits), len(names)))
    for row, own in enumerate(traits):
        matrix[row, [at[trait] for trait in own]] = 1.0
    return matrix


def _most_likely(
    design: FloatArray, residuals: FloatArray, weights: FloatArray, first: FloatArray
) -> FloatArray:
    """Coefficients c of the sizes exp(design @ c), by Newton's method; the last has no penalty.

    What is minimised is convex: sum(weights * (ln size + residual / size)) + ridge / 2 * |c|^2.
    """
    penalty = np.full(design.shape[1], _RIDGE)
    penalty[-1] = 0.0
    coefficients = first
    for _ in range(_MOST_ROUNDS):
        relative = weights * residuals * np.exp(-(design @ coefficients))
        slope = design.T @ (weights - relative) + penalty * coefficients
        curvature = (design * relative[:, None]).T @ design + np.diag(penalty)
        move = np.linalg.solve(curvature, slope)
        size = float(np.abs(move).max())
        coefficients = coefficients - move * min(1.0, _MOST_MOVE / max(size, _SMALL_MOVE))
        if size < _SMALL_MOVE:
            break
    return coefficients


def _unseen_device(runs: _Runs, tasks: Mapping[str, TaskScale]) -> float:
    """The logarithm, added in squares, that holds runs on devices which were left out."""
    places = np.flatnonzero(runs.held_out == "device")
    if not len(places):
        return 0.0
    missing = []
    for i in places:
        scale = tasks[str(runs.tasks[i])]
        size = scale.size(runs.traits[i], float(runs.distances[i]))
        end = (scale.high if runs.logs[i] > 0 else -scale.low) * size
        missing.append(max(float(runs.logs[i]) ** 2 - end**2, 0.0) ** 0.5)
    weights = runs.capped(places, list(runs.devices[places]), _MOST_OF_DEVICE)
    ordered, middle = _ordered(np.array(missing), weights)
    return float(np.interp(LEVEL, middle, ordered))


def _quantiles(
    values: FloatArray, weights: FloatArray, shares: Sequence[float], count: int
) -> list[float]:
    """Weighted quantiles, as far out as the number of independent groups asks for.

    With n exchangeable values, the one of rank (n + 1) share holds for the next; below the median
    the same from the other side.
    """
    ordered, middle = _ordered(values, weights)
    return [float(np.interp(share + (share - 0.5) / count, middle, ordered)) for share in shares]


def error_quantiles(logs: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Median and 90th percentile of |simulated - true| / true of some runs, as they are.

    Args:
        logs: shape [n], ln(simulated / published), n of at least 1.
        weights: shape [n], above 0.
    """
    errors = np.abs(np.expm1(logs))
    ordered, middle = _ordered(errors, weights)
    median, p90 = np.interp((0.5, LEVEL), middle, ordered)
    return float(median), float(p90)


def _ordered(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values, rising, and the share of the weights up to the middle of each."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return values[order], (reached - weights[order] / 2) / reached[-1]
