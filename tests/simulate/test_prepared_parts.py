"""Parts of a prepared job: its runtime, its tensors, its plans and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.cluster.schemes import Degrees
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.simulate.calibration import CalibratedDevice, shipped_calibration
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_times import GpuEfficiency
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.processor import processor_pace, processor_times, processor_update_s
from tests.schemes.exchanged import transformer
from tests.simulate.jobs import CALIBRATION, net

V100 = shipped_calibration().device("V100")
CORES = CALIBRATION.device("V100")  # ops one after another


def on_torch(graph: OpGraph) -> OpGraph:
    """The same graph as one of PyTorch."""
    return replace(graph, framework="pytorch")


def test_a_program_is_synchronous_as_its_graph_and_uses_nothing_special() -> None:
    assert Program() == Program(
        synchronous=None, overlapped=True, ring_share=1.0, exchange=None, library=None, fused=False,
        offload=(), by_engine=False, cuda_graphs=False, tensor_overlap=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "tensorflow", "torch"),
    [
        (Program(), Runtime("tensorflow"), Runtime("torch2")),
        (Program(library="torch1"), Runtime("torch1"), Runtime("torch1")),
        (
            Program(fused=True),
            Runtime("tensorflow", compiled=True),
            Runtime("torch2", compiled=True),
        ),
        (Program(cuda_graphs=True), Runtime("tensorflow"), Runtime("torch2")),
    ],
)
def test_what_runs_a_step(program: Program, tensorflow: Runtime, torch: Runtime) -> None:
    graph = net(8)
    assert PreparedJob(graph, program=program).runtime == tensorflow
    assert PreparedJob(on_torch(graph), program=program).runtime == torch


def test_exchanges_of_frameworks_differ_unless_the_program_names_one() -> None:
    assert PreparedJob(net(8)).exchange == "horovod"
    assert PreparedJob(on_torch(net(8))).exchange == "buckets"
    for graph in (net(8), on_torch(net(8))):
        assert PreparedJob(graph, program=Program(exchange="tensors")).exchange == "tensors"


def test_the_host_of_pytorch_hands_on_each_trained_tensor() -> None:
    """Four of the net; none in TensorFlow, whose ops do it."""
    assert PreparedJob(net(8)).handed_tensors == 0
    assert PreparedJob(on_torch(net(8))).handed_tensors == 4
    assert PreparedJob(net(8), program=Program(library="torch1")).handed_tensors == 4


def test_without_servers_the_host_runs_ahead_of_the_update() -> None:
    """A long update during which a slow host enqueues all ops: none waits."""
    graph = replace(net(8), update=replace(net(8).update, num_kernels=1, moved_bytes=10**12))
    job = PreparedJob(graph)
    efficiency = V100.efficiency
    assert isinstance(efficiency, GpuEfficiency)
    slow = replace(efficiency, host=efficiency.host.slower(50.0))
    device = replace(V100, efficiency=slow)
    own, others = job.times(device), job.times(device, updates=False)
    assert job.update_seconds(device) > 0.1
    assert own.duration_s.sum() < others.duration_s.sum()
    assert job.times(device, updates=True) is own
    assert job.times(device) is own
    # On cores nothing runs ahead, and there is one time of each op.
    assert job.times(CORES, updates=False) is job.times(CORES)


def test_phases_belong_to_times_where_the_graph_has_them() -> None:
    job = transformer()
    phases = job.times(V100).phases
    assert phases is not None
    np.testing.assert_array_equal(phases, job.graph.phases)
    assert PreparedJob(net(8)).times(V100).phases is None


def test_ops_of_pytorch_on_a_processor_take_its_pace() -> None:
    """TensorFlow's kernels were measured themselves."""
    cpu = next(device for device in DEVICES.values() if device.is_cpu)
    device = CalibratedDevice(cpu, CORES.efficiency, "")
    plain, torch = PreparedJob(net(8)), PreparedJob(on_torch(net(8)))
    assert not plain.is_on_processor(device)
    assert torch.is_on_processor(device)
    assert not torch.is_on_processor(CORES)
    pace, kinds = processor_pace(cpu), torch.kinds
    expected = processor_times(kinds.table, kinds.kind_of, kinds.executions, pace)
    np.testing.assert_array_equal(torch.times(device).duration_s, expected.duration_s)
    moved = torch.graph.update.moved_bytes
    assert torch.update_seconds(device) == processor_update_s(moved, 4, pace)
    reached = CORES.efficiency.device.memory  # type: ignore[union-attr]
    assert plain.update_seconds(device) == pytest.approx(moved / (cpu.bytes_per_s * reached))


def test_ops_run_as_often_as_the_graph_says() -> None:
    graph = net(8)
    job = PreparedJob(replace(graph, executions=3 * graph.executions))
    assert (job.executions == 3 * PreparedJob(graph).executions).all()
    assert job.executions.max() == 3
    assert sorted(job.order.tolist()) == list(range(graph.num_nodes))


def test_what_is_known_is_not_worked_out_again() -> None:
    job = PreparedJob(net(8))
    assert job.cost is job.cost
    again = PreparedJob(job.graph, kinds=job.kinds, cost=job.cost)
    assert again.kinds is job.kinds
    assert again.cost is job.cost
    assert job.plan(V100, 2, "greedy") is job.plan(V100, 2, "greedy")
    assert job.plan(V100, 2, "greedy") is not job.plan(V100, 3, "greedy")


def test_without_servers_all_messages_are_for_the_first() -> None:
    job = PreparedJob(net(8))
    plan = job.plan(V100, 0, "round_robin")
    assert {message.server for segment in plan.segments for message in segment.sends} == {0}
    two = job.plan(V100, 2, "round_robin")
    assert {message.server for message in two.pulls} == {0, 1}


def lasting(seconds: float) -> PreparedJob:
    """A job whose ops take so long on a device of whose time nothing else is known."""
    job = PreparedJob(net(8))
    times = job.times(CORES)
    factor = seconds / times.duration_s.sum()
    job._times[CORES, True] = replace(
        times, duration_s=factor * times.duration_s, busy_s=factor * times.busy_s,
        memory_s=factor * times.memory_s,
    )  # fmt: skip
    return job


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.9e-6, "would take 9e-07 s"), (1.1e-6, None), (86_000.0, None), (86_400.5, "at most 86400")],
)
def test_steps_of_less_than_a_kernel_or_more_than_a_day_are_refused(
    seconds: float, words: str | None
) -> None:
    if words is None:
        assert lasting(seconds).plan(CORES, 1, "greedy").compute_s == pytest.approx(seconds)
        return
    with pytest.raises(GraphError, match=words):
        lasting(seconds).plan(CORES, 1, "greedy")


def test_a_job_without_offload_is_itself() -> None:
    job = PreparedJob(net(8), program=Program(fused=True))
    assert job.without_offload() is job
    kept = PreparedJob(net(8), program=Program(offload=("states",), fused=True)).without_offload()
    assert kept.program == Program(fused=True)


def test_shards_do_not_depend_on_stages_or_states() -> None:
    """A shard of one device is the job itself."""
    job = transformer()
    alone, shard = job.shard(Degrees())
    assert alone is job
    assert not shard.exchanges
    assert job.shard(Degrees(pipeline=2, virtual=3, states="zero1"))[0] is job
    half, halves = job.shard(Degrees(tensor=2))
    assert halves.exchanges
    assert half is not job
    assert job.shard(Degrees(tensor=2, pipeline=3, states="fsdp"))[0] is half
