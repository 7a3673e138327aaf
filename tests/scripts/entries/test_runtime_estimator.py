"""PyTorch's estimator is asked with peaks of data sheets; rows that it does not do are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import device_named
from driple.runs.measured_run import MeasuredRun

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from scripts.entries.runtime_estimator import (  # noqa: E402
    MANY,
    DeviceEstimator,
    Peaks,
    in_turns,
    refusal,
    step_ms,
)

RUN = MeasuredRun(
    id="a", job="own:dlrm", setting="1xA100", batch_size=64, precision="fp32", family="dlrm",
    optimizer="sgd",
)  # fmt: skip


def test_a_product_takes_its_flops_or_its_bytes_at_the_peak_of_each_device() -> None:
    """2 n^3 FLOPs count as n^3, at 75 % of the peak, as torch.utils._runtime_estimation has it."""
    size = 4096
    a100 = device_named("A100")
    places = [Peaks(a100, False), Peaks(a100, True), Peaks(device_named("V100-SXM2"), False)]
    estimator = DeviceEstimator(places)
    with FakeTensorMode(), estimator.estimating():
        left = torch.empty(size, size)
        torch.mm(left, left)
    for peaks, milliseconds in zip(places, estimator.milliseconds, strict=True):
        flops_s = size**3 / (0.75 * 1e12 * peaks.tera_flops(torch.float32))
        bytes_s = 3 * 4 * size**2 / peaks.device.bytes_per_s
        # The empty tensor is an op of the estimator, too: it writes its bytes.
        made_s = 4 * size**2 / peaks.device.bytes_per_s
        assert milliseconds == pytest.approx(1e3 * (max(flops_s, bytes_s) + made_s), rel=1e-6)
    assert not torch.cuda.is_available()


def test_a_step_of_two_passes_is_longer_than_one_but_for_the_update() -> None:
    peaks = [Peaks(device_named("A100"), False)]
    (single,), (double,) = (
        step_ms(replace(RUN, grad_accumulation=passes), peaks) for passes in (1, 2)
    )
    assert single < double < 2 * single


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"setting": "8xA100"}, "several devices"),
        ({"compiled": True}, "compiled"),
        ({"activation_checkpointing": "full"}, "checkpointing"),
        ({}, ""),
    ],
)
def test_rows_that_it_does_not_do_are_refused(change: dict[str, object], words: str) -> None:
    why = refusal(replace(RUN, **change))  # type: ignore[arg-type]  # fields by name
    assert (words in why) if words else why == ""


def test_many_rows_come_first_then_the_largest_group_of_each_family() -> None:
    groups = {
        "many": [RUN] * MANY,
        "as many": [RUN] * MANY,
        "one": [RUN],
        "three": [RUN] * 3,
        "two": [RUN] * 2,
        "other": [replace(RUN, family="bert")],
    }
    assert in_turns(groups) == ["as many", "many", "other", "three", "two", "one"]
