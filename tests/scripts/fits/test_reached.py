"""Speed-ups, rankings, utilisation and the table of what was wanted and reached, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.users_table import read_runs
from driple.runs.validation.metrics import rank_correlation
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.runs.validation.rankings import (
    rank_configurations,
    rank_devices,
    rank_summaries,
)
from driple.runs.validation.speedups import compile_pairs, speedup_scores
from driple.runs.validation.utilisation import (
    MeanUtilisation,
    read_utilisation,
    utilisation_scores,
)
from scripts.fits.reached import errors_of, reached

HEADER = "id,job,setting,seconds,family,source,mode,domain,compiled,batch_size,seq_len\n"


def rows_of(tmp_path: Path, lines: str) -> list[MeasuredRun]:
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + lines, encoding="utf-8")
    return read_runs(file)


def forward_rows(tmp_path: Path) -> list[MeasuredRun]:
    """Two pairs, of speed-ups 2 and 1, and a row that has no partner."""
    return rows_of(
        tmp_path,
        "e1,timm:a,1xA100,4,a,timm,forward,vision,no,8,\n"
        "c1,timm:a,1xA100,2,a,timm,forward,vision,yes,8,\n"
        "e2,timm:b,1xV100,3,b,timm,forward,vision,no,8,\n"
        "c2,timm:b,1xV100,3,b,timm,forward,vision,yes,8,\n"
        "e3,timm:b,1xV100,3,b,timm,forward,vision,no,16,\n",
    )


def test_a_pair_differs_in_the_compiler_alone(tmp_path: Path) -> None:
    rows = forward_rows(tmp_path)
    pairs = compile_pairs(rows)
    assert [(pair.eager, pair.compiled, pair.speedup) for pair in pairs] == [(0, 1, 2), (2, 3, 1)]
    again = replace(rows[1], id="again", step_s=2.5)
    assert len(compile_pairs([*rows, again])) == 1  # which of two it is is not known


def test_errors_of_speedups_by_hand(tmp_path: Path) -> None:
    """Times twice too long change no speed-up; the constant is that of the other fold."""
    rows = forward_rows(tmp_path)
    seconds = [8, 4, 6, 4, 6]
    predicted = [RowPrediction(one) for one in map(float, seconds)]
    scores = speedup_scores(rows, {("family", "simulator"): predicted}, {"a": 0, "b": 1})
    of = {(one.group, one.predictor): one for one in scores}
    assert of["A100", "simulator"].p90_pct == pytest.approx(0)
    assert of["V100", "simulator"].signed_pct == pytest.approx(50)
    assert (of["all devices", "simulator"].rows, of["all devices", "simulator"].families) == (2, 2)
    assert of["A100", "constant"].signed_pct == pytest.approx(-50)
    assert of["V100", "constant"].signed_pct == pytest.approx(100)


def test_the_constant_is_scored_on_the_pairs_that_are_predicted(tmp_path: Path) -> None:
    """The other pair still tells the constant, which is its speed-up of 1."""
    rows = forward_rows(tmp_path)
    predicted = [RowPrediction(8.0), RowPrediction(4.0), None, None, None]
    scores = speedup_scores(rows, {("family", "simulator"): predicted}, {"a": 0, "b": 1})
    of = {(one.group, one.predictor): one for one in scores}
    assert set(of) == {
        (group, predictor)
        for group in ("all devices", "A100")
        for predictor in ("simulator", "constant")
    }
    assert of["all devices", "constant"].rows == 1
    assert of["A100", "constant"].signed_pct == pytest.approx(-50)


def sharded_rows(tmp_path: Path) -> list[MeasuredRun]:
    """Four configurations of one model; per token the longest sequence is the fastest."""
    return rows_of(
        tmp_path,
        "p,own:m,8xA100@fsdp,8,m,s,train,language,no,8,100\n"
        "q,own:m,8xA100@fsdp,12,m,s,train,language,no,8,200\n"
        "r,own:m,8xA100@zero1,6,m,s,train,language,no,8,100\n"
        "t,own:m,8xA100@zero2,20,m,s,train,language,no,16,100\n",
    )


def test_configurations_are_ranked_by_the_time_of_a_token(tmp_path: Path) -> None:
    rows = sharded_rows(tmp_path)
    perfect = [RowPrediction(3 * row.step_s) for row in rows]
    (ranking,) = rank_configurations(rows, perfect)
    assert (ranking.place, ranking.choices, ranking.tau, ranking.best_pct) == (
        "8 A100",
        4,
        1.0,
        0.0,
    )
    swapped = [RowPrediction(one) for one in (8.0, 12.0, 5.0, 20.0)]  # r for the best, which q ties
    (ranking,) = rank_configurations(rows, swapped)
    assert ranking.tau < 1
    assert rank_configurations(rows, [None, None, *perfect[2:]]) == []
    (summary, *_) = rank_summaries(rows, {"family": perfect})
    assert (summary.source, summary.jobs, summary.choices, summary.tau) == ("s", 1, 4, 1.0)


def test_devices_are_ranked_and_the_cost_of_a_wrong_choice_is_stated(tmp_path: Path) -> None:
    """Three devices; the predictor prefers the one that is 50 % slower than the best."""
    rows = rows_of(
        tmp_path,
        "".join(
            f"{device},own:m,1x{device},{seconds},m,s,train,language,no,8,\n"
            for device, seconds in (("A100", 2), ("V100", 3), ("K80", 9))
        ),
    )
    (ranking,) = rank_devices(rows, [RowPrediction(one) for one in (5.0, 4.0, 6.0)])
    assert ranking.tau == pytest.approx(1 / 3)
    assert ranking.best_pct == pytest.approx(50)


def test_errors_by_row_and_by_family_by_hand() -> None:
    """Three rows of one family are 10 % off, the only one of another 40 %."""
    weights = np.array([1, 1, 1, 3]) / 6
    errors = errors_of(np.array([1.1, 0.9, 1.1, 0.6]), weights, ["a", "a", "a", "b"])
    assert (errors.rows, errors.families) == (4, 2)
    assert errors.median_pct == pytest.approx(10)
    assert errors.family_median_pct == pytest.approx(10)
    assert errors.family_p90_pct == pytest.approx(40)
    assert errors.signed_pct == pytest.approx(0)


def test_what_was_not_predicted_is_not_made(tmp_path: Path) -> None:
    """Rows fall under their task; a row that no split predicted counts nowhere."""
    rows = [*forward_rows(tmp_path), *sharded_rows(tmp_path)]
    held_out = Predictions({
        ("family", "e1"): RowPrediction(4.4), ("family", "c1"): RowPrediction(2.0),
        ("device", "p"): RowPrediction(4.0), ("device", "q"): RowPrediction(12.0),
    })  # fmt: skip
    every = reached(rows, held_out)
    scores = {(one.task.partition(",")[0], one.split): one for one in every}
    (forward,) = [one for one in every if "forward pass (" in one.task and one.split == "family"]
    assert forward.errors is not None
    assert (forward.errors.rows, forward.wanted_median_pct) == (2, 7)
    assert scores["speed-up by torch.compile", "family"].errors is not None
    assert scores["speed-up by torch.compile", "device"].errors is None
    sharded = scores["FSDP and ZeRO", "device"].errors
    assert sharded is not None
    assert (sharded.rows, sharded.median_pct) == (2, 25)
    assert scores["FSDP and ZeRO", "family"].errors is None


def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    values, other = random.normal(size=30), random.integers(0, 6, size=30).astype(np.float64)
    assert rank_correlation(values, other) == pytest.approx(
        stats.spearmanr(values, other).statistic
    )
    assert rank_correlation(values, np.ones(30)) is None
    assert rank_correlation(values[:2], other[:2]) is None


def test_scores_of_utilisation_by_hand(tmp_path: Path) -> None:
    """Of three runs one is below 90 %; spread over its measured step its error shrinks."""
    (row,) = rows_of(tmp_path, "x,own:m,1xA100,2,m,s,train,language,no,8,\n")
    unknown = replace(row, step_s=float("nan"))
    runs = [
        MeanUtilisation(replace(row, utilisation_pct=45.0), 96.0, 1.0),
        MeanUtilisation(replace(unknown, utilisation_pct=95.0), 98.0, 1.0),
        MeanUtilisation(replace(unknown, utilisation_pct=99.0), 99.0, 1.0),
    ]
    of = {one.group: one for one in utilisation_scores(runs)}
    assert (of["all runs"].runs, of["all runs"].points) == (3, 3)
    assert of["all runs"].rank == pytest.approx(1)
    assert (of["runs below 90 %"].runs, of["runs below 90 %"].points) == (1, 51)
    (measured, *_) = utilisation_scores(runs, of_measured_step=True)
    assert (measured.runs, measured.points) == (1, 3)


def test_a_wrong_table_of_utilisation_names_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "utilisation.csv"
    head = "row,source_file,device,devices,link_within,job,batch,precision,util_mean\n"
    file.write_text(head + "a,f,A100,1,,own:m,8,fp32,50\nb,f,,1,,own:m,8,fp32,50\n")
    runs, left_out = read_utilisation(file)
    assert (len(runs), left_out, runs[0].utilisation_pct) == (1, 1, 50.0)
    for cells, words in (
        ("A100,1,,own:m,8,fp32,150", "line 2, column util_mean: needs a number"),
        ("A1000,1,,own:m,8,fp32,50", "line 2, column row: device 'A1000'"),
    ):
        file.write_text(f"{head}a,f,{cells}\n")
        with pytest.raises(ConfigError, match=words):
            read_utilisation(file)
