"""How far simulated iteration times are from published ones, on rows that nothing was fitted to.

published runs -> each model, then each device, held out in turn: fit on the rest, predict it by
                  the simulation that `driple predict` runs
               -> errors by source, beside those of a plain roofline fitted to the same rows
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from driple.catalog import DEVICES, link_named
from driple.dataset.graph_store import GraphStore
from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.jobs.workload import Workload
from driple.runs.tensorflow_runs import (
    TensorFlowRun,
    read_tensorflow_runs,
)
from driple.runs.validation.held_out import HeldOut, HeldOutPrediction
from driple.runs.validation.shipped import read_shipped
from driple.simulate.calibration import (
    ETHERNET,
    Calibration,
    GpuModel,
    LinkEfficiency,
    nearest_link,
)
from driple.simulate.run import iteration_time_s, simulate_steps
from scripts.fits.batched import BatchedGraph
from scripts.fits.gpu_fits import GpuFits, LeftOut
from scripts.fits.leave_one_out import Fit, Fits, FittedLinks, Graphs, fit_links, prepare_runs
from scripts.fits.links import program_of, topology_of_run
from scripts.fits.measured_gpu import measured_beside
from scripts.fits.server_rate import ServerRate, most_passed_by_servers

__all__ = [
    "BRIDGE_BYTES_PER_S",
    "JITTER",
    "asked_s",
    "calibration_of",
    "load_fits",
    "predict_clusters",
    "predict_singles",
    "read_graphs",
    "simulated_s",
    "validate",
]

# The paper's largest burst between two containers of one machine (section 2.4, figure 3).
BRIDGE_BYTES_PER_S = 799.1e6
JITTER = 0.02  # nobody published how much steps differ; tf_cnn_benchmarks prints about 2 %
NO_LINK = LinkEfficiency(share=1.0, latency_s=0.0, sharing=0.0)  # of one device, which needs none


def read_graphs(folder: Path) -> dict[tuple[str, bool], BatchedGraph]:
    """Graphs of the published models by name and precision, from a store with two batch sizes each.

    Raises:
        DatasetError: no such store.
    """
    sizes: dict[tuple[str, bool], list[tuple[int, OpGraph]]] = defaultdict(list)
    for name, graph in GraphStore.open(folder).graphs():
        job = Workload.parse(name)
        sizes[job.model, job.precision == "fp16"].append((job.batch_size, graph))
    batched = {}
    for key, pairs in sizes.items():
        small, large = sorted(pairs, key=lambda pair: pair[0])
        batched[key] = BatchedGraph.of(small, large)
    return batched


def validate(
    tables: Path,
    graphs: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    cache: Path | None = None,
) -> list[HeldOutPrediction]:
    """Predictions of every published run, in every way of holding out.

    Args:
        tables: folder of published measurements.
        graphs: store of their models' graphs.
        progress: called with what is being fitted.
        cache: folder that keeps finished fits.

    Raises:
        ConfigError: a table is missing or damaged.
        DatasetError: no such store.
    """
    fits, runs = load_fits(tables, graphs, progress, cache=cache)
    passed = most_passed_by_servers(tables)
    return [*predict_singles(fits), *predict_clusters(fits, runs, passed)]


def load_fits(
    tables: Path,
    graphs: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    cache: Path | None = None,
    usual: bool = True,
) -> tuple[Fits, list[TensorFlowRun]]:
    """Fits to the published steps, and the published runs whose graphs there are; as `validate`.

    Args:
        tables: folder of published measurements, with the PyTorch rows and their steps.
        graphs: store of the runs' graphs.
        progress: told what is being fitted.
        cache: folder that keeps finished fits.
        usual: whether with the usual host and present kernels, which are fitted later.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    known = read_graphs(graphs)
    runs = [run for run in read_tensorflow_runs(tables) if (run.job, run.half) in known]
    shipped = read_shipped(tables, forward=True)
    if shipped is None:
        raise ConfigError(
            f"{tables} has no PyTorch rows with their steps; give datasets/runs/published"
        )
    gpu_fits = GpuFits(
        shipped=shipped,
        runs=runs,
        graphs=known,
        published=tables,
        measured=measured_beside(tables),
        cache=cache,
        progress=progress,
    )

    def fit_without(model: str, device: str) -> GpuModel:
        fold = gpu_fits.fold_of_model(model) if model else None
        left_out = LeftOut(fold=fold, device=device)
        return gpu_fits.without(left_out) if usual else gpu_fits.fitted(left_out)

    return Fits(runs, known, fit_without), runs


def predict_singles(fits: Fits) -> list[HeldOutPrediction]:
    """Predict every run on one device: by a fit to all, without its model, without its device.

    What is the only model or device there is cannot be left out.
    """
    predictions = _singles(fits, fits.runs, "nothing", "")
    for model in sorted({run.job for run in fits.runs}):
        left = [run for run in fits.runs if run.job == model]
        if fits.has_others(model=model):
            predictions += _singles(fits, left, "model", model)
    for device in sorted({run.device for run in fits.runs}):
        left = [run for run in fits.runs if run.device == device]
        if fits.has_others(device=device):
            predictions += _singles(fits, left, "device", device)
    return predictions


