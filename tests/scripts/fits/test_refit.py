"""What is held out is held out: a run's own model or device does not touch its prediction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from driple.catalog import DEVICES
from driple.cli.main import app
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.dataset.graph_store import GraphStore
from driple.errors import ConfigError
from driple.runs.tensorflow_runs import Kind, TensorFlowRun
from driple.runs.validation.held_out import HeldOutPrediction, summarise
from driple.simulate.calibration import CalibratedDevice, GpuModel, shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulate
from scripts.fits.batched import BatchedGraph
from scripts.fits.device_fit import FitOptions, fit_devices
from scripts.fits.device_rows import tensorflow_steps
from scripts.fits.fit_table import fit_table
from scripts.fits.leave_one_out import Fits
from scripts.fits.links import program_of
from scripts.fits.refit import (
    predict_clusters,
    predict_singles,
    read_graphs,
    simulated_s,
)
from scripts.fits.server_rate import ServerRate
from tests.simulate.gpu_models import gpu_model, kernels
from tests.simulate.jobs import net

pytest.importorskip("torch")

SHIPPED = Path(__file__).parents[3] / "datasets" / "graphs" / "calibration"
DEPTHS = {"thin": 2, "middle": 4, "thick": 8}
GRAPHS = {
    (name, False): BatchedGraph.of((16, net(16, depth=depth)), (32, net(32, depth=depth)))
    for name, depth in DEPTHS.items()
}
TRUE = replace(gpu_model(5), kernels=kernels(5, size=0.1))
OPTIONS = FitOptions(steps=60, rate=0.05, width=8, share_penalty=1e-5)


def a_run(model: str, batch_size: int, devices: tuple[str, ...], kind: Kind) -> TensorFlowRun:
    return TensorFlowRun(
        source="made up",
        kind=kind,
        job=model,
        batch_size=batch_size,
        precision="fp32",
        compiled=False,
        devices=devices,
        num_servers=0,
        per_machine=len(devices),
        link="10G",
        overlapped=True,
        step_s=1.0,
    )


def timed(run: TensorFlowRun, factor: float = 1.0) -> TensorFlowRun:
    """The run with the time that the true device takes, plus a slow link."""
    job = GRAPHS[run.job, False].job(run.batch_size, program_of(run))
    efficiency, origin = TRUE.of(DEVICES[run.device], 1.0)
    device = CalibratedDevice(DEVICES[run.device], efficiency, origin)
    step_s = float(job.times(device).duration_s.sum()) + job.update_seconds(device)
    nbytes = GRAPHS[run.job, False].graph.received_bytes
    return replace(run, step_s=factor * (step_s + (len(run.devices) - 1) * nbytes / 0.6e9))


SINGLES = [
    timed(a_run(model, batch, (device,), "single"))
    for model in DEPTHS
    for batch in (4, 16, 64)
    for device in ("V100", "T4")
]
RINGS = [
    timed(a_run(model, batch, ("V100",) * 2, "ring"))
    for model in DEPTHS
    for batch in ((4, 8, 16, 32) if model == "thick" else (16,))
]


def fits_of(runs: Sequence[TensorFlowRun]) -> Fits:
    """Fits of the simulator's own model to some of these runs, short but real ones."""
    return Fits(
        runs,
        GRAPHS,
        lambda model, device: fitted(
            tuple(run for run in runs if model != run.job and device != run.device)
        ),
    )


@cache
def fitted(runs: tuple[TensorFlowRun, ...]) -> GpuModel:
    """The model of GPUs of these runs; the same runs are fitted once."""
    return fit_devices(fit_table(tensorflow_steps(runs, [1.0] * len(runs), GRAPHS)), OPTIONS)


def of_thick(predictions: list[HeldOutPrediction], held_out: str) -> list[float]:
    return [
        item.simulated_s
        for item in predictions
        if item.run.job == "thick" and item.held_out == held_out and item.run.device == "V100"
    ]


def test_a_model_held_out_does_not_touch_its_own_prediction() -> None:
    odd = [replace(run, step_s=run.step_s * (9 if run.job == "thick" else 1))
           for run in SINGLES]  # fmt: skip
    plain = predict_singles(fits_of(SINGLES))
    changed = predict_singles(fits_of(odd))
    assert of_thick(plain, "model") == pytest.approx(of_thick(changed, "model"), rel=1e-9)
    assert of_thick(plain, "nothing") != pytest.approx(of_thick(changed, "nothing"), rel=0.01)


def test_a_device_held_out_does_not_touch_its_own_prediction() -> None:
    odd = [replace(run, step_s=run.step_s * (9 if run.device == "V100" else 1))
           for run in SINGLES]  # fmt: skip
    plain = predict_singles(fits_of(SINGLES))
    changed = predict_singles(fits_of(odd))
    assert of_thick(plain, "device") == pytest.approx(of_thick(changed, "device"), rel=1e-9)


