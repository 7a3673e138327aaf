"""How much longer kernels of a compiled step take than those of the same ops without a compiler.

    OpFacts --CompiledKernels--> factor on the seconds of each op's kernel, shape [n]

Inductor calls the libraries for products and convolutions, in the layout that it chose, and writes
kernels of its own for the rest (decision 0069). Fitted to pairs of published steps with and without
`torch.compile` (`scripts.make_compiled_kernels`); TensorFlow's compiler is not meant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.simulate.op_facts import FACTS, GROUPS, OpFacts

__all__ = ["COMPILED_CLASSES", "CompiledKernels", "compiled_classes"]

FloatArray = npt.NDArray[np.float64]

_LAYOUTS = ("convolution", "grouped_convolution", "depthwise_convolution")  # differ by layout
_LIKE = {"norm_gradient": "norm", "pooling_gradient": "pooling"}
_OWN = ("matmul", "attention", "norm", "softmax", "pooling", "move", "reduction", "map")
_GROUP_NORM = "group_norm_last"
COMPILED_CLASSES = (
    *_LAYOUTS, *(f"{name}_last" for name in _LAYOUTS), *_OWN, _GROUP_NORM, "others", "start",
)  # fmt: skip
_OTHERS = COMPILED_CLASSES.index("others")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CompiledKernels:
    """Factors that hold for all GPUs.

    Attributes:
        classes: names of the classes when they were fitted, `COMPILED_CLASSES`.
        times: shape [C], seconds of a kernel's work over those without a compiler; the last is of
            the seconds to start a kernel.

    Raises:
        ConfigError: factors that do not fit the classes, or are not above 0.
    """

    classes: tuple[str, ...]
    times: FloatArray

    def __post_init__(self) -> None:
        if self.classes != COMPILED_CLASSES or self.times.shape != (len(COMPILED_CLASSES),):
            raise ConfigError(
                "the calibration's compiled kernels are of another version of Driple; fit them "
                "again"
            )
        if not (np.isfinite(self.times).all() and (self.times > 0).all()):
            raise ConfigError("factors of the calibration's compiled kernels must be above 0")

    def factors(self, facts: OpFacts) -> FloatArray:
        """Factors on the seconds of each op's work, shape [n]."""
        found: FloatArray = self.times[compiled_classes(facts)]
        return found

    @property
    def start(self) -> float:
        """Factor on the seconds to start a kernel."""
        return float(self.times[-1])


def compiled_classes(facts: OpFacts) -> npt.NDArray[np.int64]:
    """Position in `COMPILED_CLASSES` of each op, shape [n]."""
    of_group = np.full((len(GROUPS), 2), _OTHERS)
    for place, group in enumerate(GROUPS):
        name = _LIKE.get(group, group)
        if name in COMPILED_CLASSES:
            of_group[place] = COMPILED_CLASSES.index(name)
        if name in _LAYOUTS:
            of_group[place, 1] = COMPILED_CLASSES.index(f"{name}_last")
    last = (facts.values[:, FACTS.index("channels_last")] > 0).astype(np.int64)
    found: npt.NDArray[np.int64] = of_group[facts.groups, last]
    of_groups = np.array([kind.startswith("group_norm") for kind in facts.kinds], dtype=np.bool_)
    found[of_groups & (last > 0)] = COMPILED_CLASSES.index(_GROUP_NORM)
    return found
