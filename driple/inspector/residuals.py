"""Kernel ridge regression on a network's training residuals (ours).

    scaled context [C] --kernel to each training graph--> [n] --coefficients [n, 12]--> correction
    of the scaled outputs

Kernel ridge regression of the residuals (regression-kriging: Hengl, Heuvelink and Rossiter, "About
regression-kriging", Computers & Geosciences 2007). Jobs that differ only by the batch size have
similar errors. Far from all training graphs the kernel vanishes, and so does the correction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.checks import check_fields, check_number
from driple.errors import ConfigError
from driple.trace.targets import NUM_TARGETS

__all__ = ["Residuals", "differences", "nearness"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Residuals:
    """The residuals of one inspector as a function of the context.

    Attributes:
        length: mean difference of two scaled contexts over which nearness falls to 1 / e.
        learned: shape [n, C], float32, scaled contexts of the training graphs.
        coefficients: shape [n, 12], float32, in scaled targets.
    """

    length: float
    learned: npt.NDArray[np.float32]
    coefficients: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        check_number("length of the residuals", self.length, above=0)
        if self.learned.ndim != 2 or 0 in self.learned.shape:
            raise ConfigError(f"residuals of contexts of shape {self.learned.shape}; train anew")
        if self.coefficients.shape != (len(self.learned), NUM_TARGETS):
            raise ConfigError(
                f"residuals of {len(self.learned)} graphs have coefficients of shape "
                f"{self.coefficients.shape}; train anew"
            )
        for array in (self.learned, self.coefficients):
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise ConfigError("residuals hold no finite float32 numbers; train anew")

    def at(self, contexts: npt.ArrayLike) -> FloatArray:
        """Correction of the scaled outputs, shape [m, 12], for scaled contexts [m, C]."""
        near = nearness(differences(contexts, self.learned), self.length)
        added: FloatArray = near @ self.coefficients.astype(np.float64)
        return added

    def to_dict(self) -> dict[str, object]:
        """All but the arrays, which are arrays of the checkpoint too."""
        return {"length": self.length}

    @classmethod
    def from_dict(
        cls,
        fields: Mapping[str, object],
        learned: npt.NDArray[np.float32],
        coefficients: npt.NDArray[np.float32],
    ) -> Residuals:
        """The inverse of `to_dict`; raises ConfigError on odd fields."""
        check_fields("residuals", fields, ("length",))
        return cls(
            length=fields["length"],  # type: ignore[arg-type]  # checked by __post_init__
            learned=learned,
            coefficients=coefficients,
        )


def differences(contexts: npt.ArrayLike, learned: npt.ArrayLike) -> FloatArray:
    """Mean absolute differences of scaled contexts [m, C] and others [n, C], shape [m, n].

    A sum over the entries of the context, since many of them differ by nothing between two settings
    of one model's hyper-parameters, and one or two by much.
    """
    rows, others = np.asarray(contexts, np.float64), np.asarray(learned, np.float64)
    return np.stack([np.abs(others - row).mean(axis=1) for row in rows])


def nearness(apart: FloatArray, length: float) -> FloatArray:
    """exp(-difference / length), Laplace's kernel: 1 for a graph and itself, 0 far away.

    Args:
        apart: what `differences` gives, of any shape.
        length: above 0.
    """
    near: FloatArray = np.exp(-apart / length)
    return near
