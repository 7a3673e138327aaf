"""The errors that a calibration states, and what the shipped one was fitted to."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

from driple.calibration.published import PublishedRun, read_published
from driple.calibration.validate import HeldOut, HeldOutPrediction

ROOT = Path(__file__).parents[2]


def run(kind: str, *, overlapped: bool = True) -> PublishedRun:
    """One second on two devices."""
    return PublishedRun(
        source="made up", kind=kind, model="resnet50", batch_size=32, half=False, fused=False,
        devices=("V100", "V100"), num_servers=0, gpus_per_machine=2, link="PCIe3",
        overlapped=overlapped, seconds=1.0,
    )  # type: ignore[arg-type]  # fmt: skip


def prediction(
    simulated_s: float, held_out: HeldOut, kind: str = "ring", *, overlapped: bool = True
) -> HeldOutPrediction:
    """A run that takes a second."""
    return HeldOutPrediction(
        run=run(kind, overlapped=overlapped),
        held_out=held_out,
        name="V100" if held_out == "device" else "resnet50",
        simulated_s=simulated_s,
        roofline_s=1.0,
    )


def test_errors_are_of_held_out_runs(program: ModuleType) -> None:
    """Model and device held out apart; rings that send gradients afterwards do not count."""
    found = program.errors_of(
        [
            prediction(1.1, "model"),
            prediction(1.3, "model"),
            prediction(9.0, "nothing"),
            prediction(9.0, "model", overlapped=False),
            prediction(9.0, "model", "servers"),
            prediction(0.5, "device"),
        ],
        "ring",
    )
    assert (found.rows, found.median_pct) == (2, 20.0)
    assert found.devices == ("V100",)
    assert (found.new_device.rows, found.new_device.median_pct) == (1, 50.0)


def test_the_shipped_calibration_is_of_the_shipped_rows(program: ModuleType) -> None:
    """Made by this program from the tables as they are."""
    about = json.loads(program.TARGET.read_bytes())["about"]
    assert about["rows"] == len(read_published(program.TABLES))
    assert {item.source for item in read_published(program.TABLES)} <= set(about["sources"])


def test_memory_is_as_active_as_nvml_saw_it(program: ModuleType) -> None:
    """The shipped factor is within the bounds of its fit, and not at one of them."""
    shipped = json.loads(program.TARGET.read_bytes())
    assert 1.0 < shipped["memory_activity"] < 5.0
