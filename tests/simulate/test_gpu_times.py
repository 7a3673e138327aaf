"""Times of ops on GPUs: laws that hold whatever weights a fit finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES, Device
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import CalibratedDevice, GpuModel
from driple.simulate.gpu_kernels import Runtime, shares_with, smooth_max
from driple.simulate.gpu_rates import GpuShares, is_better
from driple.simulate.gpu_times import peak_seconds
from driple.simulate.optable import OpTable
from driple.simulate.prepared_job import PreparedJob, Program
from tests.simulate.gpu_models import gpu_model
from tests.simulate.jobs import CALIBRATION, net

SEEDS = range(4)
PLAIN = Program()


def step_s(graph: OpGraph, device: Device, model: GpuModel, program: Program = PLAIN) -> float:
    """Seconds of the ops of a step."""
    efficiency, origin = model.of(device, 1.0)
    job = PreparedJob(graph, program=program)
    known = CalibratedDevice(device, efficiency, origin)
    return float(job.times(known).duration_s.sum()) + job.update_seconds(known)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_larger_batch_never_takes_less_time(seed: int) -> None:
    model = gpu_model(seed)
    times = [step_s(net(batch), DEVICES["V100"], model) for batch in (1, 2, 3, 8, 17, 64, 65, 256)]
    assert (np.diff(times) >= 0).all()
    assert times[-1] > 2 * times[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch", [1, 64])
def test_a_device_that_is_better_in_every_field_is_never_slower(seed: int, batch: int) -> None:
    """Better by a tenth, and as the catalogue's devices are, measured or not."""
    model = gpu_model(seed)
    rates = {"fp32_flops", "fp16_flops", "bf16_flops", "tf32_flops", "bytes_per_s"}
    for name in ("V100", "A100", "H100", "2080Ti"):
        device = DEVICES[name]
        facts = {
            key: 1.1 * float(value) if key in rates else value
            for key, value in device.facts.items()
        }
        better = replace(device, name="mine", facts=facts)
        assert step_s(net(batch), better, model) <= step_s(net(batch), device, model) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("device", "dtype", "pipe"),
    [("A100", "DT_HALF", "half"), ("A100", "DT_FLOAT", "tf32"), ("V100", "DT_FLOAT", "plain")],
)
def test_products_go_by_the_share_of_their_own_precision(
    device: str, dtype: str, pipe: str
) -> None:
    """Twice the share of their pipe saves large products time; that of another saves none."""
    model, graph = gpu_model(0), in_type(net(64, channels=512), NUMBER_OF[dtype])
    shares = GpuShares(half=0.01, tf32=0.01, plain=0.01, memory=1.0)

    def time_s(doubled: str) -> float:
        reached = replace(shares, **{doubled: 0.02} if doubled else {})
        devices = replace(model.devices, measured={device: reached})
        return step_s(graph, DEVICES[device], replace(model, devices=devices))

    usual_s = time_s("")
    saved = {name: usual_s / time_s(name) for name in ("half", "tf32", "plain")}
    assert saved.pop(pipe) > 1.7
    assert list(saved.values()) == pytest.approx([1.0, 1.0], rel=0.05)


def in_type(graph: OpGraph, dtype: int) -> OpGraph:
    """The graph with all its numbers in another type."""

    def changed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(
            replace(tensor, dtype=dtype) if tensor.dtype == NUMBER_OF["DT_FLOAT"] else tensor
            for tensor in tensors
        )

    signatures = tuple(
        replace(op, inputs=changed(op.inputs), outputs=changed(op.outputs))
        for op in graph.signatures
    )
    return replace(graph, signatures=signatures)


def test_what_a_device_reaches_lies_between_those_of_measured_ones() -> None:
    """A device without rows that is better than a measured one has no lower rate."""
    model = gpu_model(3)
    known, num_better = DEVICES["V100"], 0
    for device in DEVICES.values():
        if device.is_cpu or device.missing(
            ("fp16_flops", "fp32_flops", "tf32_flops", "bytes_per_s")
        ):
            continue
        shares, rate = model.devices.of(device)[0], model.devices.measured["V100"].memory
        if is_better(device, known):
            num_better += 1
            mine = shares.memory * device.bytes_per_s
            assert mine >= rate * known.bytes_per_s * (1 - 1e-9)
    assert num_better > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_chip_with_faster_memory(seed: int) -> None:
    """It is never slower, nor faster than its memory; its source is the device with rows."""
    model, known = gpu_model(seed), DEVICES["V100"]
    facts = {**known.facts, "bytes_per_s": 1.5 * known.bytes_per_s}
    faster = replace(known, name="mine", facts=facts)
    assert model.of(faster, 1.0)[1] == "V100"
    assert model.of(faster, 1.0)[0].memory_gain == pytest.approx(1.5)
    assert model.of(known, 1.0)[0].memory_gain == 1.0
    times = [step_s(net(64), device, model) for device in (known, faster)]
    assert times[0] / 1.5 <= times[1] <= times[0] * (1 + 1e-9)


