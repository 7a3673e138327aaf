"""What kernels of PyTorch's present libraries take beyond what facts of an op give (decision 0062).

    OpFacts --PresentKernels--> factors on the shares that kernels reach, seconds to start an op's
                                kernels, seconds of kernels that follow one another

Fitted to kernels that PyTorch's profiler timed on an H100 (`scripts.fits.present_fit`). Earlier
libraries and TensorFlow pick other kernels, and their steps do without; a compiler keeps those that
are faster.

The functions take NumPy's arrays, or torch's with `xp=torch` when they are fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.kernel_picks import PICKS, TURNS
from driple.simulate.op_facts import FACTS, GROUPS, OpFacts

__all__ = ["PRESENT_ARRAYS", "STARTS", "PresentKernels", "is_present", "log_factors", "start_rows"]

FloatArray = npt.NDArray[np.float64]

STARTS = (*GROUPS, "cast", "convolution_apart")
"""Ops whose kernels take alike to start. Convolutions with channels apart change the layout."""
PRESENT_ARRAYS: Mapping[str, tuple[int, ...]] = {
    "pick": (len(PICKS), 2), "start_s": (len(STARTS),), "turn_s": (len(TURNS),),
}  # fmt: skip
_PRESENT = "torch2"
_BEND = 3.0  # logarithm to which factors are held


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PresentKernels:
    """What holds for all GPUs; two columns are FLOP/s and bytes/s.

    Attributes:
        picks: names of the picks when it was fitted, `PICKS`.
        starts: names of the starts when it was fitted, `STARTS`.
        pick: shape [P, 2], logarithms of factors on the shares of ops with a pick.
        start_s: shape [S], seconds that an op's kernels take at least, as a profiler counts.
        turn_s: shape [T], seconds at least of each of the kernels that follow one another.

    Raises:
        ConfigError: arrays that do not fit together.
    """

    picks: tuple[str, ...]
    starts: tuple[str, ...]
    pick: FloatArray
    start_s: FloatArray
    turn_s: FloatArray

    def __post_init__(self) -> None:
        if self.picks != PICKS or self.starts != STARTS:
            raise ConfigError(
                "the calibration's present kernels are of another version of Driple; fit them again"
            )
        for name, shape in PRESENT_ARRAYS.items():
            values = getattr(self, name)
            if values.shape != shape or not np.isfinite(values).all():
                raise ConfigError(
                    f"{name} of the calibration's present kernels must be finite numbers of shape "
                    f"{list(shape)}, got shape {list(values.shape)}"
                )
        if (self.start_s < 0).any() or (self.turn_s < 0).any():
            raise ConfigError("seconds of the calibration's present kernels must not be negative")

    def factors(self, facts: OpFacts) -> FloatArray:
        """Factors on the shares that each op's kernel reaches, shape [n, 2]."""
        factors: FloatArray = np.exp(log_factors(self.pick, facts.picks, np))
        return factors

    def starts_s(self, facts: OpFacts) -> FloatArray:
        """Seconds that each op's kernels take at least, shape [n]."""
        starts_s: FloatArray = self.start_s[start_rows(facts)]
        return starts_s

    def turns_s(self, facts: OpFacts) -> FloatArray:
        """Seconds at least of the kernels that follow one another within each op, shape [n]."""
        turns_s: FloatArray = facts.turns @ self.turn_s
        return turns_s

    @property
    def sort_s(self) -> float:
        """Seconds of a kernel that sorts."""
        return float(self.start_s[STARTS.index("indexed")])


def is_present(runtime: Runtime) -> bool:
    """Whether a step runs by the libraries that were measured."""
    return runtime.library == _PRESENT


def log_factors(pick: Any, picks: Any, xp: Any) -> Any:
    """Logarithms of factors on shares, shape [n, 2].

    Args:
        pick: shape [P, 2].
        picks: shape [n, P].
        xp: the module of the arrays, NumPy or torch.
    """
    return _BEND * xp.tanh(picks @ pick / _BEND)


def start_rows(facts: OpFacts) -> npt.NDArray[np.int64]:
    """Position in `STARTS` of each op, shape [n]."""
    rows = facts.groups.copy()
    apart = facts.values[:, FACTS.index("channels_last")] == 0
    rows[apart & (rows == GROUPS.index("convolution"))] = STARTS.index("convolution_apart")
    rows[np.array([kind == "cast" for kind in facts.kinds], dtype=np.bool_)] = STARTS.index("cast")
    return rows
