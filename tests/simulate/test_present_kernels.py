"""Kernels of PyTorch's present libraries: whom they hold for, and what they add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.codec import from_json, to_dict
from driple.errors import ConfigError
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import CalibratedDevice, GpuModel
from driple.simulate.gpu_kernels import Library
from driple.simulate.gpu_times import EMPTY_KERNEL_S, LAUNCH_GAP_S
from driple.simulate.kernel_picks import TURNS
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.present_kernels import STARTS, PresentKernels
from tests.simulate.gpu_models import gpu_model, present
from tests.simulate.jobs import net

H100 = DEVICES["H100"]


def device_s(model: GpuModel, library: Library = "torch2", *, fused: bool = False) -> float:
    """Seconds of a small net's kernels with a host that delays nothing."""
    efficiency, origin = model.of(H100, 1.0)
    efficiency = replace(efficiency, host=efficiency.host.slower(1e-9))
    job = PreparedJob(net(2), program=Program(library=library, fused=fused))
    return float(job.times(CalibratedDevice(H100, efficiency, origin)).duration_s.sum())


@pytest.mark.parametrize("library", ["torch1", "torch2.1", "torch2.7", "tensorflow"])
def test_earlier_libraries_do_without(library: Library) -> None:
    model = gpu_model()
    assert device_s(model, library) == device_s(replace(model, present=None), library)
    assert device_s(model) != device_s(replace(model, present=None))


def test_an_op_takes_the_start_of_its_kind() -> None:
    """A millisecond more for each of six convolutions, and nothing for what the net lacks."""
    model = gpu_model()
    usual = present()

    def longer(name: str) -> float:
        start_s = usual.start_s + 1e-3 * (np.array(STARTS) == name)
        return device_s(replace(model, present=replace(usual, start_s=start_s)))

    usual_s = device_s(replace(model, present=usual))
    assert longer("convolution") - usual_s == pytest.approx(6e-3, rel=1e-6)  # channels are last
    assert longer("convolution_apart") == longer("attention") == usual_s


def test_kernels_one_after_another_take_their_number_at_least() -> None:
    """Recurrent layers of 100 cells run 600 kernels, forward and backward."""
    torch = pytest.importorskip("torch")
    from driple.graph.torch.torch_graph import graph_of_step

    with torch.device("meta"):
        layers, steps = torch.nn.LSTM(8, 8), torch.zeros(100, 2, 8)
    graph = graph_of_step(layers, steps, lambda made: made[0].sum())
    usual, cell_s = present(), 1e-4

    def step_s(turn_s: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        model = replace(gpu_model(), present=replace(usual, turn_s=turn_s))
        efficiency, origin = model.of(H100, 1.0)
        efficiency = replace(efficiency, host=efficiency.host.slower(1e-9))
        times = PreparedJob(graph).times(CalibratedDevice(H100, efficiency, origin))
        return float(times.duration_s.sum())

    none = np.zeros(len(TURNS))
    cells = np.where(np.array(TURNS) == "cells", cell_s, none)
    assert step_s(cells) - step_s(none) == pytest.approx(600 * cell_s, rel=0.05)


def test_a_launch_is_a_gap_where_the_host_is_slow() -> None:
    """Kernels then run for their own seconds; the launches' are idle."""
    model = gpu_model(op_s=1e-3)
    efficiency, origin = model.of(H100, 1.0)
    job = PreparedJob(net(2), program=Program(library="torch2"))
    times = job.times(CalibratedDevice(H100, efficiency, origin))
    alone_s = device_s(model)
    gaps_s = LAUNCH_GAP_S * np.count_nonzero(times.busy_s)
    assert times.busy_s.sum() == pytest.approx(alone_s - gaps_s, rel=0.02)
    assert EMPTY_KERNEL_S > LAUNCH_GAP_S > 0


def test_a_file_keeps_them() -> None:
    kept = from_json(PresentKernels, to_dict(present(), where="test"), where="test")
    assert np.array_equal(kept.pick, present().pick)
    model = shipped_calibration().model
    assert isinstance(model, GpuModel)
    assert model.present is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"picks": ("none",)}, "fit them again"),
        ({"start_s": np.zeros(3)}, "start_s .* shape"),
        ({"turn_s": np.array([np.nan, 0.0])}, "turn_s .* finite"),
        ({"start_s": np.full(len(STARTS), -1.0)}, "negative"),
    ],
)
def test_odd_numbers_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(present(), **change)  # type: ignore[arg-type]
