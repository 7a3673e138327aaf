"""Prediction intervals, wider for graphs far from the training graphs.

    scaled context -> distance to the nearest training graph -> near, far or beyond
    distance, whether it is warned of -> half-widths [13] of the logarithm
    prediction, half-widths -> lower and upper ends

Split conformal prediction (Lei et al., "Distribution-Free Predictive Inference for Regression",
JASA 2018), with one set of half-widths for graphs near to training graphs, from errors on workloads
left out at random, and one for the others, from errors on whole families left out (ours). A graph
further off than all of those is beyond what was calibrated: its half-widths grow with its distance,
and no share is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.checks import check_fields, check_number
from driple.errors import ConfigError
from driple.estimate import LEVEL
from driple.trace.targets import NUM_TARGETS

__all__ = [
    "NEAR_SHARE",
    "NUM_NUMBERS",
    "Intervals",
    "conformal_quantile",
    "half_widths_at",
    "nearest_distances",
]

FloatArray = npt.NDArray[np.float64]

NUM_NUMBERS = NUM_TARGETS + 1  # the targets, then the iteration time
# Graphs further from the training graphs than nine of ten validation graphs count as far.
NEAR_SHARE = 0.9
_ROUNDING = 1e-9  # of sums of weights


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervals:
    """Calibrated errors of one inspector.

    Attributes:
        level: nominal coverage of the intervals.
        near: shape [13], half-widths of the logarithm for graphs near to training graphs.
        far: shape [13], for the others; None where no families were left out to learn it.
        threshold: largest distance that counts as near.
        reach: distance of the furthest graph that the half-widths come from.
        known: shape [n, C], float32, scaled contexts of the training graphs.
    """

    level: float
    near: FloatArray
    far: FloatArray | None
    threshold: float
    reach: float
    known: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        check_number("level of the intervals", self.level, above=0, below=1)
        check_number("threshold of the intervals", self.threshold, least=0)
        check_number("reach of the intervals", self.reach, least=self.threshold)
        for name, widths in (("near", self.near), ("far", self.far)):
            if widths is None:
                continue
            if widths.shape != (NUM_NUMBERS,) or not np.isfinite(widths).all():
                raise ConfigError(f"{name} intervals are no {NUM_NUMBERS} finite numbers")
            if (widths < 0).any():
                raise ConfigError(f"{name} intervals are negative; train it anew")

    def distance(self, context: npt.ArrayLike) -> float:
        """Distance from a scaled context [C] to the nearest training graph."""
        row = np.asarray(context, dtype=np.float64)[None, :]
        return float(nearest_distances(row, self.known)[0])

    def is_far(self, distance: float) -> bool:
        """Whether a graph at this distance is unlike all training graphs."""
        return distance > self.threshold

    def is_beyond(self, distance: float) -> bool:
        """Whether it is further off than every graph that the half-widths come from."""
        return distance > self.reach

    def around(self, numbers: FloatArray, distance: float, *, warned: bool) -> FloatArray:
        """Lower and upper ends, shape [13, 2], around predicted numbers [13].

        Args:
            numbers: the targets and the iteration time.
            distance: distance of the graph to the nearest training graph.
            warned: whether it is outside of the training graphs in any way.
        """
        half = half_widths_at(
            self.near,
            self.far,
            distance=distance,
            threshold=self.threshold,
            reach=self.reach,
            warned=warned,
        )
        factor = np.exp(half)
        return np.stack([numbers / factor, numbers * factor], axis=1)

    def to_dict(self) -> dict[str, object]:
        """All but `known`, which is an array of the checkpoint."""
        return {
            "level": self.level,
            "near": self.near.tolist(),
            "far": None if self.far is None else self.far.tolist(),
            "threshold": self.threshold,
            "reach": self.reach,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, object], known: npt.NDArray[np.float32]) -> Intervals:
        """The inverse of `to_dict`; raises ConfigError on odd fields."""
        check_fields("intervals", fields, ("level", "near", "far", "threshold", "reach"))
        try:
            widths = {
                name: None if fields[name] is None else np.array(fields[name], dtype=np.float64)
                for name in ("near", "far")
            }
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError("intervals of a checkpoint are no numbers; train it anew") from error
        if widths["near"] is None:
            raise ConfigError("intervals of a checkpoint lack the near ones; train it anew")
        return cls(
            level=fields["level"],  # type: ignore[arg-type]  # checked by __post_init__
            near=widths["near"],
            far=widths["far"],
            threshold=fields["threshold"],  # type: ignore[arg-type]  # likewise
            reach=fields["reach"],  # type: ignore[arg-type]  # likewise
            known=known,
        )


def half_widths_at(
    near: FloatArray,
    far: FloatArray | None,
    *,
    distance: float,
    threshold: float,
    reach: float,
    warned: bool,
) -> FloatArray:
    """Half-widths of the logarithm for one graph, shape [13].

    Args:
        near: errors for graphs near to training graphs, shape [13].
        far: for others, and those that are warned of; None where the near ones serve for all.
        distance: distance of the graph to the nearest training graph.
        threshold: largest distance that counts as near.
        reach: up to which distance half-widths are known; beyond, they grow in proportion.
        warned: whether it is outside of the training graphs in any way.
    """
    half = far if far is not None and (warned or distance > threshold) else near
    return half * (distance / reach) if distance > reach > 0 else half


def conformal_quantile(
    errors: FloatArray, level: float = LEVEL, *, families: Sequence[str] | None = None
) -> FloatArray | None:
    """The error of each column that a new one does not pass with probability `level`.

    Of n exchangeable errors that is the ceil((n + 1) level)-th smallest. With families, it is the
    families that are exchangeable: each counts the same, whatever its number of workloads (pooled
    distribution functions: Dunn, Wasserman, Ramdas, "Distribution-Free Prediction Sets for
    Two-Layer Hierarchical Models", JASA 2023). That holds for many families; of a dozen, the share
    that is held falls short of the level by some 2 % (simulated, families of unlike spread), of
    three by 3 to 4 %.

    Args:
        errors: shape [n, columns].
        level: between 0 and 1.
        families: families of each error.

    Returns:
        Shape [columns]; None where n is too small for the level (9 errors are needed for 0.9).
    """
    rank = math.ceil((len(errors) + 1) * level)
    if rank > len(errors):
        return None
    order = np.argsort(errors, axis=0, kind="stable")
    ordered: FloatArray = np.take_along_axis(errors, order, axis=0)
    if families is None:
        smallest: FloatArray = ordered[rank - 1]
        return smallest
    names, which, counts = np.unique(families, return_inverse=True, return_counts=True)
    weights = (1 / (len(names) * counts))[which]
    passed = np.cumsum(weights[order], axis=0) < level - _ROUNDING
    rows = np.minimum(passed.sum(axis=0), len(errors) - 1)
    reached: FloatArray = np.take_along_axis(ordered, rows[None, :], axis=0)[0]
    return reached


def nearest_distances(contexts: npt.ArrayLike, known: npt.ArrayLike) -> FloatArray:
    """Root mean squared difference of each context [n, C] to the nearest of `known` [m, C]."""
    rows, others = np.asarray(contexts, np.float64), np.asarray(known, np.float64)
    if rows.shape[1] == 0:
        return np.zeros(len(rows))
    squares = [np.square(others - row).mean(axis=1).min() for row in rows]
    distances: FloatArray = np.sqrt(np.array(squares))
    return distances
