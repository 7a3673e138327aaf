"""Times of ops on a GPU by hand: work, starts, gaps, turns, and the wait for the host."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.graph.low_precision import LOW_MARK
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import OptimizerUpdate
from driple.simulate.fused import FusedOps
from driple.simulate.gpu_kernels import CHANNEL_RATES, INPUTS, GpuKernels, Runtime
from driple.simulate.gpu_rates import GpuShares, HostPace
from driple.simulate.gpu_times import (
    EMPTY_KERNEL_S,
    LAUNCH_GAP_S,
    GpuEfficiency,
    gpu_op_times,
    most_shares,
    peak_seconds,
    update_seconds,
)
from driple.simulate.kernel_picks import PICKS, TURNS
from driple.simulate.op_facts import FACTS
from driple.simulate.optable import OpTable
from driple.simulate.present_kernels import STARTS, PresentKernels
from driple.simulate.product_shares import ProductShares
from driple.step.plan import OpTimes

V100, A100 = DEVICES["V100"], DEVICES["A100"]
FLOAT, BFLOAT16, FLOAT16 = 1, 14, 19
TENSORFLOW, TORCH, COMPILED = Runtime("tensorflow"), Runtime(), Runtime(compiled=True)
NO_HOST = HostPace(
    op_s=1e-15, torch1_op_s=1e-15, tensorflow_op_s=1e-15, compiled_s=1e-15, update_s=1e-15,
    step_s=1e-15, sharpness=2.0,
)  # fmt: skip
RELU = OpSignature("relu", *((Tensor((2**20,), FLOAT),),) * 2)
EMPTY = OpSignature("relu", *((Tensor((0,), FLOAT),),) * 2)


def kernels(start_s: float = 1e-3) -> GpuKernels:
    """Without weights, so that all ops reach the same shares."""
    none = np.zeros
    return GpuKernels(
        kinds=("conv",), inputs=INPUTS,
        linear=none((len(INPUTS), 2)), hidden=none((len(INPUTS), 1)),
        hidden_bias=none(1), second=none((1, 1)), second_bias=none(1), out=none((1, 2)),
        kind_offset=none((1, 2)), kind_last_offset=none((1, 2)), sharpness=2.0, start_s=start_s,
        update_share=0.5, channel_rates=np.full(len(CHANNEL_RATES), 1e6),
    )  # fmt: skip


def efficiency(start_s: float = 1e-3, host: HostPace = NO_HOST) -> GpuEfficiency:
    """A quarter of what kernels reach of memory, half of what they do of the plain cores."""
    shares = GpuShares(half=0.1, tf32=0.2, plain=0.5, memory=0.25)
    return GpuEfficiency(kernels=kernels(start_s), shares=shares, host=host)


def present(start_s: float, turn_s: float = 0.0) -> PresentKernels:
    """All kernels take alike to start; every pick halves the share of the bytes/s."""
    pick = np.zeros((len(PICKS), 2))
    pick[:, 1] = -3.0 * np.arctanh(np.log(2) / 3.0)
    return PresentKernels(
        picks=PICKS, starts=STARTS, pick=pick, start_s=np.full(len(STARTS), start_s),
        turn_s=np.full(len(TURNS), turn_s),
    )  # fmt: skip


def times(
    ops: list[OpSignature],
    reached: GpuEfficiency,
    *,
    runtime: Runtime = TENSORFLOW,
    executions: tuple[int, ...] = (1, 1, 1, 1),
    fused: FusedOps | None = None,
    update: OptimizerUpdate | None = None,
    tensors: int = 0,
) -> OpTimes:
    """Times of ops on a V100, each a node of its own."""
    count = len(ops)
    return gpu_op_times(
        OpTable.of(ops), np.arange(count), np.array(executions[:count]), fused, update, V100,
        reached, runtime, tensors,
    )  # fmt: skip


def relu_parts(reached: GpuEfficiency) -> tuple[float, float]:
    """Seconds of the work of `RELU`, and of its memory alone: 8 bytes and an op an element."""
    shares = reached.kernels.shares(OpTable.of([RELU]).facts, TENSORFLOW)[0]
    memory_s = 2**23 / V100.bytes_per_s / (shares[1] * 0.25)
    compute_s = OpTable.of([RELU]).flops[0] / V100.fp32_flops / (shares[0] * 0.5)
    return hypot(compute_s, memory_s), memory_s


def test_an_op_takes_its_work_and_a_start_as_often_as_it_runs() -> None:
    reached = efficiency(EMPTY_KERNEL_S)
    work_s, memory_s = relu_parts(reached)
    op_times = times([RELU, RELU, EMPTY], reached, executions=(1, 3, 2))
    alone_s = work_s + EMPTY_KERNEL_S
    expected = [alone_s, 3 * alone_s, 0.0]
    assert op_times.duration_s.tolist() == pytest.approx(expected, rel=1e-6)
    assert op_times.busy_s.tolist() == pytest.approx(expected, rel=1e-6)
    assert op_times.memory_s.tolist() == pytest.approx([memory_s, 3 * memory_s, 0.0])


@pytest.mark.parametrize(("activity", "share"), [(1.0, 1.0), (0.5, 0.5), (1e9, None)])
def test_memory_is_in_use_as_much_longer_as_stated_but_no_longer_than_the_kernel(
    activity: float, share: float | None
) -> None:
    reached = efficiency(EMPTY_KERNEL_S)
    memory_s = relu_parts(reached)[1]
    assert reached.memory_activity == 1.0
    op_times = times([RELU], replace(reached, memory_activity=activity))
    expected = op_times.busy_s[0] if share is None else share * memory_s
    assert op_times.memory_s[0] == pytest.approx(expected)


def test_a_host_and_a_device_of_like_times_meet_as_a_triangle() -> None:
    """Device 3 and host 4 are 5: the host's rest is spread over the launches."""
    host = replace(NO_HOST, step_s=4.0)
    op_times = times([EMPTY, RELU, RELU, RELU], efficiency(0.5, host), executions=(9, 1, 4, 1))
    work_s = relu_parts(efficiency())[0]
    assert work_s < 1e-3
    assert op_times.duration_s.sum() == pytest.approx(5.0, rel=1e-3)
    waits_s = 2.0 * np.array([0, 1, 4, 1]) / 6
    expected = waits_s + (0.5 + work_s) * np.array([0, 1, 4, 1])
    assert op_times.duration_s.tolist() == pytest.approx(expected.tolist(), rel=1e-3)


