"""Fit the simulator to published measurements: writes driple/simulate/calibration.json.

    python scripts/calibrate.py

Kernels and devices first, from runs on one device, then links, from runs on clusters. Rows and
graphs come from data/published and data/calibration. The fit is to all rows; the errors that it
states are of fits without the model that they predict, as `driple simulate --validate` has them.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from driple.errors import ConfigError
from driple.files import write_whole
from driple.simulate.device import Calibration
from driple.simulate.fits import Fits, fit_links, prepare_runs
from driple.simulate.published import read_published
from driple.simulate.singles import read_ops
from driple.simulate.validate import predict_clusters, predict_singles, read_graphs, summarise

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "data" / "published"
GRAPHS = ROOT / "data" / "calibration" / "graphs"
TARGET = ROOT / "driple" / "simulate" / "calibration.json"
# The paper's largest burst between two containers of one machine (section 2.4, figure 3).
BRIDGE_BYTES_PER_S = 799.1e6
JITTER = 0.02  # nobody published how much steps differ; tf_cnn_benchmarks prints about 2 %


def main() -> None:
    """Fit everything and write it down."""
    graphs = read_graphs(GRAPHS)
    runs = [run for run in read_published(TABLES) if (run.model, run.half) in graphs]
    fits = Fits(runs, graphs, read_ops(TABLES), lambda what: print(what, flush=True))
    best = fits.without()
    clusters = [run for run in runs if run.kind != "single"]
    prepared = prepare_runs(
        clusters, graphs, lambda name, fused: best.efficiency(name, fused=fused)
    )
    links = fit_links(prepared)
    held_out = [
        item
        for item in (*predict_singles(fits), *predict_clusters(fits, runs))
        if item.held_out == "model"
    ]
    errors = {}
    for kind in ("single", "ring", "servers"):
        found = summarise(item for item in held_out if item.run.kind == kind)
        errors[kind] = {
            "rows": found.rows,
            "median_pct": round(100 * found.median, 1),
            "p90_pct": round(100 * found.p90, 1),
        }
    calibration = Calibration(
        kernels=best.kernels,
        devices=best.devices,
        links=links,
        bridge_bytes_per_s=BRIDGE_BYTES_PER_S,
        apply_s_per_byte=0.0,
        jitter=JITTER,
        errors=errors,
        about={
            "sources": sorted({run.source for run in runs} | {"driple_paper", "neusight"}),
            "fitted": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "rows": len(runs),
        },
    )
    text = json.dumps(calibration.to_json_dict(), indent=1)
    write_whole(TARGET, text.encode() + b"\n", error=ConfigError)
    print(json.dumps(errors, indent=1))
    for kind, link in links.items():
        print(kind, link)


if __name__ == "__main__":
    main()
