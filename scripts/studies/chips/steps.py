"""Published steps on a device that a fit has not seen, with products of the tables or without.

    python -m scripts.studies.chips.steps H100 B200 ...

Prints errors of each device's steps in half precision whose time the products change by over 3 %:
by the shares of its generation, by products as measured back to back, and by those of steps. The
fits without a device are those of `scripts/fits/part_fits.py`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driple.catalog import Device, device_named
from driple.runs.validation.shipped import read_shipped
from driple.runs.validation.simulated import simulate_rows
from driple.simulate.calibration import GpuModel, shipped_calibration
from driple.simulate.gpu_times import GpuEfficiency
from driple.simulate.product_shares import IN_STEPS
from scripts.fits.gpu_fits import LeftOut
from scripts.fits.heldout import fits

PUBLISHED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "published"
SLOWER = {"A100-80G": 1.053, "H100": 1.261, "B200": 1.328}
"""How many times as long as back to back the fit has products of steps, of devices with both."""
_MOST_ROWS, _CHANGED = 300, 0.03


def _without(device: str) -> float:
    """The mean of `SLOWER` without a device."""
    logs = [np.log(times) for name, times in SLOWER.items() if name != device]
    return float(np.exp(np.mean(logs)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Model(GpuModel):
    """A model whose products of devices without steps take other times.

    Attributes:
        times: how many times as long as back to back; None: by the shares of the generation.
    """

    times: float | None = None

    def of(self, device: Device, memory_activity: float) -> tuple[GpuEfficiency, str]:
        """What a device reaches, and its source."""
        efficiency, origin = GpuModel.of(self, device, memory_activity)
        slower = 1.0 if self.times is None else self.times / IN_STEPS
        known = self.times is not None and efficiency.products is not None
        products = (
            efficiency.products.over(slower, slower) if known and efficiency.products else None
        )
        return replace(efficiency, products=products), origin


def _model(model: GpuModel, times: float | None) -> _Model:
    return _Model(kernels=model.kernels, devices=model.devices, host=model.host, times=times)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the three on steps of each device."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("devices", nargs="+", metavar="DEVICE", help="such as H100")
    options = parser.parse_args(arguments)
    benchmark = read_shipped(PUBLISHED, forward=True)
    if benchmark is None:
        raise SystemExit(f"{PUBLISHED} has no published rows")
    drawn = np.random.default_rng(0)
    for name in options.devices:
        device_named(name)
        model = fits(training=False).without(LeftOut(device=name))
        shipped = shipped_calibration()
        place = re.compile(rf"x{re.escape(name)}(/|\+|$)")
        rows = [
            row for row in benchmark.rows
            if place.search(row.setting) and row.precision not in ("fp32", "tf32")
        ]  # fmt: skip
        if len(rows) > _MOST_ROWS:
            rows = [rows[i] for i in drawn.choice(len(rows), _MOST_ROWS, replace=False)]
        said = [
            simulate_rows(rows, benchmark.steps, replace(shipped, model=_model(model, times)))
            for times in (None, 1.0, _without(name))
        ]
        measured = np.array([row.step_s for row in rows])
        changed = np.abs(said[1] / said[0] - 1) > _CHANGED
        if not changed.any():
            print(name, f"none of {len(rows)} steps changes")
            continue
        cells = [100 * (one[changed] / measured[changed] - 1) for one in said]
        texts = [f"{np.median(np.abs(one)):.1f} ({np.median(one):+.0f})" for one in cells]
        print(name, f"{changed.sum()} of {len(rows)} steps:", "; ".join(texts), flush=True)


if __name__ == "__main__":
    main()
