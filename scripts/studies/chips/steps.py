"""Published steps on a device that a fit has not seen, with products of the tables or without.

    python -m scripts.studies.chips.steps H100 B200 ...

Prints errors of each device's steps in half precision whose time the products change by over 3 %:
by the shares of its generation, by products as measured back to back, and by those of steps. The
fits without a device are those that `scripts/make_heldout.py` keeps in build/heldout/fits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.catalog import Device, device_named
from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.shipped import read_shipped
from driple.runs.validation.simulated import simulate_rows
from driple.simulate import device_models
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.product_shares import IN_STEPS, ProductShares, product_shares_of
from scripts.fits.gpu_fits import LeftOut
from scripts.make_heldout import fits

FloatArray = npt.NDArray[np.float64]
PUBLISHED = Path(__file__).resolve().parents[3] / "datasets" / "published"
SLOWER = {"A100-80G": 1.053, "H100": 1.261, "B200": 1.328}
"""How many times as long as back to back the fit has products of steps, of devices with both."""
_MOST_ROWS, _CHANGED = 300, 0.03


def _without(device: str) -> float:
    """The mean of `SLOWER` without a device."""
    logs = [np.log(times) for name, times in SLOWER.items() if name != device]
    return float(np.exp(np.mean(logs)))


def _seconds(
    rows: Sequence[MeasuredRun], calibration: Calibration, times: float | None
) -> FloatArray:
    """Simulated seconds, with products `times` as long as back to back; None: of the generation."""

    def shares(device: Device) -> ProductShares | None:
        found = product_shares_of(device)
        if times is None or found is None:
            return None
        return found.over(times / IN_STEPS, times / IN_STEPS)

    found = read_shipped(PUBLISHED, forward=True)
    if found is None:
        raise ConfigError(f"{PUBLISHED} has no published rows")
    before, device_models.product_shares_of = device_models.product_shares_of, shares
    try:
        return simulate_rows(rows, found.steps, calibration)
    finally:
        device_models.product_shares_of = before


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the three on steps of each device."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("devices", nargs="+", metavar="DEVICE", help="such as H100")
    options = parser.parse_args(arguments)
    found = read_shipped(PUBLISHED, forward=True)
    if found is None:
        raise SystemExit(f"{PUBLISHED} has no published rows")
    drawn = np.random.default_rng(0)
    for name in options.devices:
        device_named(name)
        model = fits(training=False).without(LeftOut(device=name))
        calibration = replace(shipped_calibration(), model=model)
        rows = [
            row for row in found.rows
            if f"x{name}" in row.setting.partition("/")[0] and row.precision not in ("fp32", "tf32")
        ]  # fmt: skip
        if len(rows) > _MOST_ROWS:
            rows = [rows[i] for i in drawn.choice(len(rows), _MOST_ROWS, replace=False)]
        said = [_seconds(rows, calibration, times) for times in (None, 1.0, _without(name))]
        measured = np.array([row.step_s for row in rows])
        changed = np.abs(said[1] / said[0] - 1) > _CHANGED
        cells = [100 * (one[changed] / measured[changed] - 1) for one in said]
        texts = [f"{np.median(np.abs(one)):.1f} ({np.median(one):+.0f})" for one in cells]
        print(name, f"{changed.sum()} of {len(rows)} steps:", "; ".join(texts), flush=True)


if __name__ == "__main__":
    main()
