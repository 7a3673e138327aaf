"""Fit the simulator to measured runs of one CPU setting: driple/simulate/calibration-cpu.json.

    python -m scripts.fits.calibration_cpu [--processes 2] [--sharing | --errors-only]

What kernels of a CPU reach has little to do with those of GPUs, so a CPU gets factors of its own.
They are fitted to the measured iteration times of CPU-P1w2/ho-200M, and how active memory is seen
to its memory utilisation: of workloads of the training and validation parts of the random split of
seed 0 alone. What workers lose that fill one link together is fitted to the same parts of
CPU-P1w3/ho-200M, which has the most workers. The other CPU settings are simulated with them, of
which no measurement is used but to tell the error (scripts/studies/simulation_to_real/page.md).
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares, minimize_scalar

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.codec import Json
from driple.dataset.split import random_split
from driple.dataset.store import read_dataset
from driple.errors import DripleError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.simulate.calibration import (
    ETHERNET,
    Calibration,
    ClusterErrors,
    CoreModel,
    shipped_calibration,
)
from driple.simulate.kernels import DeviceEfficiency
from driple.simulate.optable import MEMORY_KINDS, PRODUCT_KINDS
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate, simulated_step_s
from driple.trace.provenance import TimeError
from driple.trace.targets import TARGET_NAMES
from scripts.settings.shipped import FIRST, ROOT, SETTINGS, measured_datasets, ops_of

TARGET = ROOT / "driple" / "simulate" / "calibration-cpu.json"
STEPS = 8
MANY = "CPU-P1w3/ho-200M"  # workers on one link: what contention is fitted to
FULL = 0.6  # of the nominal rate of a link that is full
MOST_SHARING = 1.0  # a link of which n workers get no more than two do
# Where the fit begins, and how far (deviation of the logarithm) it may stray: CPU kernels reach
# nearly their peaks, a loop over elements starts in some microseconds, a kernel that slides a
# window after its library has set it up.
START: dict[str, float] = {
    "compute": 0.7,
    "memory": 0.5,
    "start_s": 1e-5,
    "window_start": 5.0,
    "matmul": 1.0,
    "norm": 1.0,
    "norm_gradient": 1.0,
    "pool": 1.0,
    "pool_gradient": 1.0,
    "bias_gradient": 1.0,
    "link_share": 0.9,
    "message_s": 1e-4,
    "apply_s_per_byte": 1e-9,
}
STRAY = 1.5
FARTHEST = 3.0
NOISE = 0.15
NO_SAVING = 1e6  # oneDNN computes these convolutions directly

MEMORY_BURST = TARGET_NAMES.index("device_mem_util.burst_amount")

FloatArray = npt.NDArray[np.float64]


def calibration_of(logs: FloatArray, base: Calibration) -> Calibration:
    """The shipped calibration with CPU kernels, CPU and link of these numbers."""
    value = dict(zip(START, np.exp(logs).tolist(), strict=True))
    kinds = ("norm", "norm_gradient", "pool", "pool_gradient", "bias_gradient")
    memory = [value[name] if name in kinds else 1.0 for name in MEMORY_KINDS]
    product = [value["matmul"] if name == "matmul" else 1.0 for name in PRODUCT_KINDS]
    if not isinstance(base.model, CoreModel):
        raise SystemExit("the calibration is of GPUs; a fit for processors starts from theirs")
    kernels = replace(
        base.model.kernels,
        product=tuple(product),
        gradient=(1.0, 1.0),
        saving=(NO_SAVING, NO_SAVING),
        window_start=value["window_start"],
        memory=tuple(memory),
    )
    core = DeviceEfficiency(
        compute=value["compute"],
        tensor=value["compute"],
        memory=value["memory"],
        start_s=value["start_s"],
    )
    link = replace(
        base.links[ETHERNET],
        share=value["link_share"],
        latency_s=value["message_s"],
        sharing=0.0,
    )
    return replace(
        base,
        model=CoreModel(
            kernels=kernels,
            devices=replace(base.model.devices, measured={}, generations={"CPU": core}),
        ),
        links={ETHERNET: link},
        apply_s_per_byte=value["apply_s_per_byte"],
        memory_activity=1.0,
        jitter=0.0,
        errors={},
    )


def simulated_s(jobs: Sequence[PreparedJob], logs: FloatArray, base: Calibration) -> list[float]:
    """Simulated iteration times on the first setting."""
    calibration, setting = calibration_of(logs, base), Setting.parse(FIRST)
    times_s = []
    for job in jobs:
        fresh = PreparedJob(job.graph, kinds=job.kinds)  # keeps no times of the calibrations before
        times_s.append(simulate(fresh, setting, calibration, num_steps=STEPS).iteration_time_s)
    return times_s


def with_sharing(calibration: Calibration) -> Calibration:
    """The calibration with what workers lose that fill a link together.

    Fitted to asynchronous jobs that fill the server's link as measured: of others, the error of
    computing decides.
    """
    setting = Setting.parse(MANY)
    data = read_dataset(SETTINGS / setting.file_name)
    split = random_split(data.workloads, 0)
    nominal = topology_of(setting).link_bytes_per_s
    jobs, measured_s = [], []
    for i in np.concatenate([split.train, split.validation]).tolist():
        example = data.examples[i]
        job, seconds = PreparedJob(example.graph), example.iteration_time_s
        passed = setting.num_workers * job.graph.received_bytes / seconds
        if not job.is_synchronous and passed > FULL * nominal:
            jobs.append(job)
            measured_s.append(seconds)

    def with_share(sharing: float) -> Calibration:
        link = replace(calibration.links[ETHERNET], sharing=sharing)
        return replace(calibration, links={ETHERNET: link})

    def away(sharing: float) -> float:
        known = with_share(sharing)
        times = [simulated_step_s(job, setting, known, num_steps=STEPS) for job in jobs]
        return float(np.abs(np.log(np.array(times) / measured_s)).mean())

    fit = minimize_scalar(
        away, bounds=(0.0, MOST_SHARING), method="bounded", options={"xatol": 0.005}
    )
    print(
        f"sharing {fit.x:.4f} of {len(jobs)} jobs: {100 * fit.fun:.2f} % off, "
        f"{100 * away(0.0):.2f} % without",
        flush=True,
    )
    return with_share(float(fit.x))


def memory_activity(
    calibration: Calibration, graphs: Sequence[OpGraph], measured: FloatArray
) -> float:
    """Factor that makes the median burst of memory utilisation, shape [n], as large as measured."""
    setting = Setting.parse(FIRST)
    simulations = [
        simulate(PreparedJob(graph), setting, calibration, num_steps=STEPS) for graph in graphs
    ]
    simulated = np.array([item.targets.flat[MEMORY_BURST] for item in simulations])
    return 1.0 / float(np.median(simulated / measured))  # some show no memory at all


def errors_found(calibration: Calibration) -> ClusterErrors:
    """Errors on measured workloads that were not fitted to: in all, and on each setting.

    Of the settings that fits have seen these are the test workloads, of the others all.
    """
    elsewhere: list[float] = []
    settings: dict[str, TimeError] = {}
    for data in measured_datasets():
        setting = Setting.parse(data.setting)
        fitted = data.setting in {FIRST, MANY}
        rows = random_split(data.workloads, 0).test if fitted else range(len(data.examples))
        errors = []
        for example in (data.examples[i] for i in rows):
            simulation = simulate(
                PreparedJob(ops_of(example)), setting, calibration, num_steps=STEPS
            )
            errors.append(abs(simulation.iteration_time_s / example.iteration_time_s - 1))
        settings[data.setting] = summary_of(errors)
        elsewhere += [] if fitted else errors
        print(data.setting, settings[data.setting], flush=True)
    overall = summary_of(elsewhere)
    return ClusterErrors(
        rows=overall.rows,
        median_pct=overall.median_pct,
        p90_pct=overall.p90_pct,
        settings=settings,
    )


def summary_of(errors: Sequence[float]) -> TimeError:
    """Rows, median and 90th percentile of errors given as shares."""
    return TimeError(
        rows=len(errors),
        median_pct=round(100 * float(np.median(errors)), 2),
        p90_pct=round(100 * float(np.percentile(errors, 90)), 2),
    )


_JOBS: list[PreparedJob] = []


def _load(graphs: Sequence[OpGraph]) -> None:
    _JOBS.extend(PreparedJob(graph) for graph in graphs)


def _some(numbers: Sequence[int], logs: FloatArray, base: Calibration) -> list[float]:
    return simulated_s([_JOBS[i] for i in numbers], logs, base)


def write(calibration: Calibration) -> None:
    """Ship a calibration with the errors that it has."""
    calibration = replace(calibration, errors={"servers": errors_found(calibration)})
    text = json.dumps(calibration.to_dict(), indent=1)
    atomic_write(TARGET, text.encode() + b"\n", error=DripleError)


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--sharing", action="store_true", help="fit only what sharing a link costs")
    less.add_argument("--errors-only", action="store_true", help="fit nothing, take errors anew")
    arguments = parser.parse_args()
    if arguments.sharing:
        write(with_sharing(shipped_calibration(Setting.parse(FIRST))))
        return
    if arguments.errors_only:
        write(shipped_calibration(Setting.parse(FIRST)))
        return
    data = read_dataset(SETTINGS / Setting.parse(FIRST).file_name)
    split = random_split(data.workloads, 0)
    rows = np.concatenate([split.train, split.validation])
    graphs = [data.examples[i].graph for i in rows]
    measured_s = data.iteration_times_s()[rows]
    base, start = shipped_calibration(Setting.parse(FIRST)), np.log(list(START.values()))
    parts = [list(range(i, len(rows), arguments.processes)) for i in range(arguments.processes)]
    with ProcessPoolExecutor(arguments.processes, initializer=_load, initargs=(graphs,)) as pool:

        def away(moved: FloatArray) -> FloatArray:
            logs = start + moved - 1
            simulated = np.empty(len(rows))
            jobs = [pool.submit(_some, part, logs, base) for part in parts]
            for part, job in zip(parts, jobs, strict=True):
                simulated[part] = job.result()
            errors = np.log(simulated / measured_s)
            print(f"median error {100 * np.median(np.abs(np.expm1(errors))):.1f} %", flush=True)
            return np.concatenate([errors / NOISE, (moved - 1) / STRAY])

        # From 1 rather than 0, since differences are taken over a share of where a number stands.
        fit = least_squares(
            away,
            np.ones(len(start)),
            diff_step=0.02,
            bounds=(1 - FARTHEST, 1 + FARTHEST),
            loss="soft_l1",
            max_nfev=12,
            x_scale=0.5,
        )
    logs = start + fit.x - 1
    errors = np.abs(np.expm1(fit.fun[: len(rows)] * NOISE))
    calibration = calibration_of(logs, base)
    about: dict[str, Json] = {
        "made_by": "scripts/fits/calibration_cpu.py",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "fitted_to": f"measured iteration times of {len(rows)} workloads on {FIRST}",
        "median_error_pct": round(100 * float(np.median(errors)), 2),
    }
    activity = memory_activity(calibration, graphs, data.targets()[rows][:, MEMORY_BURST])
    calibration = replace(calibration, jitter=base.jitter, memory_activity=activity, about=about)
    write(with_sharing(calibration))
    print(json.dumps(dict(zip(START, np.exp(logs).round(8).tolist(), strict=True)), indent=1))


if __name__ == "__main__":
    main()
