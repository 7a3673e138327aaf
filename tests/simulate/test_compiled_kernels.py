"""Kernels of steps that `torch.compile` made: classes of ops, and factors on their seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES
from driple.errors import ConfigError
from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import shipped_calibration
from driple.simulate.compiled_kernels import COMPILED_CLASSES, CompiledKernels, compiled_classes
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.optable import OpTable

HALF = 19
IMAGES, FILTER = Tensor((8, 64, 16, 16), HALF), Tensor((3, 3, 64, 64), HALF, True)
CONVOLUTION = OpSignature("conv", (IMAGES, FILTER), (IMAGES,))
LAST = replace(CONVOLUTION, numbers=(CHANNELS_LAST,))
SUM = OpSignature("add", (IMAGES, IMAGES), (IMAGES,))


def factors(**of: float) -> CompiledKernels:
    times = np.array([of.get(name, 1.0) for name in COMPILED_CLASSES])
    return CompiledKernels(classes=COMPILED_CLASSES, times=times)


def test_convolutions_are_told_apart_by_layout() -> None:
    facts = OpTable.of([CONVOLUTION, LAST, SUM]).facts
    assert [COMPILED_CLASSES[place] for place in compiled_classes(facts)] == [
        "convolution", "convolution_last", "map",
    ]  # fmt: skip


def test_a_factor_of_two_halves_the_shares_of_its_class_when_compiled() -> None:
    model = shipped_calibration().model
    assert isinstance(model, GpuModel)
    facts = OpTable.of([CONVOLUTION, SUM]).facts
    plain, _ = replace(model, compiled=None).of(DEVICES["H100"], 1.0)
    slow, _ = replace(model, compiled=factors(map=2.0)).of(DEVICES["H100"], 1.0)
    eager, compiled = Runtime(), Runtime(compiled=True)
    assert np.array_equal(slow.kernel_shares(facts, eager), plain.kernel_shares(facts, eager))
    ratio = plain.kernel_shares(facts, compiled) / slow.kernel_shares(facts, compiled)
    assert ratio == pytest.approx(np.array([[1.0, 1.0], [2.0, 2.0]]))


def test_starts_have_a_factor_of_their_own() -> None:
    model = shipped_calibration().model
    assert isinstance(model, GpuModel)
    table = OpTable.of([SUM])
    plain, _ = replace(model, compiled=None).of(DEVICES["H100"], 1.0)
    fast, _ = replace(model, compiled=factors(start=0.5)).of(DEVICES["H100"], 1.0)
    for runtime, wanted in ((Runtime(), 1.0), (Runtime(compiled=True), 0.5)):
        starts = [one.op_starts(table, table.facts, runtime).start_s for one in (fast, plain)]
        assert starts[0] / starts[1] == pytest.approx(wanted)


def test_factors_of_other_classes_are_refused() -> None:
    with pytest.raises(ConfigError, match="another version"):
        CompiledKernels(classes=COMPILED_CLASSES[:-1], times=np.ones(len(COMPILED_CLASSES) - 1))
    with pytest.raises(ConfigError, match="above 0"):
        factors(map=0.0)
