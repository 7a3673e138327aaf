"""Fit the kernels of PyTorch's present libraries: scripts/fits/present.json and the calibration.

    python -m scripts.fits.present_kernels

Kernels of datasets/runs/measured-h100, each priced by the fit of `scripts.fits.part_fits` that has
not seen its family, are fitted with each fold of families left out, and all together. The last is
shipped in driple/simulate/calibration-gpu.json; fits without a fold have those without that fold.
Kernels of datasets/runs/measured-h200 and of scripts/studies/own_jobs are not seen: they check it.
"""

from __future__ import annotations

import json
from dataclasses import replace

from driple.codec import to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.measured_run import fold_of
from driple.simulate.calibration import shipped_calibration
from scripts.fits.calibration_gpu import ROOT, gpu_model_of, write
from scripts.fits.gpu_fits import LeftOut
from scripts.fits.heldout import fits, shipped
from scripts.fits.measured_gpu import MEASURED_FOLDER
from scripts.fits.measured_kernels import kernel_steps
from scripts.fits.present_fit import ALL, PRESENT_FILE, PartOps, fit_present, part_ops

FOLDS = range(10)


def main() -> None:
    """Fit all, and write both files."""
    models = {fold: fits(training=False).fitted(LeftOut(fold=fold)) for fold in FOLDS}
    parts: list[tuple[int, PartOps]] = []
    for family, _, kinds, step in kernel_steps(ROOT / "datasets" / "runs" / MEASURED_FOLDER, 1.0):
        fold = fold_of(family, shipped(training=False).folds)
        parts.append((fold, part_ops(kinds, step, models[fold])))
    fitted = {ALL: fit_present([part for _, part in parts])}
    for fold in FOLDS:
        fitted[f"fold {fold}"] = fit_present([part for other, part in parts if other != fold])
        print(f"fold {fold}", flush=True)
    text = json.dumps({name: to_dict(one, where=name) for name, one in fitted.items()}, indent=1)
    atomic_write(PRESENT_FILE, text.encode() + b"\n", error=ConfigError)
    known = shipped_calibration()
    write(replace(known, model=replace(gpu_model_of(known), present=fitted[ALL])))


if __name__ == "__main__":
    main()
