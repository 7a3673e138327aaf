"""The fit that is repeated without a part of the rows: the place where a device model comes in.

ids of the rows that a fit may see -> Calibration

`held_out_fit` is what `scripts/make_heldout.py` calls for every fold, device and source.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driple.calibration.benchmark.splits import Part
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = ["Fit", "held_out_fit"]

# (part, ids of the rows that may be seen, folder of published rows) -> what devices and links reach
Fit = Callable[[Part, frozenset[str], Path], Calibration]


def held_out_fit(part: Part, seen: frozenset[str], published: Path) -> Calibration:
    """The calibration that a fit to some of the rows gives.

    The shipped calibration was fitted to TensorFlow runs alone: it has seen none of these rows,
    so that it is held out as it stands.

    Args:
        part: what is left out.
        seen: ids of the rows that the fit may see.
        published: folder of the rows, with their stored steps.
    """
    del part, seen, published
    return shipped_calibration()
