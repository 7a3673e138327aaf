"""The code for GPUs, run on the processor: kernels run, and their bytes and work are counted."""

from dataclasses import replace

import pytest
import torch

from driple.errors import MeasureError
from driple.measure.machine.clock import Clock, Effort
from driple.measure.machine.copies import copy_rates
from driple.measure.machine.gpu import (
    KERNELS,
    GpuFacts,
    KernelProgram,
    MeasuredKernel,
    check_gpus,
    kernel_seconds,
    memory_bytes_per_s,
)
from driple.measure.machine.new_device import device_values

QUICK = Clock(torch.device("cpu"), Effort(rounds=1, round_s=1e-4, tries=1))
NAMED = {(one.name, one.precision): one for one in KERNELS}


def small(kernel: KernelProgram) -> KernelProgram:
    """The same with a batch of one sample, or few."""
    return replace(kernel, shapes=tuple((1, *shape[1:]) for shape in kernel.shapes))


def test_kernels_of_each_kind_run() -> None:
    """One of each name in half precision, and products in all."""
    names = ("product 1024", "convolution 3x3 of 64", "batch norm", "layer norm", "gelu", "softmax",
             "mean", "sum of two")  # fmt: skip
    chosen = [small(NAMED[name, "bf16"]) for name in names]
    chosen += [small(NAMED["product 1024", one]) for one in ("tf32", "fp32")]
    timed = kernel_seconds(QUICK, chosen)
    assert [one.kernel for one in timed] == chosen
    assert all(one.seconds > 0 for one in timed)
    (product,) = [one for one in timed if one.kernel == chosen[0]]
    assert product.nbytes == 2 * (1024 + 1024**2 + 1024)


def test_tf32_is_put_back() -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    kernel_seconds(QUICK, [small(NAMED["product 1024", "tf32"])])
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_multiply_adds_are_those_of_the_modules() -> None:
    """By torch's own count of FLOP."""
    from torch.utils.flop_counter import FlopCounterMode

    for kernel in KERNELS:
        if kernel.multiply_adds == 0:
            continue
        with torch.device("meta"), FlopCounterMode(display=False) as counted:
            kernel.module()(*(torch.empty(shape) for shape in kernel.shapes))
        assert 2 * kernel.multiply_adds == counted.get_total_flops(), kernel.name


def test_copies_and_memory_have_rates() -> None:
    assert memory_bytes_per_s(QUICK, 2**20)
    assert [one.to_device for one in copy_rates(QUICK, 2**20)] == [True, False]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu_is_one_line() -> None:
    with pytest.raises(MeasureError, match="sees no GPU") as refused:
        check_gpus()
    assert "\n" not in str(refused.value)


def test_a_part_of_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    with pytest.raises(MeasureError, match=r"part of one .* MIG off"):
        check_gpus()


def measured(precision: str, flops: float) -> MeasuredKernel:
    kernel = NAMED["product 4096", precision]
    return MeasuredKernel(kernel=kernel, seconds=2 * kernel.multiply_adds / flops, nbytes=1.0)


FACTS = GpuFacts(name="NVIDIA X9", generation="Hopper", memory_bytes=10**11, multiprocessors=140,
                 clock_mhz=None)  # fmt: skip


def test_a_new_device_has_the_rates_that_it_reached() -> None:
    timed = [measured("bf16", 5e14), measured("tf32", 2e14), measured("fp32", 5e13)]
    values = device_values(FACTS, timed, 3e12)
    assert values["fp16_flops"] == pytest.approx(5e14)
    assert values["tf32_flops"] == pytest.approx(2e14)
    assert values["bytes_per_s"] == 3e12 and values["tensor_cores"] is True


def test_a_new_device_of_which_too_little_is_known_is_refused() -> None:
    timed = [measured("bf16", 5e14), measured("fp32", 5e13)]
    for facts, rate in ((FACTS, 3e12), (replace(FACTS, generation=""), 3e12), (FACTS, None)):
        with pytest.raises(MeasureError, match="X9 is in no catalogue"):
            device_values(facts, timed, rate)
