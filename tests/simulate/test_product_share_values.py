"""Shares of products in half precision by hand, and formats of few bits by device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES, Device
from driple.errors import SettingError
from driple.graph.low_precision import LOW_MARK, LOW_PRECISIONS
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.low_products import low_products
from driple.simulate.op_facts import op_facts
from driple.simulate.optable import OpTable
from driple.simulate.product_shares import MEASURED, ProductShares, product_shares_of

FLOAT, BFLOAT16 = 1, 14
H100, A100 = DEVICES["H100"], DEVICES["A100"]


def like(device: Device, **facts: float) -> Device:
    """A device that nobody measured, with other facts."""
    return replace(device, name="mine", facts={**device.facts, **facts})


@pytest.mark.parametrize(("flops", "fall"), [(1.25e14, 1.0), (1.25e14 * 2**10, 2**-1.05)])
def test_a_device_like_the_measured_ones_has_usual_shares_by_its_balance(
    flops: float, fall: float
) -> None:
    """Of 0.81 and 0.815 back to back; products of steps take 1.21 times as long."""
    shares = product_shares_of(like(H100, fp16_flops=flops, bytes_per_s=1e12, fp32_flops=1e12))
    assert shares is not None
    assert shares.half == pytest.approx(0.81 * fall / 1.21)
    assert shares.memory == pytest.approx(0.815 / 1.21)


@pytest.mark.parametrize(
    ("facts", "has_shares"),
    [
        ({"fp16_flops": 3e14, "fp32_flops": 1e14}, True),
        ({"fp16_flops": 2.9e14, "fp32_flops": 1e14}, False),
        ({"bf16_flops": 0.5}, True),
        ({"bf16_flops": 0.0}, False),
    ],
)
def test_cards_for_games_and_chips_without_bfloat16_have_none(
    facts: dict[str, float], has_shares: bool
) -> None:
    """Those whose tensor cores have three times the plain cores' FLOP/s are no such cards."""
    assert (product_shares_of(like(H100, **facts)) is not None) == has_shares


def test_measured_devices_have_their_own_shares() -> None:
    shares = product_shares_of(DEVICES["B200"])
    assert shares == ProductShares(0.697, 0.735).over(1.21, 1.21)
    assert MEASURED["H100"].over(0.5, 0.25) == ProductShares(0.786 / 0.5, 0.859 / 0.25)
    for measured in MEASURED.values():
        assert 0.5 < measured.half < 1
        assert 0.5 < measured.memory < 1


def test_only_products_in_half_precision_are_replaced() -> None:
    """And what was there before is left as it was."""
    half, single = ((Tensor((64, 64), dtype),) for dtype in (BFLOAT16, FLOAT))
    ops = [OpSignature("matmul", half * 2, half), OpSignature("matmul", single * 2, single),
           OpSignature("add", half * 2, half)]  # fmt: skip
    before = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    after = ProductShares(half=0.7, memory=0.9).put_into(before, op_facts(ops, [None] * 3))
    assert after.tolist() == [[0.7, 0.9], [0.3, 0.4], [0.5, 0.6]]
    assert before[0].tolist() == [0.1, 0.2]


def low(form: str, m: int = 64, n: int = 32, k: int = 128, count: int = 1) -> OpSignature:
    """A product in few bits, several of them as a batch."""
    mark = ((LOW_MARK, (LOW_PRECISIONS.index(form) + 1,)),)
    shapes: tuple[tuple[int, ...], ...] = ((m, k), (k, n), (m, n))
    if count > 1:
        shapes = tuple((count, *shape) for shape in shapes)
    left, right, output = (Tensor(shape, BFLOAT16) for shape in shapes)
    return OpSignature("batch_matmul" if count > 1 else "matmul", (left, right), (output,), mark)


@pytest.mark.parametrize(
    ("device", "form", "peak", "share"),
    [
        ("H100", "fp8", "fp8_flops", 0.92), ("L40S", "fp8", "fp8_flops", 1.0),
        ("B200", "fp8", "fp8_flops", 0.84), ("H100", "fp8-block", "fp8_flops", 0.9),
        ("L40S", "fp8-block", "fp8_flops", 0.68), ("B200", "fp8-block", "fp8_flops", 0.98),
        ("B200", "nvfp4", "fp4_flops", 0.7),
    ],
)  # fmt: skip
def test_what_a_format_gains_over_16_bits(device: str, form: str, peak: str, share: float) -> None:
    """The ratio of the peaks, times the share of it that products reach."""
    products = low_products(OpTable.of([low(form)]), DEVICES[device])
    assert products is not None
    gain = float(DEVICES[device].facts[peak]) / DEVICES[device].half_flops
    assert 1 / products.faster[0] == pytest.approx(gain * share)


@pytest.mark.parametrize(
    ("form", "operand_bytes", "cast_bytes"),
    [("fp8", 1.0, 3.0), ("fp8-block", 1.0, 2.0), ("nvfp4", 0.5 + 1 / 16, 1.6)],
)
@pytest.mark.parametrize("count", [1, 3])
def test_bytes_of_operands_results_and_casts(
    form: str, operand_bytes: float, cast_bytes: float, count: int
) -> None:
    """Blocks of 16 numbers of 4 bits share a scale of a byte; results have 16 bits."""
    device = like(DEVICES["B200"], bytes_per_s=1e9)
    products = low_products(OpTable.of([low(form, count=count)]), device)
    assert products is not None
    read = count * (64 * 128 + 128 * 32)
    written = count * 2 * 64 * 32
    assert products.memory_s[0] * 1e9 == pytest.approx(operand_bytes * read + written)
    assert products.cast_s[0] * 1e9 == pytest.approx(cast_bytes * read / 0.8)


def test_formats_of_several_products_are_told_apart() -> None:
    """By their positions among the ops; ops in 16 bits are none of them."""
    plain = replace(low("fp8"), numbers=())
    ops = [plain, low("nvfp4"), low("fp8"), plain, low("fp8-block")]
    device = DEVICES["B200"]
    products = low_products(OpTable.of(ops), device)
    assert products is not None
    assert products.rows.tolist() == [1, 2, 4]
    alone = [low_products(OpTable.of([ops[i]]), device) for i in (1, 2, 4)]
    for name in ("faster", "memory_s", "cast_s"):
        expected = [getattr(one, name)[0] for one in alone]
        assert getattr(products, name).tolist() == pytest.approx(expected)
    assert len(set(products.faster.tolist())) == 3
    assert low_products(OpTable.of([plain]), device) is None


def test_a_processor_has_no_products_in_few_bits() -> None:
    cpu = next(device for device in DEVICES.values() if device.is_cpu)
    with pytest.raises(SettingError, match=r"no tensor cores for fp8; .*H100"):
        low_products(OpTable.of([low("fp8")]), cpu)
    with pytest.raises(SettingError, match=r"nvfp4; .*bf16-mixed.*B200"):
        low_products(OpTable.of([low("nvfp4")]), A100)
