"""Baselines by hand, and that none sees a measured time of the part that it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.work import RowWork
from scripts.entries.baselines import ENTERED, data_sheet, flops_ratio, predictions_of


def work(compute_s: list[float], memory_s: list[float], link_s: list[float]) -> RowWork:
    """A row of one kind for each of the times at peak."""
    count = len(compute_s)
    return RowWork(
        starts=np.arange(count, dtype=np.int64),
        lengths=np.ones(count, dtype=np.int64),
        compute_s=np.array(compute_s),
        memory_s=np.array(memory_s),
        kernels=np.ones(count),
        link_s=np.array(link_s),
        features=np.log(np.stack([compute_s, memory_s], axis=1)),
        names=("compute_s", "memory_s"),
    )


def run(name: str, device: str, step_s: float, precision: str = "fp16") -> MeasuredRun:
    return MeasuredRun(
        id=name, job=name, family=name, setting=f"1x{device}", precision=precision,
        source=f"of {name}", step_s=step_s,
    )  # fmt: skip


def test_a_data_sheet_gives_the_longest_of_compute_memory_and_link() -> None:
    some = work([3.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.0, 0.0, 5.0])
    assert data_sheet(some, [], some, []).tolist() == [3.0, 2.0, 5.0]


def test_a_ratio_of_flops_scales_the_nearest_run_of_the_same_device() -> None:
    """Of 1.0 and 4.0 at peak on the A100, 4.0 is nearer to 3.0; the H100's 3.0 does not count."""
    rows = [run("a", "A100", 2.0), run("b", "A100", 10.0), run("c", "H100", 99.0)]
    train = work([1.0, 4.0, 3.0], [1.0] * 3, [0.0] * 3)
    wanted = [run("d", "A100", 0.0), run("e", "V100", 0.0), run("f", "A100", 0.0, "fp32")]
    test = work([3.0, 1.5, 6.0], [1.0] * 3, [0.0] * 3)
    assert flops_ratio(train, rows, test, wanted).tolist() == pytest.approx(
        [
            10.0 * 3 / 4,
            2.0 * 1.5 / 1,  # no V100 is known: any device in that precision
            10.0 * 6 / 4,  # nor is its precision
        ]
    )


@pytest.mark.parametrize("name", ENTERED)
def test_a_prediction_does_not_change_with_the_measured_time_of_its_own_part(name: str) -> None:
    rows = [run(str(i), ("A100", "H100")[i % 2], 1.0 + i / 7) for i in range(24)]
    some = work([0.5 + i / 10 for i in range(24)], [0.3] * 24, [0.0] * 24)
    folds = {str(i): i % 3 for i in range(24)}
    before = predictions_of(ENTERED[name], rows, some, folds).by_split
    assert len(before) == 3 * len(rows)
    other = [replace(row, step_s=100.0) if row.id == "0" else row for row in rows]
    after = predictions_of(ENTERED[name], other, some, folds).by_split
    for split in ("family", "device", "source"):
        assert after[split, "0"] == before[split, "0"]
    known = [replace(row, step_s=3 * row.step_s) if row.id != "0" else row for row in rows]
    learned = predictions_of(ENTERED[name], known, some, folds).by_split
    changed = learned["family", "0"] != before["family", "0"]
    assert changed == (name != "data-sheet")
