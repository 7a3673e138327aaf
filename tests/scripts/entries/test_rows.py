"""The file of splits is what the splits of the package say, and is the shipped one."""

from __future__ import annotations

import csv
import gzip

from driple.runs.measured_run import MeasuredRun
from scripts.entries.rows import COLUMNS, FILE, lines_of, main


def run(name: str, family: str, setting: str, source: str) -> MeasuredRun:
    return MeasuredRun(id=name, job=name, setting=setting, family=family, source=source, step_s=1.0)


def test_a_row_has_the_part_that_it_is_left_out_with() -> None:
    rows = [run("a", "bert", "1xA100", "x"), run("b", "vit", "8xH100", "y")]
    assert lines_of(rows, {"bert": 3, "vit": 0}) == [
        ("a", "train", "fold 3", "A100", "x"),
        ("b", "train", "fold 0", "H100", "y"),
    ]


def test_a_split_without_a_training_part_leaves_the_cell_empty() -> None:
    rows = [run("a", "bert", "1xA100", "x"), run("b", "vit", "1xH100", "x")]
    assert [line[COLUMNS.index("source")] for line in lines_of(rows, {})] == ["", ""]


def test_the_shipped_file_is_up_to_date_and_each_row_is_in_a_part_of_each_split() -> None:
    assert main(["--check"]) == 0
    with gzip.open(FILE, "rt", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len({line["id"] for line in lines}) == len(lines)
    assert all(line[column] for line in lines for column in COLUMNS)