@pytest.mark.parametrize(
    ("gaps_s", "host_s", "work_s", "seen"),
    [
        (1.0, 1.0, 2.0, 0.5),  # kernels alone take as long as the host with its launches
        (1.0, 3.0, 2.0, 0.8),  # half as long: 1 / (1 + 1 / 4)
        (1.0, 1.0, 4.0, 0.2),
        (2.0, 1.0, 3.0, 0.5),
    ],
)
def test_launches_are_gaps_by_how_much_slower_the_host_is(
    gaps_s: float, host_s: float, work_s: float, seen: float
) -> None:
    reached = efficiency(gaps_s / 2 + EMPTY_KERNEL_S, replace(NO_HOST, step_s=host_s))
    runs = 1e6  # so that empty kernels hardly count
    each_s, _ = relu_parts(reached)
    big = OpSignature("relu", *((Tensor((int(work_s / 2 / each_s * 2**20),), FLOAT),),) * 2)
    op_times = times([big, big], reached)
    device_s = work_s + gaps_s
    assert op_times.duration_s.sum() == pytest.approx(hypot(device_s, host_s), rel=10 / runs)
    assert op_times.busy_s.sum() == pytest.approx(device_s - seen * gaps_s, rel=10 / runs)


def test_without_gaps_a_waiting_device_is_as_busy_as_its_kernels() -> None:
    reached = efficiency(EMPTY_KERNEL_S / 2, replace(NO_HOST, step_s=4.0))
    op_times = times([RELU], reached)
    assert op_times.busy_s[0] == pytest.approx(
        relu_parts(reached)[0] + EMPTY_KERNEL_S / 2, rel=1e-6
    )
    assert op_times.duration_s[0] == pytest.approx(4.0, rel=1e-3)


