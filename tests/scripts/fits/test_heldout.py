"""One part of the predictions of unseen rows is made alone, and the others stay."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from driple.errors import ConfigError
from driple.runs.validation.predictions import Predictions, RowPrediction, read_predictions
from driple.runs.validation.shipped import HELD_OUT
from driple.runs.validation.splits import parts_of
from scripts.fits.writing import write_predictions

FOLD = "fold 0"


def test_a_part_alone_leaves_other_rows_as_they_are(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part is kept from before, so that nothing is fitted here."""
    shipped = program.shipped(training=False)
    monkeypatch.setattr(program, "PUBLISHED", tmp_path)
    monkeypatch.setattr(program, "STATE", tmp_path / "state")
    part = next(one for one in parts_of(shipped.rows, "family", shipped.folds) if one.name == FOLD)
    ours = {("family", shipped.rows[i].id): RowPrediction(0.25) for i in part.test}
    other = {("family", shipped.rows[part.train[0]].id): RowPrediction(0.5)}
    (tmp_path / "state").mkdir()
    write_predictions(Predictions(ours), program.state_of(part))
    command = ["heldout", "--only", "family", "--part", FOLD]

    monkeypatch.setattr(sys, "argv", command)
    program.main()
    assert read_predictions(tmp_path / HELD_OUT).by_split == ours
    write_predictions(
        Predictions({**dict.fromkeys(ours, RowPrediction(9.0)), **other}), tmp_path / HELD_OUT
    )
    program.main()
    assert read_predictions(tmp_path / HELD_OUT).by_split == {**ours, **other}


def test_a_part_that_no_split_has_is_refused(program: ModuleType) -> None:
    with pytest.raises(ConfigError, match="'fold 99' is no part of family"):
        program.predict_all(["family"], 1, training=False, only_part="fold 99")
