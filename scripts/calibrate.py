"""Fit the simulator to published measurements: writes driple/simulate/calibration.json.

    python scripts/calibrate.py

Kernels of three devices first, then whole steps of each device, then links. Rows and graphs come
from data/published and data/calibration. Nothing that the validation holds out is hidden here: this
is the fit to all calibration rows, `driple simulate --validate` tells what fits without them say.
"""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.errors import ConfigError
from driple.files import write_whole
from driple.hardware import DEVICES
from driple.simulate.calibrate import KERNEL_START, fit_kernels, fit_steps, kernel_rows, step_rows
from driple.simulate.device import Calibration, nearest_relative
from driple.simulate.kernels import Efficiency
from driple.simulate.links import by_link, fit_link, prepare_run
from driple.simulate.published import PublishedRun, read_published, read_rows
from driple.simulate.validate import read_graphs

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "data" / "published"
GRAPHS = ROOT / "data" / "calibration"
TARGET = ROOT / "driple" / "simulate" / "calibration.json"
EVERY = 4  # row of the single kernels
# The paper's largest burst between two containers of one machine (section 2.4, figure 3).
BRIDGE_BYTES_PER_S = 799.1e6


def kernels() -> dict[str, Efficiency]:
    """Efficiency of single kernels on the devices that NeuSight measured."""
    sets = defaultdict(list)
    for name in ("conv", "matmul"):
        rows = read_rows(TABLES / f"neusight_{name}_forward_ms.csv.gz")
        kinds = defaultdict(list)
        for row in rows[::EVERY]:
            kinds[row["gpu"], row.get("op", "conv")].append(row)
        for (device, _), some in kinds.items():
            sets[device].append(kernel_rows(some))
    return {name: fit_kernels(DEVICES[name], some, KERNEL_START) for name, some in sets.items()}


def steps(runs: list[PublishedRun], graphs, starts) -> dict[tuple[str, bool], Efficiency]:
    """Efficiency of whole steps by device and whether ops were fused."""
    by_device = defaultdict(list)
    for run in runs:
        by_device[run.device, run.fused].append(run)
    return {
        key: fit_steps(
            DEVICES[key[0]],
            step_rows(some, graphs),
            starts[nearest_relative(DEVICES[key[0]], starts)],
        )
        for key, some in by_device.items()
    }


def unfused(fitted: dict[tuple[str, bool], Efficiency]) -> dict[str, Efficiency]:
    """Every device without fused ops; from steps with, where only those were measured."""
    both = [name for name, fused in fitted if fused and (name, False) in fitted]
    ratios = {
        field: float(np.exp(np.mean([
            np.log(getattr(fitted[name, False], field) / getattr(fitted[name, True], field))
            for name in both
        ])))
        for field in ("memory", "kernel_s", "dispatch_s")
    }  # fmt: skip
    made = {name: one for (name, fused), one in fitted.items() if not fused}
    for (name, fused), one in fitted.items():
        if fused and name not in made:
            changed = {field: getattr(one, field) * ratio for field, ratio in ratios.items()}
            made[name] = replace(one, **changed)
    return made


def main() -> None:
    """Fit everything and write it down."""
    graphs = read_graphs(GRAPHS)
    runs = [run for run in read_published(TABLES) if (run.model, run.half) in graphs]
    fitted = steps([run for run in runs if run.kind == "single"], graphs, kernels())
    devices = unfused(fitted)
    prepared = [
        prepare_run(
            run,
            graphs[run.model, run.half],
            lambda name, fused=run.fused: fitted.get((name, fused)) or devices[name],
        )
        for run in runs
        if run.kind != "single" and all(name in devices for name in run.devices)
    ]
    links = {name: fit_link(some) for name, some in by_link(prepared).items()}
    calibration = Calibration(
        devices=devices,
        links=links,
        bridge_bytes_per_s=BRIDGE_BYTES_PER_S,
        apply_s_per_byte=0.0,
        jitter=0.02,
        errors={},
        about={
            "sources": sorted({run.source for run in runs} | {"neusight", "driple_paper"}),
            "fitted": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "rows": len(runs),
        },
    )
    text = json.dumps(calibration.to_json_dict(), indent=1)
    write_whole(TARGET, text.encode() + b"\n", error=ConfigError)
    for name, one in sorted(devices.items()):
        print(name, {k: v for k, v in vars_of(one).items()})
    for name, link in links.items():
        print(name, link)


def vars_of(one: Efficiency) -> dict[str, object]:
    """Rounded numbers, to look at."""
    return {
        name: np.round(getattr(one, name), 7).tolist() for name in Efficiency.__dataclass_fields__
    }


if __name__ == "__main__":
    main()