def test_the_update_keeps_the_device_while_the_host_runs_ahead() -> None:
    """Device 1 and update 2 against a host of 4: the ops wait 2 of the 5 seconds."""
    moved = round(2.0 * V100.bytes_per_s * 0.25 * 0.5)
    update = OptimizerUpdate(moved_bytes=moved, num_kernels=0)
    reached = efficiency(1.0, replace(NO_HOST, step_s=4.0))
    assert update_seconds(update, V100, reached) == pytest.approx(2.0)
    op_times = times([RELU], reached, update=update)
    assert op_times.duration_s[0] == pytest.approx(1.0 + 2.0, rel=1e-3)
    started = replace(update, num_kernels=3)
    assert update_seconds(started, V100, reached) == pytest.approx(5.0)


def test_the_host_takes_time_for_launches_updates_and_tensors() -> None:
    """Two runs of one op, three kernels of the update, four tensors of 2.3 ops each."""
    host = replace(NO_HOST, tensorflow_op_s=1.0, update_s=10.0, step_s=100.0)
    update = OptimizerUpdate(num_kernels=3)
    reached = efficiency(1e-9, host)
    op_times = times([RELU, EMPTY], reached, executions=(2, 5), update=update, tensors=4)
    assert op_times.duration_s.sum() == pytest.approx(2 + 30 + 4 * 2.3 + 100, rel=1e-3)


def test_a_fused_op_moves_its_share_of_bytes_and_is_started_once() -> None:
    reached = efficiency()
    fused = FusedOps(bytes_share=np.array([1.0, 0.25]), starts=np.array([True, False]))
    op_times = times(
        [RELU, RELU], reached, runtime=Runtime("tensorflow", compiled=True), fused=fused
    )
    work_s, memory_s = relu_parts(reached)
    compute_s = sqrt(work_s**2 - memory_s**2)
    expected = [work_s + 1e-3, hypot(compute_s, memory_s / 4)]
    assert op_times.duration_s.tolist() == pytest.approx(expected, rel=1e-6)
    slow = times(
        [RELU, RELU], efficiency(1e-9, replace(NO_HOST, compiled_s=1.0, tensorflow_op_s=1.0)),
        runtime=Runtime("tensorflow", compiled=True), fused=fused,
    )  # fmt: skip
    assert slow.duration_s.sum() == pytest.approx(1.0, rel=1e-2)
    assert slow.duration_s[1] < 0.01


def table_gradient(indices: int) -> OpSignature:
    """The gradient of a table of 16 columns, which PyTorch sorts for from 3,073 indices on."""
    shapes = Tensor((indices, 16), FLOAT), Tensor((indices,), 3)
    return OpSignature("embedding_gradient", shapes, (Tensor((64, 16), FLOAT),))


def test_kernels_that_sort_are_started_apart() -> None:
    """Thirty more starts on the device, and 0.3 ops each of the host; none in TensorFlow."""
    op, few = table_gradient(4000), table_gradient(2000)
    reached = efficiency(1.0)
    with_sort, without = (
        float(times([op], reached, runtime=runtime).duration_s[0])
        for runtime in (Runtime("torch1"), TENSORFLOW)
    )
    assert with_sort - without == pytest.approx(30.0, rel=1e-6)
    assert times([few], reached, runtime=Runtime("torch1")).duration_s[0] == pytest.approx(
        1.0, rel=1e-3
    )
    host = replace(NO_HOST, torch1_op_s=1.0)
    slow = times([op], efficiency(1e-9, host), runtime=Runtime("torch1"))
    assert slow.duration_s[0] == pytest.approx(1 + 0.3 * 30, rel=1e-3)


