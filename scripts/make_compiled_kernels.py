"""Fit the kernels of compiled steps: scripts/fits/compiled.json and the calibration.

    python -m scripts.make_compiled_kernels

Pairs of published forward passes with and without `torch.compile`, each priced by the fit of
`scripts.make_heldout` that has not seen its family, are fitted with each fold of families left out,
and all together, which is shipped in driple/simulate/calibration-gpu.json. Prints the errors.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np

from driple.catalog import DEVICES
from driple.codec import to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.measured_run import fold_of
from driple.runs.validation.speedups import compile_pairs
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel
from scripts.calibrate import write
from scripts.fits.compiled_fit import (
    COMPILED_FILE,
    WorkOfPair,
    fit_compiled,
    predicted_logs,
    work_by_class,
)
from scripts.fits.gpu_fits import LeftOut
from scripts.make_heldout import fits, shipped

FOLDS = range(10)


def main() -> None:
    """Fit all, print held-out errors, and write both files."""
    pairs, folds, devices = all_pairs()
    found = {"all": fit_compiled(pairs)}
    off: dict[str, list[tuple[float, float]]] = {"family": [], "device": []}
    for fold in FOLDS:
        made = fit_compiled([pair for pair, its in zip(pairs, folds, strict=True) if its != fold])
        found[f"fold {fold}"] = made
        off["family"] += [
            predicted_logs(pair, made)
            for pair, its in zip(pairs, folds, strict=True)
            if its == fold
        ]
    for device in sorted(set(devices)):
        made = fit_compiled([p for p, its in zip(pairs, devices, strict=True) if its != device])
        off["device"] += [
            predicted_logs(p, made) for p, its in zip(pairs, devices, strict=True) if its == device
        ]
    for split, errors in off.items():
        for name, logs in zip(("speed-up", "compiled step"), np.array(errors).T, strict=True):
            median, p90 = 100 * np.quantile(abs(np.expm1(logs)), [0.5, 0.9])
            print(f"{split} left out, {name}: {len(logs)} pairs, {median:.1f} % off in the median, "
                  f"{p90:.1f} % at the 90th percentile")  # fmt: skip
    print({name: round(float(x), 2) for name, x in zip(found["all"].classes, found["all"].times,
                                                       strict=True)})  # fmt: skip
    text = json.dumps({name: to_dict(one, where=name) for name, one in found.items()}, indent=1)
    atomic_write(COMPILED_FILE, text.encode() + b"\n", error=ConfigError)
    known = shipped_calibration()
    if not isinstance(known.model, GpuModel):
        raise ConfigError("the shipped calibration is not of GPUs")
    write(replace(known, model=replace(known.model, compiled=found["all"])))


def all_pairs() -> tuple[list[WorkOfPair], list[int], list[str]]:
    """Every pair, its fold of families and its device."""
    known = shipped(training=False)
    rows, found = known.rows, compile_pairs(known.rows)
    families = Counter(pair.row.family for pair in found)
    models = {fold: fits(training=False).without(LeftOut(fold=fold)) for fold in FOLDS}
    pairs, folds = [], []
    for pair in sorted(found, key=lambda one: repr(one.row.step_key)):
        eager, compiled = rows[pair.eager], rows[pair.compiled]
        fold, device = fold_of(eager.family, known.folds), DEVICES[eager.device]
        efficiency, _ = models[fold].of(device, 1.0)
        eager_s, work_s = (
            work_by_class(known.steps.prepared(row), device, efficiency)
            for row in (eager, compiled)
        )
        pairs.append(
            WorkOfPair(
                work_s=work_s,
                eager_s=float(eager_s.sum()),
                measured_s=(eager.step_s, compiled.step_s),
                weight=families[eager.family] ** -0.5,
            )
        )
        folds.append(fold)
    return (
        pairs,
        folds,
        [pair.row.device for pair in sorted(found, key=lambda one: repr(one.row.step_key))],
    )


if __name__ == "__main__":
    main()
