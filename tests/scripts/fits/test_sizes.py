"""A size of a known family is new to its fit: the largest and the smallest are left out in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.runs.measured_run import MeasuredRun
from driple.runs.users_table import read_runs
from driple.runs.validation.predictions import (
    Predictions,
    RowPrediction,
    read_predictions,
)
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.family_sizes import FamilySizes, work_of_sample
from scripts.fits.gpu_fits import LeftOut, Tag, left_out_of
from scripts.fits.sizes import parts_of_sizes, sizes_of
from scripts.fits.writing import write_predictions
from tests.simulate.jobs import net

DEPTHS = {"tiny": 1, "small": 3, "middle": 8, "big": 20, "huge": 30, "lone": 4}
STEPS = {**DEPTHS, "huge+lora": 8}  # an adapter has fewer gradients to compute
FAMILIES = {**dict.fromkeys(STEPS, "net"), "lone": "lone"}
FOLDS = {"net": 3, "lone": 4}


class Nets:
    """Steps of made-up networks, by name and batch size."""

    def lacks(self, row: MeasuredRun) -> str:
        return ""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        return PreparedJob(net(row.batch_size or 1, depth=STEPS[row.job]))


def some_rows(tmp_path: Path) -> list[MeasuredRun]:
    """Each net at two batch sizes, and an adapter of one of them."""
    lines = [
        f"{job}-{batch},{job},1xV100,1,{FAMILIES[job]},{batch}"
        for job in STEPS
        for batch in (8, 32)
    ]
    file = tmp_path / "rows.csv"
    file.write_text("id,job,setting,seconds,family,batch_size\n" + "\n".join(lines) + "\n")
    return read_runs(file)


def test_ends_of_families_by_hand() -> None:
    """Within a factor of two, sizes are one; an end reaches no further than the other task's."""
    sizes = FamilySizes.of([
        *(("wide", "train", work) for work in (1.0, 1.9, 3.0, 5.1, 10.0)),
        *(("narrow", "train", work) for work in (1.0, 1.9)),
        *(("close", "train", work) for work in (1.0, 1.5, 3.0)),
        *(("both", "train", work) for work in (2.0, 20.0)),
        *(("both", "forward", work) for work in (1.0, 100.0)),
    ])  # fmt: skip
    ends = [sizes.end_of("wide", work) for work in (1.0, 1.9, 3.0, 5.1, 10.0)]
    assert ends == ["smallest", "smallest", "", "largest", "largest"]
    assert {sizes.end_of("narrow", work) for work in (1.0, 1.9)} == {""}
    # Ends do not overlap where sizes are within a factor of four: the middle parts them.
    assert [sizes.end_of("close", work) for work in (1.0, 1.5, 3.0)] == [
        "smallest", "smallest", "largest",
    ]  # fmt: skip
    # 20 is the largest that was trained, so forward passes of 15 are no smaller size than that.
    assert [sizes.end_of("both", work) for work in (1.0, 3.9, 5.0, 15.0, 100.0)] == [
        "smallest", "smallest", "", "largest", "largest",
    ]  # fmt: skip
    assert sizes.end_of("unheard of", 5.0) == ""


def test_work_is_that_of_a_forward_pass_of_one_sample() -> None:
    shallow, deep = (
        work_of_sample(PreparedJob(net(8, depth=depth)).kinds, samples=8, task="forward")
        for depth in (2, 4)
    )
    large = work_of_sample(PreparedJob(net(32, depth=2)).kinds, samples=32, task="train")
    assert large == pytest.approx(shallow / 3)
    assert deep > 1.9 * shallow


def test_the_largest_size_is_left_out_and_only_that(tmp_path: Path) -> None:
    rows = some_rows(tmp_path)
    sizes = sizes_of(rows, Nets())
    parts = {part.name: part for part in parts_of_sizes(rows, sizes.ends, FOLDS)}
    assert set(parts) == {"sizes 3", "sizes 8"}  # of fold 3: its largest, and its smallest

    def jobs(places: tuple[int, ...]) -> set[str]:
        return {rows[i].job for i in places}

    large, small = parts["sizes 3"], parts["sizes 8"]
    assert jobs(large.test) == {"big", "huge", "huge+lora"}  # big and huge are within a factor of 2
    assert jobs(large.train) == {"tiny", "small", "middle", "lone"}
    assert jobs(small.test) == {"tiny"}
    assert jobs(small.train) == {*STEPS} - {"tiny"}
    for part in parts.values():
        assert sorted(part.train + part.test) == list(range(len(rows)))


def test_what_the_part_tests_is_what_its_fit_does_not_see(tmp_path: Path) -> None:
    """The rows that a part predicts are those whose tags its fit hides, and no others."""
    rows = some_rows(tmp_path)
    sizes = sizes_of(rows, Nets())
    tags = [
        Tag(fold=FOLDS[row.family], device=row.device, source=row.source, end=end)
        for row, end in zip(rows, sizes.ends, strict=True)
    ]
    for part in parts_of_sizes(rows, sizes.ends, FOLDS):
        hidden = {i for i, tag in enumerate(tags) if left_out_of(part).hides(tag)}
        assert hidden == set(part.test)


def test_only_the_end_and_the_fold_that_are_left_out_are_hidden() -> None:
    left_out = LeftOut(largest=3, smallest=8)
    assert left_out.name == "largest-3-smallest-8"
    for fold, end, hidden in (
        (3, "largest", True), (3, "smallest", False), (3, "", False),
        (8, "smallest", True), (8, "largest", False), (4, "largest", False), (-1, "", False),
    ):  # fmt: skip
        tag = Tag(fold=fold, device="V100", source="here", end=end)
        assert left_out.hides(tag) == hidden, (fold, end)
        assert not LeftOut().hides(tag)


def test_predictions_of_sizes_come_back(tmp_path: Path) -> None:
    predictions = Predictions(
        {("size", "a"): RowPrediction(1.5), ("family", "a"): RowPrediction(2.0)}
    )
    write_predictions(predictions, tmp_path / "made.csv.gz")
    back = read_predictions(tmp_path / "made.csv.gz")
    assert (back.of("a", "size"), back.of("a", "family")) == (
        RowPrediction(1.5),
        RowPrediction(2.0),
    )
