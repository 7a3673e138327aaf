"""Corrections of simulated step times, learned from other families or devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.users_table import read_runs
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.runs.validation.shipped import Shipped
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.studies.corrections.inputs import correction_inputs
from scripts.studies.corrections.run import evaluate, main
from scripts.studies.corrections.scoring import METHODS, CorrectionScore, score_corrections
from tests.simulate.jobs import net

FAMILIES = 12


class Nets:
    """Nets of the depth that their name says."""

    def lacks(self, row: MeasuredRun) -> str:
        """Nothing is lacking."""
        return ""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        """The net of a row."""
        depth = int(row.job.rpartition("-")[2])
        return PreparedJob(net(row.batch_size or 1, depth=depth))


@pytest.fixture
def rows(tmp_path: Path) -> list[MeasuredRun]:
    """Deep and shallow nets with large and small batches, one depth a family."""
    lines = [
        f"own:net-{depth},1x{device},{batch},1.0,family{depth},here"
        for depth in range(1, FAMILIES + 1)
        for device in ("V100", "A100")
        for batch in (1, 4, 16, 64, 256)
    ]
    file = tmp_path / "rows.csv"
    file.write_text("job,setting,batch_size,seconds,family,source\n" + "\n".join(lines) + "\n")
    return read_runs(file)


def scored(
    rows: Sequence[MeasuredRun], factors: np.ndarray, split: str, seeds: int = 1
) -> dict[str, CorrectionScore]:
    """Scores where measured over simulated is the factor of each row."""
    measured = [replace(row, step_s=float(f)) for row, f in zip(rows, factors, strict=True)]
    base = {(split, row.id): RowPrediction(1.0) for row in rows}
    shipped = Shipped(
        rows=tuple(measured),
        folds={f"family{depth}": depth % 10 for depth in range(FAMILIES + 1)},
        held_out=Predictions(base),
        steps=Nets(),
    )
    scores = score_corrections(shipped, shipped_calibration(), splits=[split], seeds=seeds)
    return {score.method: score for score in scores}


def test_shares_of_time_add_up(rows: list[MeasuredRun]) -> None:
    inputs = correction_inputs(rows, Nets(), shipped_calibration())
    assert inputs.shares.sum(axis=1) == pytest.approx(1.0)
    assert np.isfinite(inputs.flat()).all()
    assert len(inputs.flat()) == len(rows)


def test_what_depends_on_a_group_of_ops_is_learned_for_other_families(
    rows: list[MeasuredRun],
) -> None:
    """A group of ops takes longer than simulated: every method can tell."""
    shares = correction_inputs(rows, Nets(), shipped_calibration()).shares
    group = int(np.argmax(shares.std(axis=0)))
    scores = scored(rows, 1 + 0.9 * shares[:, group], "family")
    assert set(scores) == {"simulator", *METHODS}
    for name in METHODS:
        assert scores[name].p90_pct < 0.95 * scores["simulator"].p90_pct, name
    assert scores["trees"].median_pct < 0.3 * scores["simulator"].median_pct


def test_a_device_that_is_slower_by_chance_cannot_be_learned_from_others(
    rows: list[MeasuredRun],
) -> None:
    """The correction of one device misleads on the other, as it should."""
    factors = np.array([1.3 if row.device == "V100" else 1 / 1.3 for row in rows])
    scores = scored(rows, factors, "device")
    assert scores["trees"].median_pct > scores["simulator"].median_pct


def test_errors_are_means_over_seeds(rows: list[MeasuredRun]) -> None:
    """Of the network alone: the others learn the same whatever the seed."""
    factors = np.linspace(0.7, 1.4, len(rows))
    single, two = (scored(rows, factors, "family", seeds) for seeds in (1, 2))
    assert {name: score.seeds for name, score in two.items()} == {
        "simulator": 1, "nearest": 1, "ridge": 1, "trees": 1, "network": 2,
    }  # fmt: skip
    assert two["network"].median_pct != single["network"].median_pct
    assert two["trees"] == single["trees"]


def test_rows_without_held_out_predictions_are_refused(rows: list[MeasuredRun]) -> None:
    shipped = Shipped(rows=tuple(rows), folds={}, held_out=None, steps=Nets())
    with pytest.raises(ConfigError, match="no held-out predictions"):
        score_corrections(shipped, shipped_calibration())


def test_an_unknown_split_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--split", "random"])
    assert "invalid choice: 'random'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_table_of_published_steps() -> None:
    scores = evaluate(methods=["nearest"], seeds=1)
    assert len({(score["split"], score["task"]) for score in scores}) == 8
    assert {score["method"] for score in scores} == {"simulator", "nearest"}
