"""What devices reach of their peaks: those that were measured, their generation, or the usual."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import Device, shipped_hardware
from driple.simulate.device_models import CoreModel, Reached, tensor_factor
from driple.simulate.gpu_rates import USUAL_BALANCE
from tests.simulate.core_model import DEVICE, KERNELS
from tests.simulate.gpu_models import gpu_model

FAST = replace(DEVICE, tensor=DEVICE.tensor / 2)
REACHED = Reached(
    measured={"V100": FAST}, generations={"Ampere": DEVICE}, usual=replace(DEVICE, tensor=0.25),
    tensor_fall=0.5,
)  # fmt: skip


def device(name: str) -> Device:
    return shipped_hardware().device(name)


def test_a_measured_device_is_as_measured() -> None:
    assert REACHED.of(device("V100")) == (FAST, "V100")


def test_others_are_like_their_generation_or_the_usual_one() -> None:
    """With the tensor cores' share by their FLOP/s per byte/s."""
    for name, known, origin in (("A100", DEVICE, "Ampere"), ("H100", REACHED.usual, "")):
        reached, where = REACHED.of(device(name))
        assert where == origin
        assert reached.tensor == pytest.approx(known.tensor * tensor_factor(device(name), 0.5))
        assert replace(reached, tensor=known.tensor) == known


def test_more_flops_for_each_byte_reach_a_smaller_share() -> None:
    a100 = device("A100")
    balanced = replace(a100, facts={**a100.facts})
    ratio = a100.half_flops / a100.bytes_per_s / USUAL_BALANCE
    assert tensor_factor(balanced, 0.0) == 1.0
    assert tensor_factor(a100, 1.0) == pytest.approx(1 / ratio)
    assert tensor_factor(a100, 2.0) == pytest.approx(1 / ratio**2)
    assert (tensor_factor(a100, 0.5) < 1) is (ratio > 1)


def test_cores_have_the_kernels_of_all_and_what_their_device_reaches() -> None:
    model = CoreModel(kernels=KERNELS, devices=REACHED)
    efficiency, origin = model.of(device("V100"), 1.5)
    assert (efficiency.kernels, efficiency.device, efficiency.memory_activity, origin) == (
        KERNELS, FAST, 1.5, "V100")  # fmt: skip


def test_a_gpu_that_was_measured_needs_no_shares_of_products() -> None:
    model = gpu_model()
    for name in ("V100", "H100", "A100", "T4"):
        efficiency, origin = model.of(device(name), 1.25)
        assert efficiency.memory_activity == 1.25
        assert efficiency.kernels is model.kernels
        assert efficiency.present is model.present
        if origin in model.devices.measured:
            assert efficiency.products is None
        assert efficiency.memory_gain == model.devices.memory_gain(device(name))
