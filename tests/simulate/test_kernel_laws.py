"""Times of kernels in closed form: tiles, splits and waves; factors of each kind of op by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import device_named
from driple.codec import from_json
from driple.errors import ConfigError
from driple.simulate.kernel_picks import PICKS, TURNS
from driple.simulate.kernels import (
    DeviceEfficiency,
    Efficiency,
    Kernels,
    UnitTimes,
    kernel_times,
    op_times,
    unit_times,
)
from driple.simulate.op_facts import FACTS, OpFacts
from driple.simulate.optable import BIAS_GRADIENT, MATMUL, MEMORY_KINDS, PRODUCT_KINDS, OpTable

ELEMENTWISE, POOL, PRODUCT = (MEMORY_KINDS.index(n) for n in ("elementwise", "pool", "product"))
POINTWISE, WINDOW3, WINDOW5 = (PRODUCT_KINDS.index(n) for n in ("pointwise", "window3", "window5"))
# Unlike numbers, so that none stands for another.
KERNELS = Kernels(
    product=(1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7),
    tensor_product=(2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7),
    gradient=(3.1, 3.2),
    tensor_gradient=(4.1, 4.2),
    saving=(5.1, 5.2),
    saving_traffic=(6.1, 6.2),
    layout=7.0,
    window_start=8.0,
    memory=(9.1, 9.2, 9.3, 9.4, 9.5, 9.6, 9.7),
    half_memory=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    fused_memory=(0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 0.87),
    fused_start=0.9,
)
REACHED = DeviceEfficiency(compute=0.5, tensor=0.25, memory=0.8, start_s=1e-3)


def table(**columns: object) -> OpTable:
    """One op; by default it adds numbers."""
    plain = {
        "moved": 100.0,
        "sides": (0.0,) * 4,
        "half": False,
        "bfloat16": False,
        "no_tf32": False,
        "low": 0,
        "product_kind": MATMUL,
        "gradient": 0,
        "saved_sides": (0.0,) * 4,
        "memory_kind": ELEMENTWISE,
        "flops": 0.0,
        "channel_elements": 0.0,
        "inner_kernels": 0.0,
    }
    facts = OpFacts(kinds=("add",), groups=np.zeros(1, np.int64), values=np.zeros((1, len(FACTS))),
                    picks=np.zeros((1, len(PICKS))), turns=np.zeros((1, len(TURNS))))  # fmt: skip
    return OpTable(
        facts=facts, **{name: np.array([value]) for name, value in {**plain, **columns}.items()}
    )


def seconds(
    ops: OpTable,
    *,
    product_s: float = 0.0,
    saved_s: float = np.inf,
    memory_s: float = 0.0,
    tensor: bool = False,
    fused: bool = False,
) -> tuple[float, float]:
    """Seconds of the kernel and of its start, with these times at the peaks."""
    units = UnitTimes(
        table=ops,
        product_s=np.array([product_s]),
        saved_s=np.array([saved_s]),
        memory_s=np.array([memory_s]),
        tensor=np.array([tensor]),
    )
    kernel_s, start_s = units.seconds(KERNELS, REACHED, fused)
    return float(kernel_s[0]), float(start_s[0])


def test_a_product_takes_its_compute_or_its_bytes_whichever_is_longer() -> None:
    ops = table(memory_kind=PRODUCT)
    assert seconds(ops, product_s=2.0, memory_s=0.01)[0] == pytest.approx(2.0 / 0.5 * 1.7)
    assert seconds(ops, product_s=2.0, memory_s=3.0)[0] == pytest.approx(3.0 / 0.8 * 9.7)


@pytest.mark.parametrize(("gradient", "factor"), [(0, 1.0), (1, 3.1), (2, 3.2)])
def test_a_convolution_and_its_gradients_have_factors_of_their_own(
    gradient: int, factor: float
) -> None:
    ops = table(product_kind=POINTWISE, gradient=gradient, memory_kind=PRODUCT)
    assert seconds(ops, product_s=2.0) == pytest.approx((2.0 / 0.5 * 1.1 * factor, 8e-3))


@pytest.mark.parametrize(("gradient", "factor"), [(0, 1.0), (1, 4.1 * 3.1), (2, 4.2 * 3.2)])
def test_on_tensor_cores_the_layout_is_turned_unless_a_compiler_chose_it(
    gradient: int, factor: float
) -> None:
    ops = table(product_kind=WINDOW3, gradient=gradient, memory_kind=PRODUCT)
    compute_s = 2.0 / 0.25 * 2.2 * 1.2 * factor
    turned, _ = seconds(ops, product_s=2.0, memory_s=0.1, tensor=True)
    assert turned == pytest.approx(compute_s + 0.1 / 0.8 * 7.0)
    assert seconds(ops, product_s=2.0, memory_s=0.1, tensor=True, fused=True)[0] == pytest.approx(
        compute_s
    )
    matmul = table(memory_kind=PRODUCT)
    kernel_s, _ = seconds(matmul, product_s=2.0, memory_s=0.1, tensor=True)
    assert kernel_s == pytest.approx(2.0 / 0.25 * 2.7 * 1.7)


@pytest.mark.parametrize(("kind", "saving", "traffic"), [(WINDOW3, 5.1, 6.1), (WINDOW5, 5.2, 6.2)])
def test_saved_multiplications_cost_more_traffic(kind: int, saving: float, traffic: float) -> None:
    """Taken where that is faster, of the gradient by the input here."""
    ops = table(product_kind=kind, gradient=1, memory_kind=PRODUCT)
    memory_s = 0.01 / 0.8 * 9.7
    kernel_s, _ = seconds(ops, product_s=100.0, saved_s=2.0, memory_s=0.01)
    assert kernel_s == pytest.approx(2.0 * 3.1 / 0.5 * saving + memory_s * traffic)
    kernel_s, _ = seconds(ops, product_s=0.1, saved_s=2.0, memory_s=0.01)
    assert kernel_s == pytest.approx(0.1 * 3.1 / 0.5 * KERNELS.product[kind])


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", [ELEMENTWISE, POOL, BIAS_GRADIENT])
def test_what_moves_memory_has_factors_of_precision_and_fusing(
    kind: int, half: bool, fused: bool
) -> None:
    """But a compiler joins the sums over biases, in any precision."""
    wanted = 2.0 / 0.8 * KERNELS.memory[kind]
    wanted *= KERNELS.fused_memory[kind] if fused else 1.0
    wanted *= KERNELS.half_memory[kind] if half and not (fused and kind == BIAS_GRADIENT) else 1.0
    start_s = 1e-3 * (8.0 if kind == POOL else 1.0) * (0.9 if fused else 1.0)
    kernel_and_start = seconds(table(half=half, memory_kind=kind), memory_s=2.0, fused=fused)
    assert kernel_and_start == pytest.approx((wanted, start_s))


def test_what_moves_nothing_takes_no_time() -> None:
    assert seconds(table(moved=0.0), product_s=2.0, memory_s=1.0) == (0.0, 0.0)
    assert seconds(table(moved=1.0), memory_s=1.0) == pytest.approx((9.1 / 0.8, 1e-3))


# A device whose memory is so fast that adding up parts of a product takes no time.
P100 = device_named("P100")
FAST = replace(P100, facts={**P100.facts, "bytes_per_s": 1e30, "fp32_flops": 1e12})


def product_s(multiprocessors: int, *sides: float, bytes_per_s: float = 1e30) -> float:
    """Seconds of a product, sides m, n, k and count, at the peak of 10^12 FLOP/s."""
    changed = {"multiprocessors": multiprocessors, "bytes_per_s": bytes_per_s}
    device = replace(FAST, facts={**FAST.facts, **changed})
    return float(unit_times(table(sides=sides), device).product_s[0])


@pytest.mark.parametrize(
    ("m", "n", "share"),
    [(32, 32, 0.5), (64, 32, 0.7), (64, 64, 0.85), (128, 64, 0.95), (128, 128, 1.0)],
)
def test_a_product_of_one_tile(m: int, n: int, share: float) -> None:
    """2 m n (k + 40) FLOPs at the share of the peak that the tile reaches."""
    assert product_s(1, m, n, 1000, 1) == pytest.approx(2 * m * n * 1040 / (share * 1e12))


@pytest.mark.parametrize("splits", [1, 2, 4, 8, 16, 32])
def test_a_long_side_is_split_over_multiprocessors(splits: int) -> None:
    """As many parts as there are multiprocessors, each of which has its ramp."""
    wanted = 2 * 32 * 32 * (32_000 / splits + 40) / (0.5 * 1e12 / splits)
    assert product_s(splits, 32, 32, 32_000, 1) == pytest.approx(wanted)


def test_parts_are_added_up_through_memory() -> None:
    """Two parts of four matrices of 32 x 32 numbers of 4 bytes; and none is too many."""
    computed_s = 2 * 32 * 32 * (16_000 + 40) / (0.5 * 1e12 / 8)
    added_s = 2 * 32 * 32 * 4 * 4 / 1e9
    found_s = product_s(8, 32, 32, 32_000, 4, bytes_per_s=1e9)
    assert found_s == pytest.approx(computed_s + added_s)
    whole_s = 2 * 32 * 32 * (32_000 + 40) / (0.5 * 1e12 / 8)
    assert product_s(8, 32, 32, 32_000, 4, bytes_per_s=1e3) == pytest.approx(whole_s)


def test_the_last_wave_may_be_half_empty() -> None:
    """Three products of a tile each on two multiprocessors take two waves; so do four."""

    def unsplit_s(*sides: float) -> float:
        return product_s(2, *sides, bytes_per_s=1.0)  # adding up parts would take for ever

    wave_s = 2 * 32 * 32 * 1040 / (0.5 * 1e12 / 2)
    for count in (3, 4):
        assert unsplit_s(32, 32, 1000, count) == pytest.approx(2 * wave_s)
    assert unsplit_s(96, 32, 1000, 1) == pytest.approx(2 * 64 * 32 * 1040 / (0.7 * 1e12 / 2))
    assert unsplit_s(32, 96, 1000, 1) == pytest.approx(2 * wave_s)
    # Split in two they fill three waves, with a ramp in each.
    assert product_s(2, 32, 32, 1000, 3) == pytest.approx(3 * wave_s * 540 / 1040)


SQUARE = (4096.0, 4096.0, 4096.0, 1.0)
ODD = (4096.0, 4096.0, 4095.0, 1.0)


def test_peaks_are_those_of_the_precision_and_of_the_device() -> None:
    """Half precision on tensor cores if all sides fit; TF32 where there is such a format."""
    for name, tf32 in (("V100", False), ("A100", True), ("P100", False)):
        device = device_named(name)
        single = unit_times(table(sides=SQUARE, saved_sides=SQUARE), device)
        assert single.tensor.tolist() == [tf32] == [device.tf32]
        assert np.isinf(single.saved_s[0]) == tf32
        at_peak = 2 * 4096**3 / device.matrix_flops
        assert single.product_s[0] == pytest.approx(at_peak, rel=0.25)
        half = unit_times(table(sides=SQUARE, half=True, saved_sides=SQUARE), device)
        assert half.tensor.tolist() == [device.tensor_cores]
        assert half.product_s[0] / single.product_s[0] == pytest.approx(
            device.matrix_flops / device.half_flops, rel=0.05
        )
        odd = unit_times(table(sides=ODD, half=True), device)
        fills_up = device.tensor_cores and name != "V100"
        assert odd.tensor.tolist() == [fills_up]
        slower = 1.0 if name != "V100" else device.half_flops / device.fp32_flops
        assert odd.product_s[0] / half.product_s[0] == pytest.approx(slower, rel=0.05)


def test_what_is_saved_runs_on_plain_cores() -> None:
    device = device_named("V100")
    times = unit_times(table(sides=SQUARE, saved_sides=SQUARE), device)
    assert times.saved_s[0] == pytest.approx(times.product_s[0])
    half = unit_times(table(sides=ODD, saved_sides=SQUARE, half=True), device)
    assert half.saved_s[0] == pytest.approx(times.saved_s[0])
    pascal = device_named("P100")
    half = unit_times(table(sides=ODD, saved_sides=SQUARE, half=True), pascal)
    single = unit_times(table(sides=ODD, saved_sides=SQUARE), pascal)
    assert half.saved_s[0] / single.saved_s[0] == pytest.approx(
        pascal.fp32_flops / pascal.half_flops, rel=0.05
    )
    none = unit_times(table(), device)
    assert (none.product_s[0], none.saved_s[0]) == (0.0, np.inf)
    assert none.memory_s[0] == pytest.approx(100 / device.bytes_per_s)
    assert not unit_times(table(half=True), device).tensor[0]


def test_memory_is_seen_in_use_for_its_bytes_and_no_longer_than_the_kernel() -> None:
    device = device_named("V100")
    moved_s = 9e9 / device.bytes_per_s / 0.8
    ops = table(moved=9e9, sides=(4e4, 4e4, 4e4, 1.0), memory_kind=PRODUCT)
    for activity in (1.0, 1.5):
        efficiency = Efficiency(kernels=KERNELS, device=REACHED, memory_activity=activity)
        ((total_s, kernel_s, memory_s),) = kernel_times(ops, device, efficiency).tolist()
        assert total_s == pytest.approx(kernel_s + 1e-3)
        assert memory_s == pytest.approx(moved_s * 9.7 * activity)
        assert kernel_s > memory_s
        ((_, kernel_s, memory_s),) = kernel_times(table(moved=9e9), device, efficiency).tolist()
        assert memory_s == kernel_s == pytest.approx(moved_s * 9.1)


def test_an_op_of_a_graph_counts_as_often_as_it_runs() -> None:
    """A product, whose start, kernel and memory take unlike times."""
    device = device_named("V100")
    efficiency = Efficiency(kernels=KERNELS, device=REACHED)
    product = table(moved=9e9, sides=(4e4, 4e4, 4e4, 1.0), memory_kind=PRODUCT)
    single = kernel_times(product, device, efficiency)[0]
    assert len(set(single.tolist())) == 3
    times = op_times(product, np.array([0, 0, 0]), np.array([1, 3, 0]), device, efficiency)
    for column, values in enumerate((times.duration_s, times.busy_s, times.memory_s)):
        assert values.tolist() == pytest.approx([single[column], 3 * single[column], 0.0])


def test_odd_numbers_are_refused() -> None:
    good = {"compute": 0.5, "tensor": 0.25, "memory": 0.8, "start_s": 1e-3}
    assert from_json(DeviceEfficiency, good, where="device") == REACHED
    for odd in (0.0, -1.0, True, "0.5", float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="memory"):
            from_json(DeviceEfficiency, {**good, "memory": odd}, where="device")
    with pytest.raises(ConfigError, match="more"):
        from_json(DeviceEfficiency, {**good, "more": 1.0}, where="device")
    with pytest.raises(ConfigError, match="compute"):
        few = {n: v for n, v in good.items() if n != "compute"}
        from_json(DeviceEfficiency, few, where="device")
    for name, length in (("product", 7), ("gradient", 2), ("memory", 7), ("half_memory", 7)):
        with pytest.raises(ConfigError, match=f"efficiency {name} needs {length} numbers, got 3"):
            replace(KERNELS, **{name: (1.0, 1.0, 1.0)})


def test_the_fastest_tile_is_taken_for_sides_around_those_of_tiles() -> None:
    """One row or column more than a tile has needs another one, or a larger one."""
    tiles = {
        (256, 128): 1.0, (128, 128): 1.0, (128, 64): 0.95, (64, 64): 0.85, (64, 32): 0.7,
        (32, 32): 0.5,
    }  # fmt: skip
    for rows, columns in tiles:
        for m in (rows - 1, rows, rows + 1):
            for n in (columns - 1, columns, columns + 1):
                work = [
                    -(-m // r) * -(-n // c) * 2 * r * c * 1040 / share
                    for (r, c), share in tiles.items()
                ]
                found_s = product_s(1, m, n, 1000, 1, bytes_per_s=1.0)
                assert found_s == pytest.approx(min(work) / 1e12)


def test_by_default_memory_is_in_use_for_its_bytes_and_nothing_is_fused() -> None:
    plain = Efficiency(kernels=KERNELS, device=REACHED)
    assert plain == Efficiency(kernels=KERNELS, device=REACHED, fused=False, memory_activity=1.0)