def test_times_of_true_devices_are_told_before_they_are_seen() -> None:
    predictions = predict_singles(fits_of(SINGLES))
    held_out = [item for item in predictions if item.held_out == "model"]
    assert len(held_out) == len(SINGLES)
    assert summarise(held_out).median < 0.05


def test_links_are_fitted_without_the_model_too() -> None:
    fits = fits_of(SINGLES)
    odd = [replace(run, step_s=run.step_s * (9 if run.job == "thick" else 1)) for run in RINGS]
    plain, changed = (predict_clusters(fits, runs, None) for runs in (RINGS, odd))
    assert of_thick(plain, "model") == pytest.approx(of_thick(changed, "model"), rel=1e-9)
    assert of_thick(plain, "nothing") != pytest.approx(of_thick(changed, "nothing"), rel=0.01)
    errors = [item.error for item in plain if item.held_out == "nothing"]
    assert np.median(errors) < 0.1


def test_a_validated_server_passes_what_was_published_over_that_link() -> None:
    """Where the published transfer is slow, links are faster and copies take the rest."""
    fits = fits_of(SINGLES)
    served = [replace(run, kind="servers", num_servers=1) for run in RINGS]
    passed = ServerRate(bytes_per_s=1e6, link="10G", num_workers=2)
    free, copied = (predict_clusters(fits, served, rate) for rate in (None, passed))
    assert all(b.simulated_s > 10 * a.simulated_s for a, b in zip(free, copied, strict=True))


def published(model: str, batch_size: int, setting: str, *, half: bool = False) -> TensorFlowRun:
    """A run on a setting, as a table would have it."""
    topology = topology_of(Setting.parse(setting))
    kind: Kind = "servers" if topology.server_machine else "ring"
    return replace(
        a_run(model, batch_size, topology.devices, kind if len(topology.devices) > 1 else "single"),
        link=topology.link,
        num_servers=len(topology.server_machine),
        precision="fp16" if half else "fp32",
    )


@pytest.mark.parametrize("batch_size", [32, 64])
@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("vgg16", "2080Ti-R4/ho-PCIe"),
        ("resnet50", "V100-R8/ho-NVLink"),
        ("alexnet", "V100-R1/ho-PCIe"),
        ("vgg16", "RTX4000-P1w1/ho-10G"),
        ("resnet50", "RTX4000-P1w2/ho-1G"),
    ],
)
def test_what_is_validated_is_what_is_simulated(model: str, setting: str, batch_size: int) -> None:
    """A published run as its error is taken, and the graph of its batch as a user simulates it."""
    run, calibration = published(model, batch_size, setting), shipped_calibration()
    validated_s = simulated_s(run, read_graphs(SHIPPED), calibration)
    graph = GraphStore.open(SHIPPED).graph(f"{model}/imagenet/b{batch_size}/sgd/async/nchw")
    job = PreparedJob(graph, program=Program(synchronous=True))
    simulation = simulate(job, Setting.parse(setting), calibration)
    assert simulation.iteration_time_s == pytest.approx(validated_s, rel=1e-9)


def test_half_precision_on_one_device_is_validated_as_it_is_simulated() -> None:
    run, calibration = (
        published("alexnet", 32, "V100-R1/ho-PCIe", half=True),
        shipped_calibration(),
    )
    graph = GraphStore.open(SHIPPED).graph("alexnet/imagenet/b32/sgd/async/fp16/nchw")
    simulation = simulate(graph, Setting.parse("V100-R1/ho-PCIe"), calibration)
    validated_s = simulated_s(run, read_graphs(SHIPPED), calibration)
    assert simulation.iteration_time_s == pytest.approx(validated_s, rel=1e-9)


@pytest.mark.parametrize("setting", ["V100-R1/ho-PCIe", "RTX4000-P1w2/ho-10G"])
def test_a_user_gets_the_number_that_was_validated(setting: str, tmp_path: Path) -> None:
    """`driple jobs build`, then `driple predict`: the published run of the same job."""
    pytest.importorskip("tensorflow")
    graph, runner = tmp_path / "alexnet.pb", CliRunner()
    built = runner.invoke(app, ["jobs", "build", "alexnet/imagenet/b32/sgd/sync/nchw",
                                "-o", str(graph)])  # fmt: skip
    assert built.exit_code == 0, built.output
    result = runner.invoke(
        app, ["predict", str(graph), "--method", "simulator", "--setting", setting, "--json"]
    )
    assert result.exit_code == 0, result.output
    seconds = json.loads(result.stdout)["answers"][0]["iteration_time_s"]["value"]
    run = published("alexnet", 32, setting)
    validated_s = simulated_s(run, read_graphs(SHIPPED), shipped_calibration())
    assert seconds == pytest.approx(validated_s, rel=0.01)


def test_without_runs_on_one_device_there_is_nothing_to_fit() -> None:
    with pytest.raises(ConfigError, match="no published run on a single device"):
        Fits(RINGS, GRAPHS, lambda *_: gpu_model())
