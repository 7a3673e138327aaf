"""Cost law that a transfer starts from: the pre-trained one, or one of the new labels (ours).

    outputs of the pre-trained inspector, contexts, labels of the new setting -> CostLaw

Between like settings the pre-trained law is the best: its inspector learned to correct it. Between
unlike ones, such as a simulated and a measured one, it is far off, and tuning the last layers does
not undo that. So three laws are tried on labels left out, each followed by the alignment of
`align`: the law as it is; one fitted to labels over the inspector's ratios; one fitted to labels.
They are judged by burst plus idle duration, the time of an iteration, since laws are of durations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from driple.inspector.cost_prior import CostPrior
from driple.inspector.scaling import TargetScaler, label_floor
from driple.trace.targets import FIGURES, RESOURCES
from driple.training.align import aligned_lines
from driple.training.cost_prior import fit_cost_law

__all__ = ["best_law"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_FOLDS = 5
# What another law must gain (decision 0015): between like settings it would be a choice of chance.
LEAST_GAIN = 0.1


def best_law(
    old: CostPrior,
    outputs: FloatArray,
    contexts: FloatArray,
    labels: FloatArray,
    *,
    scaler: TargetScaler,
    context_names: Sequence[str],
    seed: int,
) -> CostPrior:
    """The law with the smallest error on labels that it was not fitted to.

    Args:
        old: law of the pre-trained inspector.
        outputs: shape [n, 12], what that inspector gives, on the scale of `scaler`.
        contexts: shape [n, C], of the graphs.
        labels: shape [n, 12], of the new setting.
        scaler: scaler of the pre-trained inspector's targets.
        context_names: entries of the context.
        seed: random seed by which labels are left out.

    Raises:
        ConfigError: the context lacks costs.
        MissingExtraError: scipy is not installed.
    """
    ratios = scaler.inverse(outputs)

    def fitted(rows: Rows, known: FloatArray | None) -> CostPrior:
        return fit_cost_law(
            contexts[rows],
            labels[rows],
            label_floor(labels[rows]),
            context_names,
            prior=old,
            ratios=None if known is None else known[rows],
        )

    ways: list[Callable[[Rows], CostPrior]] = [
        lambda _: old,
        lambda rows: fitted(rows, ratios),
        lambda rows: fitted(rows, None),
    ]
    order = np.random.default_rng(seed).permutation(len(labels))
    floor = label_floor(labels)
    errors = np.zeros(len(ways))
    for fold in range(_FOLDS):
        rest = order[fold::_FOLDS]
        rows = np.setdiff1d(order, rest)
        for i, way in enumerate(ways):
            base = way(rows).log_targets(contexts)
            told = _told(rows, outputs, labels, base, scaler)[rest]
            wrong = _cycles(np.maximum(told, floor)) / _cycles(np.maximum(labels[rest], floor))
            errors[i] += np.abs(np.log(wrong)).sum()
    best = int(errors.argmin())
    return ways[best if errors[best] < (1 - LEAST_GAIN) * errors[0] else 0](order)


def _told(
    rows: Rows,
    outputs: FloatArray,
    labels: FloatArray,
    base: FloatArray,
    old: TargetScaler,
) -> FloatArray:
    """Targets of all graphs, of an inspector that is aligned with the labels of some rows."""
    new = TargetScaler.fit(labels[rows], old.kind, base[rows])
    scaled = new.transform(labels[rows], base[rows])
    slopes, offsets = aligned_lines(outputs[rows], scaled, old, new)
    return new.inverse(outputs * slopes + offsets, base)


def _cycles(targets: FloatArray) -> FloatArray:
    """Burst and idle duration together, shape [n, 4], of targets [n, 12]."""
    figures = targets.reshape(len(targets), len(RESOURCES), len(FIGURES))
    burst, idle = (FIGURES.index(figure) for figure in ("burst_duration", "idle_duration"))
    return figures[:, :, burst] + figures[:, :, idle]
