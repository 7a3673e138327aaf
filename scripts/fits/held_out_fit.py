"""The fit that is repeated without a part of the rows.

a part of a split -> GpuFits -> Calibration

`held_out_fit` is what `scripts/make_heldout.py` calls for every fold, device and source, and for
the ends of families. Links are those of the shipped calibration: few rows tell of them, and the
published latencies are no fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from driple.errors import ConfigError
from driple.runs.validation.splits import Part
from driple.simulate.calibration import Calibration, shipped_calibration
from scripts.fits.gpu_fits import GpuFits, LeftOut
from scripts.fits.sizes import fold_of_smallest

__all__ = ["Fit", "held_out_fit", "left_out_of"]

# (part, fits) -> what devices and links reach
Fit = Callable[[Part, GpuFits], Calibration]


def held_out_fit(part: Part, fits: GpuFits) -> Calibration:
    """The calibration that a fit to some of the rows gives.

    Args:
        part: what is left out.
        fits: to the rows.
    """
    return replace(shipped_calibration(), model=fits.without(left_out_of(part)))


def left_out_of(part: Part) -> LeftOut:
    """What a fit for a part does not see.

    Raises:
        ConfigError: no such split.
    """
    if part.split == "nothing":
        return LeftOut()
    if part.split == "family":
        return LeftOut(fold=int(part.name.removeprefix("fold ")))
    if part.split == "size":
        fold = int(part.name.removeprefix("sizes "))
        return LeftOut(largest=fold, smallest=fold_of_smallest(fold))
    if part.split == "device":
        return LeftOut(device=part.name)
    if part.split == "source":
        return LeftOut(source=part.name)
    raise ConfigError(f"no fit is made for the split {part.split[:40]!r}")
