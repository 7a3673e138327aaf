"""Closed forms against measured runs: for tables.json and closed_forms.json.

Zeng's tables -> fit on half of the rows, errors on the other half
published clusters, measured CPU settings, the event simulation -> errors of each method
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from driple.analytic.advice import rate_from_measured
from driple.analytic.closed_forms import ClosedForm, zeng_published, zeng_repaired, zhang_pipeline
from driple.analytic.job_profile import imbalance, points_of, profile_of, slowest_device
from driple.analytic.repaired import TransferCosts
from driple.analytic.sweep import JobProfile, Points, iteration_seconds
from driple.catalog import device_named, link_named
from driple.cluster.schemes import PS
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.dataset.graph_store import GraphStore
from driple.errors import ConfigError
from driple.schemes.ps import ClusterSpec, simulate_cluster
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from scripts.fits.zeng_runs import ZengFit, ZengRun, as_published_s, fit_zeng, repaired_s
from scripts.settings.shipped import FIRST, measured_datasets, ops_of

FloatArray = npt.NDArray[np.float64]

MODELS = ("vgg16", "resnet50", "alexnet")
RATES_GBIT = (1, 10, 100)
DEVIATIONS = (0.02, 0.05, 0.1)
_APPLY_S_PER_BYTE, _MESSAGE_S = 1e-10, 2e-5


@dataclass(frozen=True, kw_only=True)
class Halves:
    """Errors on rows that the fit has not seen, as shares.

    Attributes:
        runs: the rows.
        repaired_s: seconds by the repaired model.
        repaired: of the repaired model.
        published: of the published one.
    """

    runs: list[ZengRun]
    repaired_s: FloatArray
    repaired: FloatArray
    published: FloatArray


def error(predicted: npt.ArrayLike, measured: npt.ArrayLike) -> FloatArray:
    """|predicted - measured| / measured."""
    off: FloatArray = np.asarray(predicted, dtype=np.float64) / np.asarray(measured) - 1
    return np.abs(off)


def held_out(fitted: Sequence[ZengRun], others: Sequence[ZengRun]) -> tuple[ZengFit, Halves]:
    """Fit to some rows, and say what that makes of others."""
    fit = fit_zeng(fitted)
    measured = [run.measured_s for run in others]
    repaired = repaired_s(others, fit)
    return fit, Halves(
        runs=list(others),
        repaired_s=repaired,
        repaired=error(repaired, measured),
        published=error([as_published_s(run) for run in others], measured),
    )


def random_halves(runs: Sequence[ZengRun], count: int) -> list[float]:
    """Mean error on the other half, for halves by chance."""
    means = []
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(runs))
        half = len(runs) // 2
        fitted, others = ([runs[i] for i in part] for part in (order[:half], order[half:]))
        means.append(float(held_out(fitted, others)[1].repaired.mean()))
    return means


def without_model(runs: Sequence[ZengRun]) -> dict[str, Halves]:
    """Errors on each model's rows by a fit to all others' rows."""
    return {
        name: held_out(
            [run for run in runs if run.model != name], [run for run in runs if run.model == name]
        )[1]
        for name in sorted({run.model for run in runs})
    }


def published_clusters(
    runs: Iterable[ZengRun], store: GraphStore, calibration: Calibration, exchange: TransferCosts
) -> list[tuple[ZengRun, list[ClosedForm]]]:
    """The closed forms on measured GPU clusters whose graphs are shipped."""
    clusters, jobs = [], {}
    for run in runs:
        name = f"{run.model}/imagenet/b{run.batch_size}/sgd/async/nchw"
        if not run.bytes_per_s or any(run.on_cpu) or name not in store.places:
            continue
        if name not in jobs:
            jobs[name] = PreparedJob(store.graph(name))
        count = len(run.workers)
        topology = Topology(
            workers=tuple(device_named(name) for name in run.workers),
            worker_machine=tuple(range(count)),
            server_machine=(count,),
            between=replace(link_named("1G"), bytes_per_s=run.bytes_per_s),
            scheme=PS,
        )
        forms = [
            zeng_published(jobs[name], topology, fma=False),
            zeng_repaired(jobs[name], topology, calibration, exchange),
            zhang_pipeline(jobs[name], topology, calibration),
        ]
        clusters.append((run, forms))
    return clusters


@dataclass(frozen=True, kw_only=True)
class AgainstSimulation:
    """One cluster in the event simulation, and closed over simulated time, less 1.

    Attributes:
        model: of the zoo.
        workers: how many.
        servers: how many.
        gbit: rate of every link.
        simulated_s: without variance.
        exact: deviation of the closed form from that.
        layer: the same if parameters came layer by layer.
        even: the same if servers were loaded evenly.
        chance: with each of `DEVIATIONS`; empty for several servers.
    """

    model: str
    workers: int
    servers: int
    gbit: float
    simulated_s: float
    exact: float
    layer: float
    even: float
    chance: tuple[float, ...]


def against_simulation(
    store: GraphStore, calibration: Calibration, progress: Callable[[str], None]
) -> list[AgainstSimulation]:
    """Closed form and event simulation on the same clusters."""
    device = calibration.device("V100")
    rows = []
    for name in MODELS:
        job = PreparedJob(store.graph(f"{name}/imagenet/b32/sgd/async/nchw"))
        profile = profile_of(job, device)
        progress(f"{name} against the event simulation")
        shapes = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (4, 4), (8, 4)]
        for (workers, servers), gbit in product(shapes, RATES_GBIT):
            rate = gbit * 1e9 / 8
            spec = ClusterSpec(
                worker_machine=tuple(range(workers)),
                server_machine=tuple(range(workers, workers + servers)),
                link_bytes_per_s=rate,
                bridge_bytes_per_s=rate,
                message_s=_MESSAGE_S,
                apply_s_per_byte=_APPLY_S_PER_BYTE,
                synchronous=True,
            )
            plans = [job.plan(device, servers, "round_robin")] * workers
            at = Points(
                workers=workers,
                servers=servers,
                worker_bytes_per_s=rate,
                server_bytes_per_s=rate,
                imbalance=imbalance(job, servers),
                server_s_per_byte=_APPLY_S_PER_BYTE,
                message_s=_MESSAGE_S,
            )
            exact_s = simulate_cluster(spec, plans, 3)[0].iteration_time_s
            chance = []
            for deviation in DEVIATIONS if servers == 1 and workers > 1 else ():
                jittered = replace(spec, jitter=deviation)
                simulated = simulate_cluster(jittered, plans, 150)[0].iteration_time_s
                closed = iteration_seconds(profile, replace(at, deviation=deviation)).total_s
                chance.append(float(closed) / simulated - 1)
            layer = iteration_seconds(profile, at, exchange="layer").total_s
            even = iteration_seconds(profile, replace(at, imbalance=1.0)).total_s
            rows.append(
                AgainstSimulation(
                    model=name,
                    workers=workers,
                    servers=servers,
                    gbit=gbit,
                    simulated_s=exact_s,
                    exact=float(iteration_seconds(profile, at).total_s) / exact_s - 1,
                    layer=float(layer) / exact_s - 1,
                    even=float(even) / exact_s - 1,
                    chance=tuple(chance),
                )
            )
    return rows


@dataclass(frozen=True, kw_only=True)
class OnMeasured:
    """Synchronous workloads of one measured setting: each method's time over the measured one.

    Attributes:
        setting: its name.
        methods: ratios of each method, from the graph alone; of the simulator for every third.
        from_run: of Zhang's pipeline with the devices' speed taken from a run on the first setting.
        run_itself: of that run's own time, scaled by the median ratio of the two settings.
        unfit: workloads whose run no device speed explains.
    """

    setting: str
    methods: dict[str, FloatArray]
    from_run: FloatArray
    run_itself: FloatArray
    unfit: int


def on_measured(
    calibration: Calibration, exchange: TransferCosts, progress: Callable[[str], None]
) -> list[OnMeasured]:
    """All methods on the measured CPU settings; every third workload is simulated too."""
    datasets = measured_datasets()
    common = set.intersection(*(set(data.workloads) for data in datasets))
    examples = {data.setting: {e.workload: e for e in data.examples} for data in datasets}
    first = examples[FIRST]
    names = sorted(name for name in common if first[name].details["sync"])
    jobs = {name: PreparedJob(ops_of(first[name])) for name in names}
    speeds = {}
    for name in names:
        at, profile = _point(jobs[name], FIRST, calibration)
        try:
            speeds[name] = rate_from_measured(profile, at, first[name].iteration_time_s)
        except ConfigError:
            continue
    rows = []
    for setting, labels in examples.items():
        progress(f"closed forms on {setting}")
        topology = topology_of(Setting.parse(setting))
        times = np.array([labels[name].iteration_time_s for name in names])
        forms = [
            (
                zeng_published(jobs[name], topology),
                zeng_repaired(jobs[name], topology, calibration, exchange),
                zhang_pipeline(jobs[name], topology, calibration),
            )
            for name in names
        ]
        methods = {
            form.method: np.array([row[i].iteration_time_s for row in forms]) / times
            for i, form in enumerate(forms[0])
        }
        some = list(range(0, len(names), 3))
        simulated = [
            simulate(jobs[names[i]], Setting.parse(setting), calibration, num_steps=12)
            for i in some
        ]
        methods["simulator"] = np.array([s.iteration_time_s for s in simulated]) / times[some]
        from_run = []
        for name, speed in speeds.items():
            at, profile = _point(jobs[name], setting, calibration)
            moved = iteration_seconds(profile, replace(at, compute_rate=speed)).total_s
            from_run.append(float(moved) / labels[name].iteration_time_s)
        before = np.array([first[name].iteration_time_s for name in names])
        rows.append(
            OnMeasured(
                setting=setting,
                methods=methods,
                from_run=np.array(from_run),
                run_itself=before / times * np.median(times / before),
                unfit=len(names) - len(speeds),
            )
        )
    return rows


def _point(job: PreparedJob, setting: str, calibration: Calibration) -> tuple[Points, JobProfile]:
    """Point and profile of a job on a setting."""
    topology = topology_of(Setting.parse(setting))
    profile = profile_of(job, slowest_device(job, topology, calibration))
    return points_of(job, topology, calibration), profile


def summary(errors: FloatArray) -> dict[str, float]:
    """Rows, median, mean and 90th percentile of errors, as in closed_forms.json."""
    return {
        "rows": len(errors),
        "median_pct": round(100 * float(np.median(errors)), 1),
        "mean_pct": round(100 * float(errors.mean()), 1),
        "p90_pct": round(100 * float(np.percentile(errors, 90)), 1),
    }
