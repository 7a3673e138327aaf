"""Formats of products that a device's matrix units have, and those that they do not have."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driple.graph.torch.step import StepOptions, traced_step
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob


def seconds(precision: str, device: str) -> float:
    """A step of large square products."""
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(4)))
        inputs = torch.zeros(4096, 4096)
    options = StepOptions(precision=precision)  # type: ignore[arg-type]
    graph = traced_step(model, inputs, lambda outputs: outputs.sum(), options)
    times = PreparedJob(graph).times(shipped_calibration().device(device))
    return float(times.duration_s.sum())


@pytest.mark.parametrize("device", ["V100", "T4"])
def test_bfloat16_is_slow_where_tensor_cores_do_not_have_it(device: str) -> None:
    """Volta and Turing compute it on the plain cores, like single precision."""
    assert seconds("bf16", device) > 3 * seconds("fp16", device)
    assert seconds("amp-bf16", device) > 2.5 * seconds("amp-fp16", device)
    assert seconds("bf16", device) == pytest.approx(seconds("fp32", device), rel=0.1)


def test_formats_of_an_a100_are_as_fast_as_its_tensor_cores() -> None:
    """312 TFLOP/s in half precision, 156 in TF32 if it is allowed, 19.5 else.

    The fit has TF32 kernels further from their peak than half-precision ones.
    """
    half, also, tf32, single = (seconds(one, "A100") for one in ("bf16", "fp16", "tf32", "fp32"))
    assert half == also
    assert 1.5 < tf32 / half < 3
    assert single > 3 * tf32


def test_a_convolution_under_autocast_is_priced_in_half_precision() -> None:
    """ResNet-50's convolutions on a V100: tensor cores make it 1.5 times as fast and more."""
    from driple.jobs.pytorch.workloads import pytorch_workload_named

    workload = pytorch_workload_named("resnet50")
    with torch.device("meta"):
        model, labels = workload.build(), torch.zeros(64, dtype=torch.int64)
        images = torch.zeros(64, 3, 224, 224)
    times_s = []
    for precision in ("fp32", "amp-fp16"):
        graph = traced_step(
            model, images, lambda outputs: workload.loss()(outputs, labels),
            StepOptions(precision=precision),
        )  # type: ignore[arg-type]  # fmt: skip
        times = PreparedJob(graph).times(shipped_calibration().device("V100"))
        times_s.append(float(times.duration_s.sum()))
    assert times_s[0] > 1.5 * times_s[1]
