"""Fit the closed forms to published runs: writes driple/analytic/closed_forms.json.

    python -m scripts.fits.closed_forms

The repaired model of Zeng et al. is fitted to every other row of their table. The errors that
`driple predict` states for closed forms are on the other rows, and on the measured CPU settings
that nothing was fitted to. Some minutes; study models has all errors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driple.analytic.closed_forms import FORMAT, ClosedForm
from driple.cluster.setting import Setting
from driple.dataset.graph_store import GraphStore
from driple.errors import DripleError
from driple.files import atomic_write
from driple.simulate.calibration import shipped_calibration
from scripts.fits.zeng_runs import ZengFit, ZengRun, read_zeng
from scripts.settings.shipped import DATASETS, FIRST, ROOT
from scripts.studies.models.checks import (
    Halves,
    OnMeasured,
    error,
    held_out,
    on_measured,
    published_clusters,
    summary,
)

SHIPPED = ROOT / "driple" / "analytic" / "closed_forms.json"
TABLES = DATASETS / "runs" / "published"
GRAPHS = DATASETS / "graphs" / "calibration"
Errors = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The fit to every other row, and its errors.

    Attributes:
        runs: all rows.
        fit: to every other one.
        halves: errors on the rows that each of both fits has not seen.
        measured: errors on the measured CPU settings, the first setting first.
        errors: as in closed_forms.json.
    """

    runs: list[ZengRun]
    fit: ZengFit
    halves: list[Halves]
    measured: list[OnMeasured]
    errors: Errors


def progress(what: str) -> None:
    """Print what is done now."""
    print(what, flush=True)


def fitted() -> Fitted:
    """Fit to both halves of the rows, and compare with clusters and CPU settings."""
    runs, store = read_zeng(TABLES), GraphStore.open(GRAPHS)
    progress("fitting the repaired model to either half of the rows")
    fit, first = held_out(runs[::2], runs[1::2])
    _, second = held_out(runs[1::2], runs[::2])
    clusters = published_clusters(runs, store, shipped_calibration(), fit.exchange)
    on_cpu = on_measured(shipped_calibration(Setting.parse(FIRST)), fit.exchange, progress)
    measured = sorted(on_cpu, key=lambda row: row.setting != FIRST)
    return Fitted(
        runs=runs,
        fit=fit,
        halves=[first, second],
        measured=measured,
        errors=errors_of(clusters, runs[::2], measured),
    )


def errors_of(
    clusters: Sequence[tuple[ZengRun, list[ClosedForm]]],
    seen: Sequence[ZengRun],
    measured: Sequence[OnMeasured],
) -> Errors:
    """Errors by kind of cluster and method, on rows and settings that nothing was fitted to."""
    servers: dict[str, list[float]] = {}
    for run, forms in clusters:
        for form in forms:
            if form.method != "zeng-repaired" or run not in seen:
                off = float(error(form.iteration_time_s, run.measured_s))
                servers.setdefault(form.method, []).append(off)
    methods = measured[0].methods
    on_cpu = {
        name: np.abs(
            np.concatenate([row.methods[name] for row in measured if row.setting != FIRST]) - 1
        )
        for name in methods
    }
    return {
        "servers": {name: summary(np.array(values)) for name, values in servers.items()},
        "CPU": {name: summary(values) for name, values in on_cpu.items()},
    }


def to_json(result: Fitted) -> dict[str, Any]:
    """Content of closed_forms.json."""
    return {
        "format": FORMAT,
        "exchange": asdict(result.fit.exchange),
        "fit": result.fit.to_json_dict(),
        "errors": result.errors,
        "about": {
            "made_by": "scripts/fits/closed_forms.py",
            "fitted_to": "every other row of datasets/runs/published/zeng_iteration_time.csv.gz",
            "rows": len(result.runs[::2]),
        },
    }


def main() -> None:
    """Fit and write."""
    text = json.dumps(to_json(fitted()), indent=1) + "\n"
    atomic_write(SHIPPED, text.encode(), error=DripleError)


if __name__ == "__main__":
    main()
