"""Measure how fast the hosts of our own runs are: writes scripts/fits/hosts.json.

    python -m scripts.fits.host_factors

Each machine's factor is what its steps say of its host, by `driple.runs.tuning.factors_of`. The
pace of the usual host and how far others are from it go into driple/simulate/calibration-gpu.json,
whose other numbers stay.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from driple.catalog.fields import TUNED
from driple.codec import to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.step_store import StepStore
from driple.runs.tuning import TunedStep, factors_of, tuned_step
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.device_models import GpuModel
from scripts.fits.calibration_gpu import ROOT, gpu_model_of, write
from scripts.fits.hosts import HOSTS_FILE, PUBLISHED, KnownHosts, with_usual_host
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import stored_job
from scripts.studies.own_jobs.jobs import own_jobs

_ROUNDS = 4  # an optimizer's kernels take what they do on published hosts, which moves the factors


def measured_steps(device: str, calibration: Calibration) -> Iterator[TunedStep]:
    """Steps of datasets/runs/measured-h100 or -h200."""
    known = calibration.device(device)
    store = StepStore.open(
        ROOT / "datasets" / "runs" / "measured-h100"
    )  # which has the steps of both
    for row in read_profiled_runs(
        ROOT / "datasets" / "runs" / f"measured-{device.lower()}" / MEASURED_FILE
    ):
        job = stored_job(row, store) if row.ran else None
        if job is not None:
            yield tuned_step(job, known, name=row.key, group=row.job, seconds=row.step_s)


def steps_of_own_jobs(calibration: Calibration) -> Iterator[TunedStep]:
    """Steps of scripts/studies/own_jobs."""
    known = calibration.device("H200")
    for job in own_jobs():
        prepared = job.ready().prepared
        yield tuned_step(prepared, known, name=job.name, group=job.name, seconds=job.step_s)


MACHINES: dict[str, Callable[[Calibration], Iterator[TunedStep]]] = {
    "measured-h100": lambda calibration: measured_steps("H100", calibration),
    "measured-h200": lambda calibration: measured_steps("H200", calibration),
    "own jobs": steps_of_own_jobs,
}


def on_published_host(model: GpuModel) -> GpuModel:
    """The model with the pace of the published hosts, which are the fastest.

    To five digits: the calibration keeps six of each factor, so that more would change by running
    this program again.
    """
    host = model.host
    op_s, compiled_s = (
        float(f"{seconds * host.fastest:.5g}") for seconds in (host.op_s, host.compiled_s)
    )
    return replace(model, host=replace(host, op_s=op_s, compiled_s=compiled_s))


def main() -> None:
    """Measure, and write both files."""
    shipped = shipped_calibration()
    published = on_published_host(gpu_model_of(shipped))
    known = KnownHosts(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        published_op_s=published.host.op_s,
        published_compiled_s=published.host.compiled_s,
        factors={PUBLISHED: 1.0},
    )
    for _ in range(_ROUNDS):
        usual = known.usual_factor
        assumed = replace(published.host, op_s=published.host.op_s * usual)
        calibration = replace(shipped, model=replace(published, host=assumed))
        factors = dict(known.factors)
        for name, steps in MACHINES.items():
            of_host = factors_of(list(steps(calibration)))[TUNED.index("host")]
            factors[name] = round(float(of_host) * usual, 3)
        known = replace(known, factors=factors)
        print(factors, flush=True)
    text = json.dumps(to_dict(known, where="hosts"), indent=1)
    atomic_write(HOSTS_FILE, text.encode() + b"\n", error=ConfigError)
    write(replace(shipped, model=with_usual_host(published, known)))


if __name__ == "__main__":
    main()
