"""Predictors that any inspector must beat; they share one small protocol.

fit(training examples)  ->  predict(examples)  ->  targets [n, 12]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Example
from driple.errors import DatasetError

__all__ = ["BASELINES", "Baseline", "MeanBaseline", "fit_mean"]

FloatArray = npt.NDArray[np.float64]


class Baseline(Protocol):
    """What a fitted baseline can do."""

    def predict(self, examples: Sequence[Example]) -> FloatArray:
        """Shape [len(examples), 12], in the targets' own units."""
        ...


@dataclass(frozen=True, slots=True)
class MeanBaseline:
    """Predicts the same for every workload.

    Attributes:
        mean: shape [12], mean of each target over the training examples.
    """

    mean: FloatArray

    def predict(self, examples: Sequence[Example]) -> FloatArray:
        """The mean, once per example."""
        return np.tile(self.mean, (len(examples), 1))


def fit_mean(examples: Sequence[Example]) -> MeanBaseline:
    """The mean of the training labels, target by target.

    Raises:
        DatasetError: no examples.
    """
    if not examples:
        raise DatasetError("the mean predictor was given no training workloads; it needs 1 or more")
    return MeanBaseline(np.mean([example.targets.flat for example in examples], axis=0))


BASELINES: Mapping[str, Callable[[Sequence[Example]], Baseline]] = MappingProxyType(
    {"mean": fit_mean}
)