def test_present_kernels_start_and_take_turns_by_their_own_seconds() -> None:
    """A launch of 1 us beside; a compiler's kernels start no later than those of all libraries."""
    reached = replace(efficiency(5e-6), present=present(2.0))
    table = OpTable.of([RELU, table_gradient(4000)])
    eager = reached.op_starts(table, table.facts, TORCH)
    assert eager.start_s.tolist() == pytest.approx([2.0 + LAUNCH_GAP_S] * 2)
    assert eager.gap_s.tolist() == [LAUNCH_GAP_S] * 2
    assert eager.apart_s.tolist() == pytest.approx([0.0, 60.0])
    compiled = reached.op_starts(table, table.facts, COMPILED)
    assert compiled.start_s.tolist() == [5e-6] * 2
    assert compiled.apart_s.tolist() == pytest.approx([0.0, 30 * 5e-6])
    earlier = reached.op_starts(table, table.facts, Runtime("torch1"))
    assert earlier.start_s.tolist() == [5e-6] * 2
    assert earlier.gap_s.tolist() == pytest.approx([5e-6 - EMPTY_KERNEL_S] * 2)
    assert earlier.apart_s.tolist() == pytest.approx([0.0, 30 * 5e-6])
    assert earlier.turns_s.tolist() == [0.0, 0.0]
    short = replace(efficiency(1e-7)).op_starts(table, table.facts, TENSORFLOW)
    assert short.gap_s.tolist() == [0.0, 0.0]
    fast = replace(efficiency(1e-7), present=present(2.0)).op_starts(table, table.facts, COMPILED)
    assert fast.gap_s.tolist() == pytest.approx([1e-7] * 2)


def grouped(groups: int) -> OpSignature:
    """A convolution of one pixel in groups, which follow one another."""
    image = Tensor((2, 4 * groups, 4, 4), FLOAT)
    weight = Tensor((1, 1, 4, 4 * groups), FLOAT)
    return OpSignature("conv", (image, weight), (image,), (("groups", (groups,)),))


def test_kernels_that_follow_one_another_take_their_turns_unless_compiled() -> None:
    reached = replace(efficiency(1e-9), present=present(0.0, turn_s=2.0))
    eager = times([grouped(3)], reached, runtime=TORCH)
    assert eager.duration_s[0] == pytest.approx(6.0, rel=1e-3)
    assert times([grouped(3)], reached, runtime=COMPILED).duration_s[0] < 1e-3


def test_picks_change_the_shares_of_present_kernels() -> None:
    """An odd vocabulary in half precision; a compiler takes no slower kernel than that."""
    shape = Tensor((64, 50257), FLOAT16)
    op = OpSignature("matmul", (Tensor((64, 8), FLOAT16), Tensor((8, 50257), FLOAT16)), (shape,))
    facts = OpTable.of([op]).facts
    plain = efficiency()
    own = plain.kernels.shares(facts, TORCH)
    chosen = replace(plain, present=present(0.0))
    np.testing.assert_allclose(chosen.kernel_shares(facts, TORCH), own * [[1.0, 0.5]])
    np.testing.assert_allclose(chosen.kernel_shares(facts, COMPILED), own)
    np.testing.assert_allclose(chosen.kernel_shares(facts, Runtime("torch2.7")), own)
    np.testing.assert_allclose(plain.kernel_shares(facts, TORCH), own)
    products = replace(chosen, products=ProductShares(half=0.11, memory=0.22))
    np.testing.assert_allclose(products.kernel_shares(facts, TORCH), [[0.11, 0.22]])


def test_kernels_follow_a_faster_memory_by_their_share() -> None:
    facts = OpTable.of([RELU]).facts
    own = efficiency().kernels.shares(facts, TORCH)[0, 1]
    gained = replace(efficiency(), memory_gain=4.0).kernel_shares(facts, TORCH)[0, 1]
    assert gained == pytest.approx(own * 4 ** (1 / (1 + (0.5 / own) ** 2) - 1))


def test_a_gpu_is_by_default_the_measured_one_with_earlier_libraries() -> None:
    plain = efficiency()
    assert plain == replace(plain, memory_activity=1.0, memory_gain=1.0, present=None,
                            products=None)  # fmt: skip