def test_a_chip_with_other_multiprocessors_is_another_one() -> None:
    model, known = gpu_model(1), DEVICES["V100"]
    other = replace(known, name="mine", facts={**known.facts, "multiprocessors": 81})
    assert model.devices.twin_of(other) is None
    assert model.devices.twin_of(known) is None
    assert model.of(other, 1.0)[0].memory_gain == 1.0


def test_kernels_that_reach_few_bytes_keep_their_rate() -> None:
    """Those that reach nearly all follow the memory, either way."""
    shares = np.array([[0.5, 0.01], [0.5, 1.4]])
    for gain in (0.5, 1.0, 2.0):
        moved = shares_with(shares, gain)
        rates = moved[:, 1] * gain / shares[:, 1]
        assert (moved[:, 0] == shares[:, 0]).all()
        assert rates[0] == pytest.approx(1.0, rel=0.01)
        assert rates[1] == pytest.approx(gain, rel=0.15)


def test_a_step_takes_the_time_of_the_slower_of_host_and_device() -> None:
    """With a slow host the device idles; with a fast one kernels run all the time."""
    graph = net(8)
    host_s = (len(graph.names) + graph.update.num_kernels / 2) * 1e-2
    slow, fast = gpu_model(0, op_s=1e-2), gpu_model(0, op_s=1e-12)
    device = DEVICES["V100"]
    assert step_s(graph, device, slow) == pytest.approx(host_s, rel=0.05)
    efficiency, origin = fast.of(device, 1.0)
    times = PreparedJob(graph).times(CalibratedDevice(device, efficiency, origin))
    assert times.duration_s.sum() == pytest.approx(times.busy_s.sum(), rel=0.05)
    assert (times.memory_s <= times.busy_s).all()
    assert (times.busy_s <= times.duration_s).all()


def test_a_library_and_a_compiler_change_only_what_they_are_fitted_for() -> None:
    """Weights of zero: all runtimes alike; the pace of the host is the compiler's."""
    model = gpu_model(1)
    flat = replace(model.kernels, linear=0 * model.kernels.linear, out=0 * model.kernels.out)
    plain = replace(model, kernels=flat, present=None)
    device = DEVICES["V100"]
    first, second = (
        step_s(net(512), device, plain, Program(library=name)) for name in ("torch1", "torch2")
    )
    assert first == second
    assert step_s(net(512), device, plain, Program(fused=True)) <= first


def test_smooth_max_is_near_the_larger_and_above_both() -> None:
    first, other = np.array([1.0, 2.0, 0.0, 0.0]), np.array([1.0, 0.5, 3.0, 0.0])
    largest = smooth_max(first, other, 4.0, np)
    assert (largest >= np.maximum(first, other)).all()
    assert largest[2] == pytest.approx(3.0)
    assert largest[3] == 0
    assert largest[0] == pytest.approx(2**0.25)


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(Exception, match="library"):
        Runtime("torch0")  # type: ignore[arg-type]


def test_simulations_take_either_form() -> None:
    """The same job by cores and by GPUs: both give times."""
    gpu = replace(CALIBRATION, model=gpu_model())
    job = PreparedJob(net(4))
    for calibration in (CALIBRATION, gpu):
        assert job.times(calibration.device("V100")).duration_s.sum() > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch", [1, 64])
def test_a_compiled_step_is_never_slower(seed: int, batch: int) -> None:
    """Whatever weights a fit gives to `compiled`, and however slow a compiled kernel's host is."""
    model = gpu_model(seed)
    slow = replace(model, host=replace(model.host, compiled_s=1.0))
    for gpu in (model, slow):
        times = [
            step_s(net(batch), DEVICES["A100"], gpu, Program(library="torch2", fused=fused))
            for fused in (False, True)
        ]
        assert times[1] <= times[0] * (1 + 1e-9)


def norm_seconds(
    channels: int, model: GpuModel, *, compiled: bool = False, last: bool = False
) -> float:
    """Seconds of one batch norm of 2^24 elements on an H100."""
    images = Tensor((16, channels, 2**20 // channels), 1)
    weight = Tensor((channels,), 1, is_parameter=True)
    numbers = ((("channels_last", (1,)),)) if last else ()
    op = OpSignature("batch_norm", (images, weight, weight), (images,), numbers)
    runtime = Runtime(compiled=compiled)
    peaks = peak_seconds(OpTable.of([op]), DEVICES["H100"])
    return float(peaks.channel_s(model.kernels, runtime)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_few_channels_keep_few_multiprocessors_busy(seed: int) -> None:
    """A batch norm of the same size takes longer in inverse proportion to its channels."""
    model = gpu_model(seed)
    assert norm_seconds(8, model) == pytest.approx(16 * norm_seconds(128, model))
    assert norm_seconds(8, model, compiled=True) == norm_seconds(8, model, last=True) == 0
