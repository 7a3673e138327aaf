"""Fit of the GPU model: what was planted is found again, and priors hold where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.simulate.calibration import CalibratedDevice, GpuModel
from driple.simulate.gpu_rates import is_better, peaks
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.device_fit import FitOptions, fit_devices
from scripts.fits.fit_table import FitTable, StepRow, fit_table
from tests.simulate.gpu_models import gpu_model, kernels
from tests.simulate.jobs import net

pytest.importorskip("torch")

DEVICES_OF_ROWS = ("V100", "A100", "H100")
JOBS = {
    (batch, channels): PreparedJob(net(batch, channels=channels))
    for batch in (4, 16, 64, 256)
    for channels in (32, 64, 128)
}


def step_s(job: PreparedJob, device: str, model: GpuModel) -> float:
    """Seconds of a step, as a user gets them."""
    efficiency, origin = model.of(DEVICES[device], 1.0)
    known = CalibratedDevice(DEVICES[device], efficiency, origin)
    fresh = PreparedJob(job.graph, kinds=job.kinds)
    return float(fresh.times(known).duration_s.sum()) + fresh.update_seconds(known)


def row(job: PreparedJob, device: str, seconds: float, source: str = "one") -> StepRow:
    """A row of a job."""
    return StepRow(
        device=DEVICES[device],
        runtime=job.runtime,
        update=job.graph.update,
        source=source,
        seconds=seconds,
        tensors=job.handed_tensors,
    )


def planted(truth: GpuModel, *, factor: float = 1.0) -> FitTable:
    """Steps whose times a model gives."""
    return fit_table(
        (job.kinds, row(job, device, factor * step_s(job, device, truth)))
        for job in JOBS.values()
        for device in DEVICES_OF_ROWS
    )


def test_a_planted_model_is_found_again() -> None:
    """On the rows, and between them."""
    truth = replace(gpu_model(5), kernels=kernels(5, size=0.1))
    fitted = fit_devices(planted(truth), FitOptions(steps=400, share_penalty=1e-5))
    for device in DEVICES_OF_ROWS:
        for batch, channels in ((32, 64), (128, 32), (200, 128)):
            job = PreparedJob(net(batch, channels=channels))
            ratio = step_s(job, device, fitted) / step_s(job, device, truth)
            assert 0.85 < ratio < 1.18, (device, batch, channels)


def test_what_the_fit_computes_is_what_a_user_gets() -> None:
    """The fit's own step times, of the model it returns, on every row."""
    import torch

    from scripts.fits import device_fit

    table = planted(gpu_model(2))
    torch.manual_seed(0)
    parameters = device_fit._Parameters(table, FitOptions(), torch)
    for value in parameters.parameters():
        value.data += 0.1 * torch.randn_like(value)
    own = parameters.step_ms(device_fit._Data(table, torch)).detach().numpy() / 1e3
    model = replace(
        parameters.model(),
        devices=replace(parameters.model().devices, measured=parameters.unordered()),
    )
    given = [step_s(job, device, model) for job in JOBS.values() for device in DEVICES_OF_ROWS]
    np.testing.assert_allclose(given, own, rtol=2e-3)


def test_a_source_that_is_slow_throughout_does_not_slow_the_devices() -> None:
    """Half of a device's rows come from a host that takes a fifth longer."""
    truth = gpu_model(1)
    steps = [
        (
            job.kinds,
            row(job, "V100", step_s(job, "V100", truth) * (1.2 if slow else 1.0), str(slow)),
        )
        for job in JOBS.values()
        for slow in (False, True)
    ]
    fitted = fit_devices(fit_table(steps), FitOptions(steps=200))
    job = JOBS[64, 64]
    ratio = step_s(job, "V100", fitted) / step_s(job, "V100", truth)
    assert 1.0 < ratio < 1.2


def test_no_device_is_slower_than_one_that_is_worse_in_every_field() -> None:
    """Rows contradict it: the better device is measured slower."""
    truth = gpu_model(0)
    steps = [
        (job.kinds, row(job, device, step_s(job, "V100", truth) * factor))
        for job in JOBS.values()
        for device, factor in (("A100", 1.5), ("V100", 1.0))
    ]
    measured = fit_devices(fit_table(steps), FitOptions(steps=100)).devices.measured
    assert is_better(DEVICES["A100"], DEVICES["V100"])
    for share in ("half", "tf32", "plain", "memory"):
        rates = {
            name: getattr(measured[name], share) * peaks(DEVICES[name])[share]
            for name in ("A100", "V100")
        }
        assert rates["A100"] >= rates["V100"] * (1 - 1e-9), share


def test_a_device_of_few_rows_gives_way_to_one_of_many() -> None:
    """Few rows of the better device contradict many of the worse one, which keeps its rates."""
    from scripts.fits.device_fit import SHARES, _in_order

    better, worse = DEVICES["TitanV"], DEVICES["2080Ti"]
    assert is_better(better, worse)
    slow = replace(gpu_model(0).devices.usual, half=0.3, tf32=0.3, plain=0.3, memory=0.3)
    quick = replace(slow, half=0.9, tf32=0.9, plain=0.9, memory=0.9)
    devices = {"TitanV": better, "2080Ti": worse}
    fitted = {"TitanV": slow, "2080Ti": quick}
    many = _in_order(fitted, devices, {"TitanV": 1.0, "2080Ti": 99.0})
    alike = _in_order(fitted, devices, {"TitanV": 1.0, "2080Ti": 1.0})
    for share in SHARES:
        rates = {name: getattr(many[name], share) * peaks(devices[name])[share] for name in many}
        assert rates["TitanV"] >= rates["2080Ti"] * (1 - 1e-9), share
        assert getattr(many["2080Ti"], share) == pytest.approx(0.9, rel=0.02), share
        assert getattr(alike["2080Ti"], share) < 0.9 * 0.85, share


def test_few_rows_of_a_better_device_do_not_slow_many_of_a_worse_one() -> None:
    """The better device's one row contradicts the other's: the fit keeps to the many."""
    truth = gpu_model(0)
    steps = [
        (job.kinds, row(job, "V100", step_s(job, "V100", truth), source="many"))
        for job in JOBS.values()
    ]
    few = JOBS[64, 64]
    steps.append((few.kinds, row(few, "A100", 2 * step_s(few, "V100", truth), source="many")))
    fitted = fit_devices(fit_table(steps), FitOptions(steps=200))
    for job in JOBS.values():
        ratio = step_s(job, "V100", fitted) / step_s(job, "V100", truth)
        assert ratio == pytest.approx(1.0, abs=0.08)
