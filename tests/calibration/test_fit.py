"""A fit finds the device that made the times, and leaves alone what they do not tell."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from driple.calibration.batched import BatchedGraph
from driple.calibration.fit import DEVICE, KERNELS, StepRows, fit_steps, step_rows
from driple.calibration.published import PublishedRun
from driple.catalog import device_named
from driple.simulate.calibration import tensor_factor
from driple.simulate.kernels import Efficiency, kernel_times
from tests.simulate.jobs import net

GRAPHS = {
    (name, False): BatchedGraph.of((16, net(16, depth=depth)), (32, net(32, depth=depth)))
    for name, depth in {"net": 3, "deep": 9}.items()
}
BATCH_SIZES = (1, 4, 16, 32, 64, 256)
TRUE = replace(DEVICE, memory=0.55, start_s=2e-5)


def a_run(batch_size: int, model: str = "net", device: str = "V100") -> PublishedRun:
    return PublishedRun(
        source="made up",
        kind="single",
        model=model,
        batch_size=batch_size,
        half=False,
        fused=False,
        devices=(device,),
        num_servers=0,
        gpus_per_machine=1,
        link="PCIe3",
        overlapped=True,
        seconds=1.0,
    )


def seconds(rows: StepRows, device: object = TRUE) -> np.ndarray:
    same = {name: np.full(len(rows.devices), value) for name, value in asdict(device).items()}  # type: ignore[call-overload]
    return rows.simulated(KERNELS, same)


def rows_of(*models: str, device: str = "V100") -> StepRows:
    rows = step_rows([a_run(n, name, device) for name in models for n in BATCH_SIZES], GRAPHS)
    return replace(rows, seconds=seconds(rows))


def test_a_step_is_the_sum_of_its_kernels_and_the_update() -> None:
    rows, graph, spec = rows_of("net"), GRAPHS["net", False], device_named("V100")
    for i, batch_size in enumerate(BATCH_SIZES):
        table = graph.table(batch_size)
        each_s = kernel_times(table, spec, Efficiency(kernels=KERNELS, device=TRUE))
        update_s = 3 * graph.graph.received_bytes / (spec.bytes_per_s * TRUE.memory)
        whole_s = float(each_s[:, 0] @ graph.runs) + update_s
        assert rows.seconds[i] == pytest.approx(whole_s, rel=1e-9)


def test_runs_of_the_same_step_are_one_case() -> None:
    rows = step_rows([a_run(4), a_run(16), a_run(4)], GRAPHS)
    assert rows.case_of.tolist() == [0, 1, 0]
    assert len(rows.starts) == 2


def test_steps_tell_the_device_that_made_them() -> None:
    rows = rows_of("net", "deep")
    before = np.abs(np.log(seconds(rows, DEVICE) / rows.seconds))
    found = fit_steps(rows)
    after = np.abs(np.log(found.simulated(rows) / rows.seconds))
    assert after.max() < 0.25 * before.max()
    v100 = found.device("V100")
    assert v100.start_s > DEVICE.start_s
    alike = DEVICE.tensor * tensor_factor(device_named("V100"), found.devices.tensor_fall)
    assert v100.tensor == pytest.approx(alike)  # nothing told of it
    assert found.kernels.fused_start == pytest.approx(KERNELS.fused_start)


def test_what_is_odd_about_a_model_stays_with_it() -> None:
    rows = rows_of("net", "deep")
    odd = np.array(rows.groups) == "deep"
    found = fit_steps(replace(rows, seconds=np.where(odd, 1.3, 1.0) * rows.seconds))
    # The slow model pulls the device along, but by less than half of what it is slower.
    ratio = found.simulated(rows)[~odd] / rows.seconds[~odd]
    assert 1.0 < np.median(ratio) < 1.15


def test_a_device_without_runs_lies_between_its_generation_and_the_usual() -> None:
    found = fit_steps(rows_of("net", "deep"))
    own, alike, other = (found.device(name).start_s for name in ("V100", "V100-SXM2", "H100"))
    assert own > alike > other > DEVICE.start_s


def test_tensor_cores_with_more_flops_for_a_byte_reach_less_of_their_peak() -> None:
    found = fit_steps(rows_of("net", "deep"))
    assert found.device("A100").tensor < found.device("3090").tensor
