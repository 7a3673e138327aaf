"""How far steps are off on a device that is tuned to ten others: driple/answers/tuned_steps.json.

    python -m scripts.fits.tuned_errors

Steps that we measured on an H100 and an H200, by fits that have not seen their model's family; ten
of them, drawn `DRAWS` times, tune the device as `driple transfer --from gpu` does, and those of
other models are predicted. The fits are those of `scripts.fits.part_fits`.
"""

from __future__ import annotations

import datetime
import json

import numpy as np

from driple.answers.tuned_steps import FILE
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.tuning import errors_pct, factors_of
from scripts.studies.own_runs.run import MEASURED, own_steps

RUNS, DRAWS = 10, 20
_ENDS = (0.05, 0.95)


def main() -> None:
    """Write it."""
    ratios: list[float] = []  # measured over predicted
    waits: list[bool] = []
    count = 0
    for device in MEASURED:
        steps = list(own_steps(device, busy=False))
        count += len(steps)
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(len(steps)).tolist()
            seen = [steps[i] for i in order[:RUNS]]
            factors, known = factors_of(seen), {one.group for one in seen}
            for step in (steps[i] for i in order[RUNS:]):
                if step.group not in known:
                    ratios.append(step.seconds / step.predicted_s(factors))
                    waits.append(step.waits(factors))
    measured, decided = np.array(ratios), np.array(waits)
    errors = errors_pct(1 / measured)
    summary = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "devices": list(MEASURED),
        "num_steps": count,
        "num_runs": RUNS,
        "median_pct": round(float(np.median(errors)), 1),
        "p90_pct": round(float(np.quantile(errors, 0.9)), 1),
        "device_ends": np.quantile(measured[~decided], _ENDS).round(3).tolist(),
        "host_ends": np.quantile(measured[decided], _ENDS).round(3).tolist(),
    }
    print(summary)
    atomic_write(FILE, (json.dumps(summary, indent=1) + "\n").encode(), error=ConfigError)


if __name__ == "__main__":
    main()