def predict_clusters(
    fits: Fits, runs: Sequence[TensorFlowRun], passed: ServerRate | None
) -> list[HeldOutPrediction]:
    """Predict every run on a ring or on servers, in the same three ways.

    Held out are the runs of the model, or with the device, from the fits of devices and of links.

    Args:
        fits: to runs on one device.
        runs: those on clusters count.
        passed: the fastest published transfer through a server.
    """
    clusters = [run for run in runs if run.kind != "single"]
    predicted = partial(_predicted, fits, passed)
    predictions = predicted(clusters, clusters, "nothing", "")
    for model in sorted({run.job for run in clusters}):
        left = [run for run in clusters if run.job == model]
        rest = [run for run in clusters if run.job != model]
        if fits.has_others(model=model):
            predictions += predicted(left, rest, "model", model)
    for device in sorted({name for run in clusters for name in run.devices}):
        left = [run for run in clusters if device in run.devices]
        rest = [run for run in clusters if device not in run.devices]
        if fits.has_others(device=device):
            predictions += predicted(left, rest, "device", device)
    return predictions


def _singles(
    fits: Fits, runs: Sequence[TensorFlowRun], held_out: HeldOut, name: str
) -> list[HeldOutPrediction]:
    fit = fits.without(**({held_out: name} if name else {}))
    calibration = calibration_of(fit, FittedLinks(links={ETHERNET: NO_LINK}))
    return [
        HeldOutPrediction(
            run=run,
            held_out=held_out,
            name=name,
            simulated_s=simulated_s(run, fits.graphs, calibration),
            roofline_s=_plain_s(fits, run, run.device, _left_out(held_out, name)),
        )
        for run in runs
    ]


def calibration_of(fit: Fit, links: FittedLinks) -> Calibration:
    """What a fit found, as a simulation takes it; errors and the activity of memory are not known.

    Args:
        fit: of kernels and devices.
        links: what links and servers reach.
    """
    return Calibration(
        model=fit.model,
        links=links.links,
        bridge_bytes_per_s=BRIDGE_BYTES_PER_S,
        apply_s_per_byte=links.apply_s_per_byte,
        jitter=JITTER,
        role_copy_bytes_per_s=links.role_copy_bytes_per_s,
        memory_activity=1.0,
        errors={},
        about={},
    )


def simulated_s(run: TensorFlowRun, graphs: Graphs, calibration: Calibration) -> float:
    """Seconds of an iteration of a published run, as the simulator gives them."""
    job = graphs[run.job, run.half].job(run.batch_size, program_of(run))
    topology = topology_of_run(run)
    return iteration_time_s(topology, simulate_steps(job, topology, calibration))


def asked_s(run: TensorFlowRun, graphs: Graphs, calibration: Calibration) -> float | None:
    """Seconds that a user gets who asks for a ring, which a simulation takes for overlapped.

    None where the run is simulated as a user asks for it anyway.
    """
    if run.kind != "ring" or run.overlapped:
        return None
    program = replace(program_of(run), overlapped=True, ring_share=1.0, exchange=None)
    topology = topology_of_run(run)
    job = graphs[run.job, run.half].job(run.batch_size, program)
    return iteration_time_s(topology, simulate_steps(job, topology, calibration))


def _left_out(held_out: HeldOut, name: str) -> dict[str, str]:
    """What a roofline has not seen."""
    return {f"without_{held_out}": name} if name else {}


def _plain_s(fits: Fits, run: TensorFlowRun, device: str, left_out: Mapping[str, str]) -> float:
    """Seconds of a step on a device by its roofline, fitted to the same rows."""
    roofline = fits.roofline(device, half=run.half, **left_out)
    alone = replace(run, devices=(device,))
    return float(roofline.seconds(DEVICES[device], fits.rows([alone]))[0])


def _predicted(  # noqa: PLR0917
    fits: Fits,
    passed: ServerRate | None,
    /,
    runs: Sequence[TensorFlowRun],
    fitted_to: Sequence[TensorFlowRun],
    held_out: HeldOut,
    name: str,
) -> list[HeldOutPrediction]:
    fit = fits.without(**({held_out: name} if name else {}))
    links = fit_links(prepare_runs(fitted_to, fits.graphs, fit, fits.runs), passed)
    calibration = calibration_of(fit, links)
    return [
        HeldOutPrediction(
            run=run,
            held_out=held_out,
            name=name,
            simulated_s=simulated_s(run, fits.graphs, calibration),
            roofline_s=_roofline_s(fits, run, _left_out(held_out, name)),
            asked_s=asked_s(run, fits.graphs, calibration),
        )
        for run in runs
        if nearest_link(run.link, links.links) in links.links
    ]


def _roofline_s(fits: Fits, run: TensorFlowRun, left_out: Mapping[str, str]) -> float:
    computing = max(_plain_s(fits, run, name, left_out) for name in set(run.devices))
    count = len(run.devices)
    nbytes = fits.graphs[run.job, run.half].graph.received_bytes
    # A ring passes nearly twice the gradients; a server takes those of all workers, and sends as
    # many parameters.
    times = 2 * count / run.num_servers if run.num_servers else 2 * (count - 1) / count
    return max(computing, times * nbytes / link_named(run.link).bytes_per_s)
