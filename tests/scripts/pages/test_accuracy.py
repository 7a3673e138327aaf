"""The page on accuracy, its tables and its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.evaluation.foldfiles import read_fold, write_fold
from driple.runs.validation.utilisation import UtilisationScore
from scripts.fits.coverage import Coverage
from scripts.fits.reached import Errors, Reached
from scripts.pages.accuracy import (
    FOLDS_OF_INSPECTORS,
    HOME,
    LOW_ROWS,
    PICTURES,
    PICTURES_OF_TIMES,
    SPLIT_ROWS,
    UTILISATION_PICTURE,
    errors_of_tasks,
    files,
    paper_on_families,
    simulated_table,
)
from scripts.pages.accuracy_tables import (
    coverage_table,
    misfit_table,
    reached_table,
    stated_table,
    sweep_table,
    utilisation_table,
)
from scripts.pages.scatter import plot_scatter, plot_utilisation
from scripts.pages.sweep_ranks import SweepRank
from scripts.studies.kit.written import csv_files, stale

ERRORS = Errors(
    rows=30, families=4, median_pct=7.06, p90_pct=21.6, family_median_pct=8.0, family_p90_pct=25.2,
    signed_pct=-1.0,
)  # fmt: skip


def test_tables_that_are_made_in_seconds_are_what_the_program_writes() -> None:
    texts = csv_files(
        HOME,
        {
            "degrees": simulated_table(SPLIT_ROWS, ("source", "degrees")),
            "low_precision": simulated_table(LOW_ROWS, ("source", "precision")),
            "preset_paper": paper_on_families(),
            "tasks": reached_table(errors_of_tasks()),
        },
    )
    assert not stale(texts), "run python -m scripts.pages.accuracy"


@pytest.mark.slow
def test_the_page_and_its_tables_are_what_the_program_writes() -> None:
    texts = files()
    assert not stale(texts), "run python -m scripts.pages.accuracy"
    assert set(HOME.glob("*.csv")) == {file for file in texts if file.suffix == ".csv"} | {
        SPLIT_ROWS,
        LOW_ROWS,
    }
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    for file in HOME.glob("*.csv"):
        assert f"]({file.name})" in readme
    shown = {picture.name for picture in PICTURES_OF_TIMES if picture.runs()}
    for name in (*shown, UTILISATION_PICTURE):
        assert f"/pictures/{name})" in readme
        assert (PICTURES / name).exists()


def test_folds_of_families_stand_by_size_and_random_ones_not_at_all(tmp_path: Path) -> None:
    shipped = read_fold(next(iter(sorted(FOLDS_OF_INSPECTORS.glob("paper-*.json.gz")))))
    assert shipped is not None
    for number, (fold, count) in enumerate((("vgg, seed 0", 7), ("seed 0", 9), ("nmt, seed 0", 8))):
        test = replace(
            shipped.test, num_workloads=count, smape_pct=60.4, iteration_time_mape_pct=2120.4
        )
        write_fold(tmp_path / f"paper-{number}.json.gz", replace(shipped, fold=fold, test=test))
    rows = paper_on_families(tmp_path).rows
    assert rows == [["nmt", "8", "60", "2120"], ["vgg", "7", "60", "2120"]]


def coverage(
    group: str, *, runs: int, below_p90_pct: float = 90, inside: int = 0, by: str = "kind"
) -> Coverage:
    return Coverage(
        by=by, group=group, held_out="model", task="train", runs=runs, coverage_pct=90.4,
        below_p90_pct=below_p90_pct, width=1.5, inside=inside, row_width=1.6,
    )  # fmt: skip


def test_coverage_by_hand() -> None:
    (row,) = coverage_table([coverage("ring", runs=8, inside=6, below_p90_pct=88)]).rows
    assert row == ["kind", "all-reduce", "train", "model family", "8", "75", "1.60", "90", "88",
                   "1.50"]  # fmt: skip


def test_what_was_reached_stands_beside_what_was_wanted() -> None:
    def line(split: str, errors: Errors | None) -> Reached:
        return Reached(
            task="t", split=split, wanted_median_pct=7.0, wanted_p90_pct=22.0, errors=errors
        )

    known, missing = reached_table([line("family", ERRORS), line("source", None)]).rows
    assert known == ["t", "model family", "30", "4", "7.1", "21.6", "8.0", "25.2", "7", "22"]
    assert missing == ["t", "source", *[""] * 6, "7", "22"]


def test_rows_of_a_program_are_grouped_by_two_columns(tmp_path: Path) -> None:
    """Twice 10 % too long, once half as long."""
    file = tmp_path / "rows.csv"
    file.write_text("source,degrees,published_s,simulated_s\na,tp,1,1.1\na,tp,2,2.2\na,pp,2,1\n")
    assert simulated_table(file, ("source", "degrees")).rows == [
        ["a", "pp", "1", "50.0", "50.0", "0.50"],
        ["a", "tp", "2", "10.0", "10.0", "1.10"],
    ]


def test_groups_that_chance_does_not_allow_a_true_share_are_named() -> None:
    """Of 100 runs, 82 may be inside by chance and 76 may not; small groups are not judged."""
    groups = [
        coverage("all", runs=305, inside=270, by="all"),
        coverage("single", runs=100, inside=82),
        coverage("ring", runs=100, inside=76),
        coverage("servers", runs=5, inside=0),
    ]
    (line,) = stated_table(groups).rows
    assert line == ["train", "model family", "305", "88.5", "1.60", "all-reduce (76 %)"]
    high = [groups[0], coverage("single", runs=100, inside=100)]
    assert stated_table(high).rows[-1][-1] == "one device (100 %)"
    by_chance = coverage("single", runs=40, inside=40)
    assert not stated_table([*high[:1], by_chance]).rows[-1][-1]


def test_sweeps_are_counted_by_source() -> None:
    sweeps = [
        SweepRank(split="family", source=source, job="j", place="p", settings=5, rank=rank)
        for source, rank in (("a", 1.0), ("a", 0.8), ("b", 0.9))
    ]
    lines = sweep_table(sweeps, 0.85).rows
    assert lines[0] == ["model family", "all sources", "3", "15", "0.90", "2", "0.80", "j, p"]
    assert [line[1] for line in lines] == ["all sources", "a", "b"]


def test_the_worst_groups_come_first_and_small_ones_not_at_all() -> None:
    def errors(rows: int, signed_pct: float) -> Errors:
        return Errors(
            rows=rows, families=1, median_pct=9, p90_pct=9, family_median_pct=9, family_p90_pct=9,
            signed_pct=signed_pct,
        )  # fmt: skip

    groups = {"a": errors(9, 20), "b": errors(9, -60), "c": errors(2, 99), "d": errors(9, 1)}
    lines = misfit_table(groups, "family", least_rows=5).rows
    assert [line[0] for line in lines] == ["b", "a", "d"]
    assert lines[0][2] == "-60"


def test_utilisation_in_the_measured_step_stands_beside() -> None:
    def score(group: str, points: float) -> UtilisationScore:
        return UtilisationScore(
            group=group, runs=3, measured_pct=80.2, predicted_pct=97.8, points=points, rank=None
        )

    table = utilisation_table([score("a", 17.6), score("b", 1.0)], [score("a", 7.4)])
    assert table.rows == [
        ["a", "3", "80", "98", "17.6", "", "3", "7.4"],
        ["b", "3", "80", "98", "1.0", "", "", ""],
    ]


def test_a_scatter_plot_is_a_small_picture(tmp_path: Path) -> None:
    points = [(0.1, 0.05, "resnet"), (-0.5, 0.2, "vit"), (1.5, 0.4, "gnmt")]
    busy = [(99.0, 97.0, "resnet"), (41.0, 98.0, "gnmt")]
    plot_scatter(points, tmp_path / "times.svg", title="three runs")
    plot_utilisation(busy, tmp_path / "busy.svg", title="two runs")
    for name in ("times.svg", "busy.svg"):
        content = (tmp_path / name).read_bytes()
        assert b"<svg" in content
        assert len(content) < 300_000
