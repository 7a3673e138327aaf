"""Products of devices without training steps: who gets them, and which kernels they are."""

from __future__ import annotations

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.graph.datatypes import NUMBER_OF
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import shipped_calibration
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_times import GpuEfficiency
from driple.simulate.optable import OpTable
from driple.simulate.product_shares import IN_STEPS, MEASURED, product_shares_of

HALF, SINGLE = NUMBER_OF["DT_BFLOAT16"], NUMBER_OF["DT_FLOAT"]


def product(dtype: int, kind: str = "matmul") -> OpSignature:
    left, right, output = (Tensor((4096, 4096), dtype) for _ in range(3))
    return OpSignature(kind, (left, right), (output,))


def efficiency_of(name: str) -> GpuEfficiency:
    efficiency = shipped_calibration().device(name).efficiency
    assert isinstance(efficiency, GpuEfficiency)
    return efficiency


@pytest.mark.parametrize("name", ["H100", "A100-80G", "B200", "H200", "V100"])
def test_a_device_with_training_steps_or_their_chip_keeps_its_own_products(name: str) -> None:
    assert efficiency_of(name).products is None


@pytest.mark.parametrize("name", ["GB300", "L40S", "RTX6000-Ada"])
def test_products_reach_the_shares_of_the_tables_and_nothing_else_changes(name: str) -> None:
    """Whatever the device's other kernels reach."""
    table = OpTable.of([product(HALF), product(SINGLE), product(HALF, "add")])
    efficiency = efficiency_of(name)
    shares = efficiency.kernel_shares(table.facts, Runtime())
    expected = product_shares_of(DEVICES[name])
    assert expected is not None
    assert shares[0, 0] * efficiency.shares.half == pytest.approx(expected.half)
    assert shares[0, 1] * efficiency.shares.memory == pytest.approx(expected.memory)
    plain = efficiency.kernels.shares(table.facts, Runtime())
    assert (shares[1:] == plain[1:]).all()
    assert not np.allclose(shares[0], plain[0])


def test_products_of_steps_take_longer_than_back_to_back() -> None:
    shares = product_shares_of(DEVICES["L40S"])
    assert shares is not None
    assert shares.half == pytest.approx(MEASURED["L40S"].half / IN_STEPS)


@pytest.mark.parametrize("name", ["MI300X", "4090", "V100", "T4"])
def test_chips_unlike_the_measured_ones_have_no_shares(name: str) -> None:
    """Other makers, cards for games, and tensor cores without bfloat16."""
    assert product_shares_of(DEVICES[name]) is None


def test_more_flops_for_each_byte_reach_a_smaller_share() -> None:
    few, many = product_shares_of(DEVICES["A30"]), product_shares_of(DEVICES["A6000"])
    assert few is not None
    assert many is not None
    balance = [DEVICES[name].half_flops / DEVICES[name].bytes_per_s for name in ("A30", "A6000")]
    assert balance[0] < balance[1]
    assert few.half > many.half
