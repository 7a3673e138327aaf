"""Fit the simulator to published measurements: writes driple/simulate/calibration-gpu.json.

    python -m scripts.fits.calibration_gpu [--links | --servers]

GPUs are fitted to the steps on one device: TensorFlow runs, PyTorch rows, single ops; that fit is
one of those that `scripts.fits.part_fits` makes. Links of the
file stay unless `--links` fits them to the runs on clusters. With `--servers` the devices of the
file stay, and only the links of parameter servers are fitted. The host is that of the published
steps, and present kernels of the file stay: present_kernels.py fits these and host_factors.py puts
the usual host in its place, both after this. The fit depends on neither, or each round would give
other numbers. What answers state as their errors is made by heldout.py, with fits that have not
seen what they predict.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
from dataclasses import replace
from pathlib import Path

from scipy.optimize import minimize_scalar

from driple.catalog import DEVICES
from driple.codec import Json
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.tensorflow_runs import read_tensorflow_runs
from driple.simulate.calibration import (
    CalibratedDevice,
    Calibration,
    GpuModel,
    link_kind,
    shipped_calibration,
)
from driple.simulate.prepared_job import Program
from scripts.fits.gpu_fits import FITS
from scripts.fits.leave_one_out import Fit, FittedLinks, Graphs, fit_links, prepare_runs
from scripts.fits.refit import load_fits, read_graphs
from scripts.fits.server_rate import FACTS, most_passed_by_servers
from scripts.published.rows.cells import read_raw

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "datasets" / "runs" / "published"
GRAPHS = ROOT / "datasets" / "graphs" / "calibration"
TARGET = ROOT / "driple" / "simulate" / "calibration-gpu.json"


def memory_activity(graphs: Graphs, fit: Fit) -> float:
    """Factor with which ResNet-50 on a 3090 uses memory as NVML saw it; a kernel runs all the time.

    Published for two batch sizes, of PyTorch; least squares of the share of the time.
    """
    wanted = {}
    for row in read_raw(TABLES / f"{FACTS}.csv.gz"):
        job = re.fullmatch(r"ResNet50 ImageNet fp32; batch (\d+)", row["subject"])
        if job and row["quantity"] == "GPU memory utilisation, mean":
            wanted[int(job[1])] = float(row["value"]) / 100
    graph, device = graphs["resnet50", False], DEVICES["3090"]

    def off(activity: float) -> float:
        total = 0.0
        for batch_size, share in wanted.items():
            job = graph.job(batch_size, Program())
            known = CalibratedDevice(
                device, replace(fit.efficiency("3090"), memory_activity=activity), "3090"
            )
            times = job.times(known)
            total += (times.memory_s.sum() / times.busy_s.sum() - share) ** 2
        return total

    return float(minimize_scalar(off, bounds=(0.2, 5.0), method="bounded").x)


def main() -> None:
    """Fit devices, and links if they are asked for, and write the calibration."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--links", action="store_true", help="fit links and servers too")
    parts.add_argument(
        "--servers", action="store_true", help="fit only servers and their links; devices stay"
    )
    given = parser.parse_args()
    if given.servers:
        write(with_servers(shipped_calibration()))
        return
    known = shipped_calibration()
    present = gpu_model_of(known).present
    fits, runs = load_fits(
        TABLES, GRAPHS, lambda what: print(what, flush=True), cache=FITS, usual=False
    )
    best = fits.without()
    calibration = replace(
        known,
        model=replace(best.model, present=present),
        memory_activity=memory_activity(fits.graphs, best),
        about={
            "sources": sorted({run.source for run in runs} | {"driple_paper", "neusight", "timm"}),
            "fitted": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "rows": len(runs),
        },
    )
    if given.links:
        clusters = [run for run in runs if run.kind != "single"]
        prepared = prepare_runs(clusters, fits.graphs, best, fits.runs)
        calibration = with_links(calibration, fit_links(prepared, most_passed_by_servers(TABLES)))
    write(calibration)


def gpu_model_of(calibration: Calibration) -> GpuModel:
    """Its model.

    Raises:
        ConfigError: it is not of GPUs.
    """
    if not isinstance(calibration.model, GpuModel):
        raise ConfigError(f"{TARGET.name} is not of GPUs; fit it by scripts.fits.calibration_gpu")
    return calibration.model


def with_servers(known: Calibration) -> Calibration:
    """The calibration with links of parameter servers fitted to the published runs on servers."""
    graphs = read_graphs(GRAPHS)
    runs = [run for run in read_tensorflow_runs(TABLES) if (run.job, run.half) in graphs]
    served = [run for run in runs if run.num_servers]
    prepared = prepare_runs(served, graphs, Fit(gpu_model_of(known)), runs)
    fit = fit_links(prepared, most_passed_by_servers(TABLES))
    crossed = {link_kind(run.link) for run in served}
    new = {kind: link for kind, link in fit.links.items() if kind in crossed}
    return with_links(known, replace(fit, links={**known.links, **new}))


def with_links(known: Calibration, fit: FittedLinks) -> Calibration:
    """The calibration with these links and servers."""
    for kind, link in fit.links.items():
        print(kind, link)
    print(f"copies of {fit.role_copy_bytes_per_s / 1e9:.2f} GB/s")
    return replace(
        known,
        links=fit.links,
        apply_s_per_byte=fit.apply_s_per_byte,
        role_copy_bytes_per_s=fit.role_copy_bytes_per_s,
    )


def write(calibration: Calibration) -> None:
    """Write the shipped file."""
    text = json.dumps(rounded(calibration.to_dict()))
    atomic_write(TARGET, text.encode() + b"\n", error=ConfigError)
    print(f"{TARGET.relative_to(ROOT)}: {len(text) / 1e3:.0f} kB")


def rounded(value: Json) -> Json:
    """The same with six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main()
