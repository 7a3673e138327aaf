"""Measured seconds become the factors with which the simulator predicts these seconds."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from driple.api.measured_gpu import kernel_steps, tuned_row
from driple.api.measuring_machine import MachineAsked, host_of, measure_machine
from driple.catalog import read_catalog
from driple.catalog.fields import TUNED
from driple.catalog.machine_file import MachineFile
from driple.cluster.setting import Setting
from driple.errors import ConfigError, MeasureError
from driple.measure.machine.clock import Effort
from driple.measure.machine.gpu import KERNELS, GpuFacts, MeasuredKernel
from driple.measure.machine.new_device import device_values
from driple.measure.machine.programs import PROGRAMS
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel

QUICK = Effort(rounds=1, round_s=1e-4, tries=1)
FACTS = GpuFacts(name="NVIDIA X9", generation="Hopper", memory_bytes=10**11, multiprocessors=140,
                 clock_mhz=None)  # fmt: skip


def usual_s() -> float:
    model = shipped_calibration().model
    assert isinstance(model, GpuModel)
    return model.host.op_s


@cache
def predicted_kernels() -> tuple[MeasuredKernel, ...]:
    """Kernels that take as long as an H100 is predicted to."""
    catalog = read_catalog()
    ones = [MeasuredKernel(kernel=one, seconds=1.0, nbytes=1e6) for one in KERNELS]
    steps = kernel_steps(ones, catalog.device("H100"), catalog)
    usual = np.ones(len(TUNED))
    seconds = [step.predicted_s(usual) for step in steps]
    return tuple(replace(one, seconds=s) for one, s in zip(ones, seconds, strict=True))


def timed(factor: float) -> list[MeasuredKernel]:
    """Kernels that take `factor` times as long."""
    return [replace(one, seconds=factor * one.seconds) for one in predicted_kernels()]


def test_kernels_as_predicted_need_no_factor_and_slower_ones_get_it() -> None:
    for factor in (1.0, 1.3):
        row, predicted = tuned_row(timed(factor), "NVIDIA H100 80GB HBM3", dict)
        assert row.name == "H100"
        assert len(predicted) == len(KERNELS) == row.values["tuned_kernels"]
        for pipe in ("half", "tf32", "plain", "memory"):
            assert row.values[f"tuned_{pipe}"] == pytest.approx(1 / factor, rel=0.12)


def test_few_kernels_are_refused() -> None:
    ones = [MeasuredKernel(kernel=one, seconds=1.0, nbytes=1.0) for one in KERNELS[:2]]
    with pytest.raises(MeasureError, match="2 kernels could be timed on H100"):
        tuned_row(ones, "H100", dict)


def test_an_unknown_gpu_becomes_a_device_that_is_predicted_as_measured() -> None:
    """Its peaks are what it reached, and factors bring each kernel back to its time."""
    measured = timed(1.2)
    row, _ = tuned_row(measured, "NVIDIA X9", lambda: device_values(FACTS, measured, 2.7e12))
    catalog = read_catalog((), MachineFile(file="m", rows=(row,)))
    setting = Setting.parse("8xX9", catalog=catalog)
    assert setting.worker.name == "X9"
    assert catalog.device("NVIDIA X9").bytes_per_s == pytest.approx(2.7e12)
    assert shipped_calibration().device(setting.worker).measured_on == "X9"


def test_a_host_twice_as_slow_takes_twice_as_long_an_op() -> None:
    """The pace is in the simulator's own ops: programs as long as predicted have the usual one."""
    few = [one for one in PROGRAMS if one.model == "mlp" and one.precision == "fp32"][:2]
    seconds = [(one, 1e-3) for one in few]
    first = host_of(seconds, 1e-5, launch_us=None)
    second = host_of([(one, 2e-3) for one in few], 1e-5, launch_us=None)
    assert second.us_per_op == pytest.approx(2 * first.us_per_op)
    assert first.low_us <= first.us_per_op <= first.high_us
    with_launch = host_of(seconds, 1e-5, launch_us=5.0)
    assert with_launch.us_per_op > first.us_per_op + 1
    assert first.programs == 2 and first.us_per_tensor == pytest.approx(10.0)


def test_the_pace_of_published_runs_is_found_again() -> None:
    from driple.api.measuring_machine import _predicted

    device = shipped_calibration().device("H100")
    few = [one for one in PROGRAMS if one.model == "pointwise"]
    seconds = [(one, _predicted(one, device).host_s) for one in few]
    host = host_of(seconds, 1e-5, launch_us=None)
    assert host.us_per_op == pytest.approx(1e6 * usual_s())


@pytest.mark.parametrize("parts", [("gpu",), ("copies", "host")])
def test_a_gpu_that_is_asked_for_must_be_there(parts: tuple[str, ...]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(MeasureError, match="sees no GPU"):
        measure_machine(MachineAsked(parts=parts, quiet_wait_s=0, effort=QUICK))


def test_links_of_one_process_are_refused_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(MeasureError, match="torchrun"):
        measure_machine(MachineAsked(parts=("links",), quiet_wait_s=0, effort=QUICK))


def test_unknown_parts_are_refused() -> None:
    for parts in (("gpus",), ()):
        with pytest.raises(ConfigError, match="--set parts"):
            MachineAsked(parts=parts)


def test_a_disturbed_machine_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from driple.measure.machine import load

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(load.OtherLoad, "look", lambda self: setattr(self, "most_cores", 3.0))
    machine, remarks = measure_machine(MachineAsked(parts=("host",), quiet_wait_s=0, effort=QUICK))
    assert machine is not None and machine.machine is not None
    assert machine.machine.disturbed and machine.machine.busy_cores == 3.0
    assert machine.host is not None and machine.host.launch_us is not None
    assert remarks == ()
