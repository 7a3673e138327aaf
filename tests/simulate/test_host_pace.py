"""What a host does for a step: op by op, kernel by kernel, or by replaying graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.graph.opgraph import OpGraph
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_rates import REPLAYED_TENSOR_OPS, TENSOR_OPS, HostPace
from driple.simulate.prepared_job import PreparedJob, Program
from tests.simulate.jobs import net


def pace() -> HostPace:
    model = shipped_calibration().model
    assert isinstance(model, GpuModel)
    return model.host


def of_step(runtime: Runtime, kernels: float = 900.0, tensors: int = 60) -> float:
    launches = kernels if runtime.compiled else 2 * kernels
    return pace().of_step(runtime, launches=launches, runs=2 * kernels, updates=4, tensors=tensors)


EAGER, COMPILED = Runtime(), Runtime(compiled=True)
REPLAYED = Runtime(compiled=True, cuda_graphs=True)


def test_graphs_replay_any_number_of_kernels_at_once() -> None:
    """The optimizer and the gradients of its tensors are left, less of them than before."""
    assert of_step(REPLAYED, 10.0) == of_step(REPLAYED, 10_000.0)
    assert of_step(REPLAYED) < of_step(COMPILED) <= of_step(EAGER)
    host = pace()
    left_s = 60 * REPLAYED_TENSOR_OPS * host.op_s + 4 * host.update_s + host.step_s
    assert of_step(REPLAYED) == pytest.approx(left_s)
    assert of_step(REPLAYED, tensors=0) < of_step(REPLAYED)
    assert REPLAYED_TENSOR_OPS < TENSOR_OPS


def test_each_part_of_a_replayed_step_takes_as_much_longer_on_a_slower_host() -> None:
    slow = pace().slower(3.0)
    seconds = slow.of_step(REPLAYED, launches=9.0, runs=9.0, updates=4, tensors=60)
    assert seconds == pytest.approx(3 * of_step(REPLAYED))


def step_s(graph: OpGraph, *, cuda_graphs: bool) -> float:
    job = PreparedJob(graph, program=Program(fused=True, cuda_graphs=cuda_graphs))
    return float(job.times(shipped_calibration().device("H100")).duration_s.sum())


@pytest.mark.parametrize(("batch", "gain"), [(1, 1.5), (2**16, 1.0)])
def test_only_a_step_that_waits_for_its_host_gains(batch: int, gain: float) -> None:
    graph = net(batch, depth=30)
    before, after = (step_s(graph, cuda_graphs=graphs) for graphs in (False, True))
    assert after <= before
    assert before / after >= gain
    if gain == 1.0:
        assert before / after == pytest.approx(1.0, abs=0.01)


def test_nothing_is_replayed_without_a_compiler() -> None:
    job = PreparedJob(net(8), program=Program(cuda_graphs=True))
    assert job.runtime == PreparedJob(net(8)).runtime
    compiled = PreparedJob(net(8), program=Program(fused=True, cuda_graphs=True))
    assert compiled.runtime == replace(job.runtime, compiled=True, cuda_graphs=True)
    assert np.isfinite(compiled.times(shipped_calibration().device("H100")).duration_s).all()
