"""Fit the simulator to published measurements: writes driple/simulate/calibration-gpu.json, and the
error on each run to checked_runs.json.

    python scripts/calibrate.py

Kernels and devices first, from runs on one device, then links, from runs on clusters. Rows come
from datasets/published, graphs from datasets/calibration. The fit is to all rows; the errors that
it states are of fits without the model that they predict, as `driple validate` has
them.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scipy.optimize import minimize_scalar

from driple.calibration.checked import checked_runs
from driple.calibration.fit import Fit
from driple.calibration.leave_one_out import Graphs, fit_links, prepare_runs
from driple.calibration.published import FACTS, most_passed_by_servers, read_rows
from driple.calibration.validate import (
    HeldOutPrediction,
    calibration_of,
    load_fits,
    predict_clusters,
    predict_singles,
    summarise,
)
from driple.catalog import DEVICES
from driple.errors import ConfigError
from driple.estimation.checked_runs import FILE, runs_to_json
from driple.files import atomic_write
from driple.simulate.calibration import ClusterErrors
from driple.simulate.kernels import kernel_times
from driple.trace.provenance import TimeError

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "datasets" / "published"
GRAPHS = ROOT / "datasets" / "calibration" / "graphs"
TARGET = ROOT / "driple" / "simulate" / "calibration-gpu.json"
CHECKED = ROOT / "driple" / "estimation" / FILE


def memory_activity(graphs: Graphs, fit: Fit) -> float:
    """Factor with which ResNet-50 on a 3090 uses memory as NVML saw it; a kernel runs all the time.

    Published for two batch sizes, of PyTorch; least squares of the share of the time.
    """
    wanted = {}
    for row in read_rows(TABLES / f"{FACTS}.csv.gz"):
        job = re.fullmatch(r"ResNet50 ImageNet fp32; batch (\d+)", row["subject"])
        if job and row["quantity"] == "GPU memory utilisation, mean":
            wanted[int(job[1])] = float(row["value"]) / 100
    graph, device = graphs["resnet50", False], DEVICES["3090"]

    def off(activity: float) -> float:
        efficiency = replace(fit.efficiency("3090"), memory_activity=activity)
        total = 0.0
        for batch_size, share in wanted.items():
            times = kernel_times(graph.table(batch_size), device, efficiency)
            _, kernel_s, active_s = graph.runs @ times
            total += (active_s / kernel_s - share) ** 2
        return total

    return float(minimize_scalar(off, bounds=(1.0, 5.0), method="bounded").x)


def errors_of(predicted: Sequence[HeldOutPrediction], kind: str) -> ClusterErrors:
    """Errors on one kind of cluster, with the model held out, and with the device held out.

    Of rings those count whose gradients travel while later ones are computed, as in every
    simulated ring; tf_cnn_benchmarks sends them afterwards, and only serves to fit the links.
    """
    found: dict[str, TimeError] = {}
    for held_out in ("model", "device"):
        some = [
            item
            for item in predicted
            if (item.run.kind, item.held_out) == (kind, held_out)
            and (item.run.overlapped or kind != "ring")
        ]
        summary = summarise(some)
        devices = (
            {item.name for item in some}
            if held_out == "device"
            else {name for item in some for name in item.run.devices}
        )
        found[held_out] = TimeError(
            rows=summary.rows,
            median_pct=round(100 * summary.median, 1),
            p90_pct=round(100 * summary.p90, 1),
            devices=tuple(sorted(devices)),
        )
    known = found["model"]
    return ClusterErrors(
        rows=known.rows,
        median_pct=known.median_pct,
        p90_pct=known.p90_pct,
        devices=known.devices,
        new_device=found["device"],
    )


def main() -> None:
    """Fit everything and write it down."""
    fits, runs = load_fits(TABLES, GRAPHS, lambda what: print(what, flush=True))
    best = fits.without()
    clusters = [run for run in runs if run.kind != "single"]
    links, apply_s = fit_links(prepare_runs(clusters, fits.graphs, best, fits.runs))
    most = most_passed_by_servers(TABLES)
    predicted = [*predict_singles(fits), *predict_clusters(fits, runs, most)]
    errors = {kind: errors_of(predicted, kind) for kind in ("single", "ring", "servers")}
    calibration = replace(
        calibration_of(best, links, apply_s_per_byte=apply_s, role_bytes_per_s=most),
        memory_activity=memory_activity(fits.graphs, best),
        errors=errors,
        about={
            "sources": sorted({run.source for run in runs} | {"driple_paper", "neusight"}),
            "fitted": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "rows": len(runs),
        },
    )
    text = json.dumps(calibration.to_dict(), indent=1)
    atomic_write(TARGET, text.encode() + b"\n", error=ConfigError)
    checked = runs_to_json(checked_runs(predicted))
    atomic_write(CHECKED, checked.encode(), error=ConfigError)
    print(json.dumps(errors, indent=1))
    for kind, link in links.items():
        print(kind, link)


if __name__ == "__main__":
    main()
