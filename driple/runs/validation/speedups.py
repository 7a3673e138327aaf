"""How much faster a compiler makes a job: predicted against measured ratio of two rows.

rows --compile_pairs--> CompilePair, ... + predictions --speedup_scores--> GroupScore, ...

Two rows are a pair if they differ in nothing but the compiler: one model at one batch size and size
of its input, on one device, by one release of PyTorch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.runs.measured_run import MeasuredRun, fold_of
from driple.runs.validation.metrics import (
    family_weights,
    weighted_quantile,
)
from driple.runs.validation.predictions import RowPrediction
from driple.runs.validation.scores import GroupScore

__all__ = [
    "SPEEDUP",
    "CompilePair",
    "compile_pairs",
    "constant_speedups",
    "predicted_speedups",
    "speedup_scores",
]

FloatArray = npt.NDArray[np.float64]
Predicted = Mapping[tuple[str, str], Sequence[RowPrediction | None]]

SPEEDUP = "speed-up"  # `GroupScore.by` of these scores
CONSTANT = "constant"
_ALL = "all devices"


@dataclass(frozen=True, slots=True)
class CompilePair:
    """Positions of two rows of one job, and what was measured.

    Attributes:
        eager: position of the row without a compiler.
        compiled: position of the row with it.
        row: the one without, for its family, device and weight.
        speedup: measured time without over time with the compiler.
    """

    eager: int
    compiled: int
    row: MeasuredRun
    speedup: float


def compile_pairs(rows: Sequence[MeasuredRun]) -> list[CompilePair]:
    """The pairs among rows, in the order of those without a compiler.

    A job that was measured several times in the same way makes no pair: which of its rows belong
    together is not known.
    """
    groups: dict[tuple[object, ...], dict[bool, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, row in enumerate(rows):
        groups[_key(row)][row.compiled].append(i)
    pairs = []
    for both in groups.values():
        if len(both[False]) == len(both[True]) == 1:
            (eager,), (compiled,) = both[False], both[True]
            speedup = rows[eager].step_s / rows[compiled].step_s
            pairs.append(CompilePair(eager, compiled, rows[eager], speedup))
    return sorted(pairs, key=lambda pair: pair.eager)


def _key(row: MeasuredRun) -> tuple[object, ...]:
    """All of a row but its compiler, its measured time and its names."""
    return (
        row.source, row.job, row.setting, row.task, row.framework, row.library, row.precision,
        row.channels_last, row.batch_size, row.seq_len, row.input_shape, row.optimizer,
        row.grad_accumulation, row.activation_checkpointing,
    )  # fmt: skip


def speedup_scores(
    rows: Sequence[MeasuredRun],
    predicted: Predicted,
    folds: Mapping[str, int] | None = None,
) -> list[GroupScore]:
    """Errors of predicted speed-ups by device and of all, beside those of one constant.

    Args:
        rows: with measured times.
        predicted: by split and predictor, a prediction of each row or None.
        folds: fold of each family.

    Returns:
        Scores of every predictor that predicts both rows of some pair, and of the constant: the
        median speed-up of the pairs of the other folds of families. It is scored on the pairs that
        some predictor predicts.
    """
    pairs = compile_pairs(rows)
    constants = constant_speedups(pairs, folds)
    scores, answered = [], set()
    for (split, predictor), predictions in predicted.items():
        some, ratios = predicted_speedups(pairs, predictions)
        answered |= {pair.eager for pair in some}
        scores += _scored(split, predictor, some, ratios)
    if answered:
        same = [pair for pair in pairs if pair.eager in answered]
        ratios = np.array([constants[pair.eager] for pair in same])
        scores += _scored("family", CONSTANT, same, ratios)
    return scores


def predicted_speedups(
    pairs: Sequence[CompilePair], predictions: Sequence[RowPrediction | None]
) -> tuple[list[CompilePair], FloatArray]:
    """The pairs of which both rows are predicted, and their predicted speed-ups."""
    some, ratios = [], []
    for pair in pairs:
        eager, compiled = predictions[pair.eager], predictions[pair.compiled]
        if eager is not None and compiled is not None:
            some.append(pair)
            ratios.append(eager.seconds / compiled.seconds)
    return some, np.array(ratios)


def constant_speedups(
    pairs: Sequence[CompilePair], folds: Mapping[str, int] | None = None
) -> dict[int, float]:
    """For each pair the median measured speed-up of the other folds; of all, if there are none.

    Args:
        pairs: with measured speed-ups.
        folds: fold of each family.

    Returns:
        By the position of the row without a compiler.
    """
    fold = np.array([fold_of(pair.row.family, folds) for pair in pairs])
    measured = np.array([pair.speedup for pair in pairs])
    of_fold = {
        one: float(np.median(rest if len(rest := measured[fold != one]) else measured))
        for one in set(fold.tolist())
    }
    places = (pair.eager for pair in pairs)
    return dict(zip(places, (of_fold[one] for one in fold.tolist()), strict=True))


def _scored(
    split: str, predictor: str, pairs: Sequence[CompilePair], ratios: FloatArray
) -> list[GroupScore]:
    groups: dict[str, list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        groups[_ALL].append(i)
        groups[pair.row.device].append(i)
    return [
        _group(name, split, predictor, [pairs[i] for i in places], ratios[places])
        for name, places in sorted(groups.items(), key=lambda item: (item[0] != _ALL, item[0]))
    ]


def _group(
    name: str, split: str, predictor: str, pairs: Sequence[CompilePair], ratios: FloatArray
) -> GroupScore:
    errors = ratios / np.array([pair.speedup for pair in pairs]) - 1
    rows = [pair.row for pair in pairs]
    weights = family_weights(rows)
    return GroupScore(
        by=SPEEDUP,
        group=name,
        mode=rows[0].task,
        split=split,
        predictor=predictor,
        rows=len(rows),
        families=len({row.family for row in rows}),
        median_pct=100 * weighted_quantile(np.abs(errors), weights, 0.5),
        p90_pct=100 * weighted_quantile(np.abs(errors), weights, 0.9),
        signed_pct=100 * weighted_quantile(errors, weights, 0.5),
        tau=None,
        coverage_pct=None,
        width=None,
    )
