"""Runs that stated errors come from: only predictions of a fit that had not seen the run."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from driple.runs.measured_run import MeasuredRun
from driple.runs.tensorflow_runs import Kind, TensorFlowRun
from driple.runs.users_table import read_runs
from driple.runs.validation.held_out import HeldOut, HeldOutPrediction
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.batched import BatchedGraph
from scripts.fits.checked import checked_rows, checked_runs
from scripts.fits.refit import asked_s, simulated_s
from tests.simulate.jobs import net

GRAPHS = {("resnet50", False): BatchedGraph.of((16, net(16)), (32, net(32)))}


def run(kind: Kind, *, overlapped: bool = True) -> TensorFlowRun:
    """One second on two devices."""
    return TensorFlowRun(
        source="made up", kind=kind, job="resnet50", batch_size=32, precision="fp32",
        devices=("V100", "V100"), num_servers=0, per_machine=2, link="PCIe3",
        overlapped=overlapped, step_s=1.0,
    )  # fmt: skip


def prediction(
    simulated_s: float,
    held_out: HeldOut,
    kind: Kind = "ring",
    *,
    overlapped: bool = True,
    asked_s: float | None = None,
) -> HeldOutPrediction:
    """A run that takes a second."""
    return HeldOutPrediction(
        run=run(kind, overlapped=overlapped),
        held_out=held_out,
        name="V100" if held_out == "device" else "resnet50",
        simulated_s=simulated_s,
        roofline_s=1.0,
        asked_s=asked_s,
    )


def test_errors_are_of_held_out_runs() -> None:
    """Model and device held out apart; a ring that nobody was asked for does not count."""
    runs = checked_runs(
        [
            prediction(1.1, "model"),
            prediction(1.3, "model"),
            prediction(9.0, "nothing"),
            prediction(9.0, "model", overlapped=False),
            prediction(9.0, "model", "servers"),
            prediction(0.5, "device"),
        ],
        GRAPHS,
    )
    rings = [one for one in runs if one.kind == "ring"]
    ratios = {
        held_out: [exp(one.log_ratio) for one in rings if one.held_out == held_out]
        for held_out in ("model", "device", "nothing")
    }
    assert ratios["model"] == pytest.approx([1.1, 1.3])
    assert ratios["device"] == pytest.approx([0.5])
    assert not ratios["nothing"]
    assert {one.devices for one in rings} == {("V100",)}
    assert [exp(one.log_ratio) for one in runs if one.kind == "servers"] == pytest.approx([9.0])


def test_a_ring_that_sends_gradients_afterwards_counts_with_the_answer_a_user_gets() -> None:
    """Not with the simulation of its own program, which no user asks for."""
    runs = checked_runs([prediction(9.0, "model", overlapped=False, asked_s=0.7)], GRAPHS)
    assert [exp(one.log_ratio) for one in runs] == pytest.approx([0.7])


def test_a_ring_is_asked_for_with_its_gradients_overlapped_and_whole() -> None:
    """As every simulated ring is; a run that is asked for as it was run is simulated once."""
    calibration = shipped_calibration()
    some = {name: run("ring", overlapped=name) for name in (True, False)}
    assert asked_s(some[True], GRAPHS, calibration) is None
    asked = asked_s(some[False], GRAPHS, calibration)
    assert asked == pytest.approx(simulated_s(some[True], GRAPHS, calibration))
    assert asked < simulated_s(some[False], GRAPHS, calibration)


class Nets:
    """Steps of one made-up network."""

    def lacks(self, row: MeasuredRun) -> str:
        return ""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        return PreparedJob(net(row.batch_size or 1))


def test_a_row_is_checked_without_its_family_its_size_and_its_device(tmp_path: Path) -> None:
    """Rows between the ends of their family have no prediction without their size."""
    file = tmp_path / "rows.csv"
    file.write_text("id,job,setting,seconds,batch_size\nlong,a,1xV100,1,8\nusual,a,1xV100,1,8\n")
    predictions = Predictions({
        ("family", "long"): RowPrediction(1.1), ("size", "long"): RowPrediction(1.2),
        ("device", "long"): RowPrediction(1.3), ("family", "usual"): RowPrediction(1.4),
        ("source", "long"): RowPrediction(9.0),
    })  # fmt: skip
    runs = checked_rows(read_runs(file), predictions, Nets(), ends={"long": "largest"})
    ratios = {(one.held_out, one.end): exp(one.log_ratio) for one in runs}
    assert ratios == pytest.approx({
        ("model", "largest"): 1.1, ("size", "largest"): 1.2, ("device", "largest"): 1.3,
        ("model", ""): 1.4,
    })  # fmt: skip
