"""Choice of the cost prior for a transfer: the pre-trained one, or a refit to new labels (ours).

    outputs of the pre-trained inspector, contexts, labels of the new setting -> CostLaw

Between similar settings the pre-trained prior is best, since its inspector learned to correct it.
Between dissimilar ones, such as a simulated and a measured one, it is far off, and fine-tuning the
last layers does not compensate. So three priors are compared by cross-validation, each followed by
the alignment of `align`: the pre-trained prior; a fit to labels over the inspector's ratios; a fit
to labels. The criterion is the error of burst plus idle duration (the iteration time), since priors
are about durations.
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
# Minimum gain of a refit prior (decision 0015): between similar settings the choice would be
# random.
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
    """The cost prior with the smallest cross-validation error.

    Args:
        old: cost prior of the pre-trained inspector.
        outputs: shape [n, 12], outputs of that inspector, on the scale of `scaler`.
        contexts: shape [n, C], contexts of the graphs.
        labels: shape [n, 12], of the new setting.
        scaler: scaler of the pre-trained inspector's targets.
        context_names: entries of the context.
        seed: random seed of the cross-validation.

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
            aligned = _aligned_targets(rows, outputs, labels, base, scaler)[rest]
            wrong = _cycles(np.maximum(aligned, floor)) / _cycles(np.maximum(labels[rest], floor))
            errors[i] += np.abs(np.log(wrong)).sum()
    best = int(errors.argmin())
    return ways[best if errors[best] < (1 - LEAST_GAIN) * errors[0] else 0](order)


def _aligned_targets(
    rows: Rows,
    outputs: FloatArray,
    labels: FloatArray,
    base: FloatArray,
    old: TargetScaler,
) -> FloatArray:
    """Targets of all graphs by an inspector that is aligned with the labels of some rows."""
    new = TargetScaler.fit(labels[rows], old.kind, base[rows])
    scaled = new.transform(labels[rows], base[rows])
    slopes, offsets = aligned_lines(outputs[rows], scaled, old, new)
    return new.inverse(outputs * slopes + offsets, base)


def _cycles(targets: FloatArray) -> FloatArray:
    """Burst and idle duration together, shape [n, 4], of targets [n, 12]."""
    figures = targets.reshape(len(targets), len(RESOURCES), len(FIGURES))
    burst, idle = (FIGURES.index(figure) for figure in ("burst_duration", "idle_duration"))
    return figures[:, :, burst] + figures[:, :, idle]
