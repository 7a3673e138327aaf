"""The check of warnings: rows of graphs, a table of good and bad answers, the exit status."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from driple.inspector.checkpoint import save_checkpoint
from tests.inspector.examples import checkpoint_of, constant_inspector

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts/checks/predict_warnings.py"
CASES = ROOT / "tests/data/cases"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def row(script: dict[str, Any], error: float, *, warned: bool) -> Any:
    """An answer that is off by so much."""
    row_class = script["Row"]
    return row_class(
        name="a", simulated_s=1.0, predicted_s=1 + error, warned=warned, is_strange=False
    )


def test_the_table_counts_good_and_bad(script: dict[str, Any]) -> None:
    """Off by more than 25 % is bad, either way; four of five bad ones must be warned of."""
    bad = [row(script, error, warned=True) for error in (0.3, -0.3, 2.0, 9.0)]
    good = [row(script, error, warned=False) for error in (0.0, 0.24, -0.24)]
    silent = row(script, 0.26, warned=False)
    table = script["Table"].of([*bad, *good, silent])
    assert (table.bad_warned, table.bad_silent) == (4, 1)
    assert (table.good_warned, table.good_silent) == (0, 3)
    assert table.is_reached
    assert not script["Table"].of([*bad[1:], *good, silent]).is_reached
    assert not script["Table"].of([*bad, row(script, 0.1, warned=True)]).is_reached
    assert script["Table"].of([]).is_reached


def test_a_folder_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A graph that is answered, one that the options complete, one without a training step."""
    for name in ("01_control", "11_unknown_batch", "08_inference_only"):
        shutil.copy(CASES / f"{name}.pbtxt", tmp_path)
    checkpoint, options = tmp_path / "c.safetensors", tmp_path / "options.json"
    save_checkpoint(checkpoint_of(constant_inspector(5.0, 4), 4), checkpoint)
    options.write_text(json.dumps({"11_unknown_batch": {"batch_size": 32, "layout": "servers"}}))
    words = [tmp_path, "--checkpoint", checkpoint, "--options", options, "--steps", 5]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0
    shown = capsys.readouterr()
    assert "08_inference_only: left out" in shown.err
    lines = shown.out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["01_control", "11_unknown_batch"]
    assert lines[1].split()[1:] == lines[2].split()[1:]
    assert lines[3].split("answers")[0].split()[-1] == "2"
