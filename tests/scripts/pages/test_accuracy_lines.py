"""Lines of the table on accuracy: by hand, from small files."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from driple.answers.checked_runs import CheckedRun
from driple.answers.op_mix import MIX_KINDS
from driple.answers.stated_error import StatedError
from driple.remarks import Remark
from driple.runs.measured_run import MeasuredRun
from scripts.fits.coverage import CoveredRun
from scripts.fits.reached import CONSTANT_TASK, SPEEDUP_TASK, Errors, Reached
from scripts.pages.accuracy_lines import (
    Line,
    Stated,
    cpu_lines,
    line_table,
    memory_lines,
    own_lines,
    shown_lines,
    simulated_lines,
    stated_of,
)
from scripts.studies.kit.written import Table

LINE = Line(
    kind="DDP", left_out="family", rows=1834, median_pct=10.04, p90_pct=35.6,
    aims_pct=(10.0, 35.0), stated=Stated(runs=9, inside_pct=88.9, width=2.04),
)  # fmt: skip


def covered(ratio: float, *, high: float = 1.5, num_runs: int = 9) -> CoveredRun:
    """A run simulated `ratio` times as long as published, with an interval of 0.75 to `high`."""
    return CoveredRun(
        run=CheckedRun(
            run=MeasuredRun(framework="pytorch", family="gpt"), kind="split", held_out="model",
            devices=("H100",), num_devices=8, num_servers=0, several_machines=False, link="",
            half=True, log_ratio=log(ratio), mix=(1.0,) + (0.0,) * (len(MIX_KINDS) - 1),
        ),
        stated=StatedError(num_runs=num_runs, runs=Remark.of_text("runs"), median_pct=9.0,
                           p90_pct=30.0, low_factor=0.75, high_factor=high),
    )  # fmt: skip


def test_a_figure_above_its_aim_is_bold() -> None:
    """Rounded as it is shown: 10.04 is no more than 10, and 35.6 is more than 35."""
    assert LINE.misses == (False, True)
    (row,) = shown_lines([LINE]).rows
    assert row == ["DDP", "family", "1,834", "10.0", "**36**", "10/35", "89", "2.0"]
    assert replace(LINE, aims_pct=None).misses == (False, False)
    assert replace(LINE, median_pct=10.1).misses == (True, True)


def test_what_is_not_known_is_empty() -> None:
    bare = replace(LINE, p90_pct=None, aims_pct=None, stated=None)
    assert shown_lines([bare]).rows == [["DDP", "family", "1,834", "10.0", "", "", "", ""]]
    assert line_table([bare]).rows == [["DDP", "family", "1834", "10.0", *[""] * 6]]


def test_numbers_stand_to_the_right_and_without_spaces() -> None:
    table = Table(["a", "b", "c"], [["x", "**1**", ""], ["y, z", "2", "3"]])
    assert table.markdown().splitlines() == [
        "|a|b|c|", "|---|--:|--:|", "|x|**1**||", "|y, z|2|3|",
    ]  # fmt: skip
    assert table.csv().splitlines()[2] == '"y, z",2,3'


def test_intervals_count_each_run_alike() -> None:
    """Published over simulated is 0.8, 2 and 1 of 0.75 to 1.5, and to 3 for the last."""
    runs = [covered(1.25), covered(0.5), covered(1.0, high=3.0)]
    stated = stated_of([*runs, covered(9.0, num_runs=0)])
    assert stated is not None
    assert (stated.runs, stated.inside_pct) == (3, pytest.approx(200 / 3))
    assert stated.width == pytest.approx(2.0)
    assert stated_of([covered(9.0, num_runs=0)]) is None


def test_rows_of_degrees_leave_single_devices_out(tmp_path: Path) -> None:
    split, low = tmp_path / "split.csv", tmp_path / "low.csv"
    split.write_text("degrees,published_s,simulated_s\nsingle,1,9\ntp,2,2.2\n")
    low.write_text("published_s,simulated_s\n1,0.5\n")
    degrees, eight_bits = simulated_lines(split, low, [covered(1.1)])
    assert (degrees.rows, degrees.median_pct) == (1, pytest.approx(10))
    assert degrees.stated is not None
    assert (eight_bits.median_pct, eight_bits.stated) == (pytest.approx(50), None)


def test_own_jobs_and_memory_come_from_their_files(tmp_path: Path) -> None:
    results, summary = tmp_path / "results.jsonl", tmp_path / "summary.csv"
    jobs = [{"kind": "job", "step_s": 1.0, "predicted_s": 1.2, "ends_s": [0.5, high]}
            for high in (2.0, 0.9)]  # fmt: skip
    results.write_text("".join(json.dumps(job) + "\n" for job in [*jobs, {"kind": "draw"}]))
    (own,) = own_lines(results)
    assert own.stated == Stated(runs=2, inside_pct=50.0, width=pytest.approx(2.9))
    assert (own.rows, own.median_pct) == (2, pytest.approx(20))
    summary.write_text(
        "where,number,runs,median_pct,p90_pct,interval_runs,inside_pct,width\n"
        "published,allocated,1,1,1,1,1,1\npublished,device,7,4.3,21.9,9,92,1.54\n"
    )
    (memory,) = memory_lines(summary)
    assert (memory.rows, memory.p90_pct, memory.stated) == (7, 21.9, Stated(
        runs=9, inside_pct=92.0, width=1.54
    ))  # fmt: skip


def test_cpu_settings_are_weighted_by_their_workloads(tmp_path: Path) -> None:
    own = {"iteration_time_median_pct": 8.0, "smape_pct": 15.0}
    (tmp_path / "unseen-families.json").write_text(
        json.dumps({name: {"shipped": own, "trees": own} for name in ("a", "b")})
    )
    (tmp_path / "coverage.csv").write_text(
        "setting,split,method,part,name,predictions,targets_pct,time_pct\n"
        "a,family,default,all,all,300,94,90\nb,family,default,all,all,100,94,98\n"
        "b,random,default,all,all,100,94,1\n"
    )
    (line,), table = cpu_lines(tmp_path)
    assert (line.rows, line.median_pct) == (400, 8.0)
    assert line.stated == Stated(runs=400, inside_pct=92.0, width=None)
    assert [row[0] for row in table.rows] == ["a", "b"]


def test_the_constant_is_scored_beside_the_simulator() -> None:
    """Both lines are of the same rows in the shipped table."""
    from scripts.pages.accuracy import errors_of_tasks

    lines: dict[str, Reached] = {
        line.task: line for line in errors_of_tasks() if line.split == "family"
    }
    errors: list[Errors | None] = [lines[SPEEDUP_TASK].errors, lines[CONSTANT_TASK].errors]
    assert errors[0] is not None
    assert errors[1] is not None
    assert (errors[0].rows, errors[0].families) == (errors[1].rows, errors[1].families)