def matmul(dtype: int, side: int = 4096) -> OpSignature:
    """A square product."""
    return OpSignature("matmul", (Tensor((side, side), dtype),) * 2, (Tensor((side, side), dtype),))


def test_products_run_on_the_units_of_their_precision() -> None:
    """Those on tensor cores reach 95 % of the peak at most; sums run on the plain cores."""
    table = OpTable.of([matmul(FLOAT16), matmul(FLOAT), RELU])
    on_a100, on_v100 = (peak_seconds(table, device) for device in (A100, V100))
    assert on_a100.pipes.tolist() == [0, 1, 2]
    assert on_v100.pipes.tolist() == [0, 2, 2]
    assert most_shares(on_a100.pipes).tolist() == [0.95, 0.95, np.inf]
    assert on_a100.compute_s[2] == pytest.approx(table.flops[2] / A100.fp32_flops)
    least_s = 2 * 4096**3 / np.array([A100.half_flops, A100.matrix_flops])
    assert (on_a100.compute_s[:2] >= least_s).all()
    assert (on_a100.compute_s[:2] < 1.3 * least_s).all()
    assert on_a100.cast_s is None
    assert on_a100.memory_s.tolist() == pytest.approx((table.moved / A100.bytes_per_s).tolist())


def test_bfloat16_counts_as_single_precision_where_a_device_lacks_it() -> None:
    table = OpTable.of([matmul(BFLOAT16), matmul(FLOAT16)])
    half = FACTS.index("half")
    assert peak_seconds(table, A100).facts.values[:, half].tolist() == [1, 1]
    assert peak_seconds(table, V100).facts.values[:, half].tolist() == [0, 1]


def test_tensor_cores_reach_no_more_than_95_percent() -> None:
    reached = replace(
        efficiency(1e-9), shares=GpuShares(half=100.0, tf32=1.0, plain=1.0, memory=1e9)
    )
    op_times = times([matmul(FLOAT16)], reached)
    peak_s = peak_seconds(OpTable.of([matmul(FLOAT16)]), V100).compute_s[0]
    assert op_times.duration_s[0] == pytest.approx(peak_s / 0.95, rel=1e-4)


def norm(kind: str = "batch_norm") -> OpSignature:
    """A batch norm of 64 channels of 512 elements."""
    image, weight = Tensor((8, 64, 8, 8), FLOAT), Tensor((64,), FLOAT, is_parameter=True)
    return OpSignature(kind, (image, weight), (image,))


def test_a_batch_norm_takes_the_block_of_a_channel_unless_compiled() -> None:
    """Twice 512 elements at 10^6 a second, in the gradient three times."""
    table = OpTable.of([norm(), norm("batch_norm_gradient"), RELU])
    peaks = peak_seconds(table, V100)
    assert peaks.channel_s(kernels(), TORCH).tolist() == pytest.approx([1.024e-3, 1.536e-3, 0.0])
    assert peaks.channel_s(kernels(), COMPILED).tolist() == [0.0] * 3
    reached = efficiency(1e-9)
    assert times([norm()], reached).busy_s[0] == pytest.approx(1.024e-3, rel=0.01)


def test_products_in_8_bits_take_casts_beside_whether_compiled_or_not() -> None:
    plain, device = matmul(BFLOAT16, 256), DEVICES["H100"]
    low = replace(plain, numbers=((LOW_MARK, (1,)),))
    peaks = peak_seconds(OpTable.of([low, plain]), device)
    read = 2 * 256 * 256
    cast_s = 3 * read / (device.bytes_per_s * 0.8)
    for runtime in (TORCH, COMPILED):
        assert peaks.channel_s(kernels(), runtime).tolist() == pytest.approx([cast_s, 0.0])
    assert peaks.memory_s[0] == pytest.approx((read + read) / device.bytes_per_s)
    assert peaks.memory_s[1] == pytest.approx(3 * read / device.bytes_per_s)
    assert peaks.compute_s[0] < peaks.compute_s[1]
