"""What a kernel takes besides what it computes and moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.simulate.calibration import CoreModel, GpuModel, shipped_calibration
from driple.simulate.kernels import Efficiency, kernel_times
from driple.simulate.optable import OpTable
from tests.simulate.core_model import DEVICE, KERNELS
from tests.simulate.test_optable import HALF, op

IMAGE = (8, 14, 14, 64)

TABLE = OpTable.of(
    [
        op("Conv2D", IMAGE, (3, 3, 64, 64), out=IMAGE),
        op("MaxPool", IMAGE, out=IMAGE),
        op("MatMul", (32, 64), (64, 10), out=(32, 10)),
        op("Relu", IMAGE, out=IMAGE),
    ]
)


def test_only_windows_start_slower() -> None:
    device = device_named("V100")
    plain, slow = (
        kernel_times(
            TABLE, device, Efficiency(kernels=replace(KERNELS, window_start=factor), device=DEVICE)
        )
        for factor in (1.0, 10.0)
    )
    more_s = [9 * DEVICE.start_s] * 2 + [0.0] * 2
    np.testing.assert_allclose((slow - plain)[:, 0], more_s, atol=1e-12)
    np.testing.assert_array_equal(slow[:, 1:], plain[:, 1:])


def test_windows_start_slower_on_cpus_alone() -> None:
    """A launch is a launch on a GPU; a CPU's library chooses and prepares such a kernel."""
    cpu, gpu = (shipped_calibration(Setting.parse(one)).model for one in ("CPU-P1w2", "V100"))
    assert isinstance(cpu, CoreModel)
    assert cpu.kernels.window_start > 10
    assert isinstance(gpu, GpuModel)  # one `start_s` for all kernels


def test_tensor_cores_take_multiples_of_eight_where_libraries_do_not_fill_up() -> None:
    """A product of 4,095 rows is one on plain cores on a V100; on an A100 it is filled up."""
    table = OpTable.of(
        [
            op("MatMul", (n, n), (n, n), out=(n, n), dtype=HALF)  # the same work but for the side
            for n in (4096, 4095)
        ]
    )
    efficiency = Efficiency(kernels=KERNELS, device=DEVICE)
    for name, slower in (("V100", 3.0), ("T4", 3.0), ("A100", 0.0), ("P100", 0.0)):
        even, odd = kernel_times(table, device_named(name), efficiency)[:, 1]
        assert odd > slower * even
        assert slower or odd < 1.01 * even


def test_pixels_need_no_multiples() -> None:
    """Only the channels of a convolution count: 7 x 7 images of 64 channels run on tensor cores."""
    image, few = (3, 7, 7, 64), (3, 7, 7, 3)
    table = OpTable.of(
        [
            op("Conv2D", image, (3, 3, 64, 64), out=image, dtype=HALF),
            op("Conv2D", few, (3, 3, 3, 64), out=image, dtype=HALF),
        ]
    )
    assert table.fits_tensor_cores.tolist() == [True, False]
