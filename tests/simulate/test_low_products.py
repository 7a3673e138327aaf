"""Products in 8 and 4 bits: faster where they compute, slower where casts cost more."""

from __future__ import annotations

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.errors import SettingError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.low_precision import LOW_MARK, LOW_PRECISIONS, low_of
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import shipped_calibration
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_times import GpuEfficiency, gpu_op_times, inner_starts, peak_seconds
from driple.simulate.low_products import CAST_KERNELS, low_products
from driple.simulate.optable import OpTable

HALF = NUMBER_OF["DT_BFLOAT16"]


def product(m: int, n: int, k: int, form: str = "") -> OpSignature:
    numbers = ((LOW_MARK, (LOW_PRECISIONS.index(form) + 1,)),) if form else ()
    left, right = Tensor((m, k), HALF), Tensor((k, n), HALF, is_parameter=True)
    return OpSignature("matmul", (left, right), (Tensor((m, n), HALF),), numbers)


def seconds(op: OpSignature, name: str) -> float:
    """Of the kernel and its casts."""
    efficiency = shipped_calibration().device(name).efficiency
    assert isinstance(efficiency, GpuEfficiency)
    zeros = np.zeros(1, np.int64)
    table, ran = OpTable.of([op]), np.ones(1, np.int64)
    times = gpu_op_times(
        table, zeros, ran, None, None, DEVICES[name], efficiency, Runtime(), tensors=0
    )
    return float(times.busy_s.sum())


@pytest.mark.parametrize("form", ["fp8", "fp8-block"])
def test_large_products_are_faster_and_no_more_than_twice(form: str) -> None:
    plain = seconds(product(8192, 8192, 8192), "H100")
    low = seconds(product(8192, 8192, 8192, form), "H100")
    assert 1.4 < plain / low < 2.0


def test_small_products_pay_more_for_their_casts() -> None:
    plain = seconds(product(256, 512, 512), "H100")
    assert seconds(product(256, 512, 512, "fp8"), "H100") > plain


def test_four_bits_are_faster_than_eight() -> None:
    sides = (8192, 8192, 8192)
    assert seconds(product(*sides, "nvfp4"), "B200") < seconds(product(*sides, "fp8"), "B200")


def test_bytes_and_casts_are_those_counted_by_hand() -> None:
    """Operands of one byte and a result of two; three bytes for casting an element once."""
    table, device = OpTable.of([product(64, 32, 128, "fp8")]), DEVICES["H100"]
    low_times = low_products(table, device)
    assert low_times is not None
    read = 64 * 128 + 128 * 32
    assert low_times.memory_s[0] * device.bytes_per_s == pytest.approx(read + 2 * 64 * 32)
    assert low_times.cast_s[0] * device.bytes_per_s * 0.8 == pytest.approx(3 * read)
    plain = peak_seconds(OpTable.of([product(64, 32, 128)]), device)
    low = peak_seconds(table, device)
    assert low.compute_s[0] / plain.compute_s[0] == pytest.approx(low_times.faster[0])
    assert plain.cast_s is None


def test_a_side_that_is_no_multiple_of_16_stays_in_16_bits() -> None:
    ops = [product(64, 40, 128, "fp8"), product(64, 48, 128, "fp8")]
    table = OpTable.of(ops)
    assert table.low.tolist() == [0, 1]
    handed, apart = inner_starts(table, Runtime())
    assert handed.tolist() == apart.tolist() == [0.0, CAST_KERNELS]


@pytest.mark.parametrize(
    ("device", "form", "advice"),
    [
        ("A100-80G", "fp8", "bf16-mixed.*H100"),
        ("H100", "nvfp4", "B200"),
        ("V100", "fp8-block", "fp16-mixed.*H100"),
    ],
)
def test_a_chip_without_the_format_is_refused(device: str, form: str, advice: str) -> None:
    table = OpTable.of([product(64, 64, 64, form)])
    with pytest.raises(SettingError, match=f"{device} has no tensor cores for {form}.*{advice}"):
        peak_seconds(table, DEVICES[device])


def test_only_marked_products_have_a_format() -> None:
    assert low_of(product(64, 64, 64)) == 0
    assert [low_of(product(64, 64, 64, form)) for form in LOW_PRECISIONS] == [1, 2, 3]
