"""Fit GPUs with each part of the published steps left out, and to all: writes scripts/fits/parts.

    python -m scripts.fits.part_fits [--processes 2]

    published rows, runs and ops, measured kernels -> a file for each part that a program leaves out

`calibration_gpu`, `present_kernels`, `heldout` and `tuned_errors` read them: all fits together take
two hours, so they ship. A fit that is there stays, so that the program goes on where it was
stopped; delete the folder after a change of the device model. Fits of other rows are deleted. What
the exchange adds to steps on several devices is simulated with the links of the calibration.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor, as_completed

from driple.runs.tensorflow_runs import read_tensorflow_runs
from scripts.fits.gpu_fits import FITS, NOTHING, LeftOut, left_out_of
from scripts.fits.heldout import GRAPHS, MADE, PUBLISHED, fits, parts_made
from scripts.fits.refit import read_graphs

__all__ = ["left_out_of_parts", "main"]


def left_out_of_parts() -> list[LeftOut]:
    """What each fit does not see: parts of PyTorch's rows, models and devices of TensorFlow's."""
    wanted = {left_out_of(part) for part in parts_made(MADE, training=False)} | {NOTHING}
    graphs = read_graphs(GRAPHS)
    for run in read_tensorflow_runs(PUBLISHED):
        if (run.job, run.half) in graphs:
            wanted.add(LeftOut(fold=fits(training=False).fold_of_model(run.job)))
            wanted |= {LeftOut(device=device) for device in run.devices}
    return sorted(wanted, key=lambda left_out: left_out.name)


def _fit(left_out: LeftOut) -> str:
    fits(training=False).fitted(left_out)
    return left_out.name


def main() -> None:
    """Make those that are missing, and delete those of other rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--processes", type=int, default=2, help="parallel processes")
    processes = parser.parse_args().processes
    all_fits, wanted = fits(training=False), left_out_of_parts()
    files = {left_out: all_fits.file_of(left_out) for left_out in wanted}
    todo = [left_out for left_out, file in files.items() if file is None or not file.exists()]
    print(f"{len(wanted)} fits, {len(todo)} to make", flush=True)
    with ProcessPoolExecutor(processes) as pool:
        if NOTHING in todo:  # first, as it makes what all others begin with
            pool.submit(_fit, NOTHING).result()
        others = [pool.submit(_fit, left_out) for left_out in todo if left_out != NOTHING]
        for number, future in enumerate(as_completed(others), 1):
            print(f"{number} of {len(others)}: without {future.result()}", flush=True)
    kept = {*files.values(), *all_fits.files_of_rows}
    for file in FITS.glob("*.json.xz"):
        if file not in kept:
            file.unlink()
            print(f"deleted {file.name}, of other rows")


if __name__ == "__main__":
    main()
