"""Reducing a data set's raw samples: named workloads stay, the shipped data sets are reduced."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from driple.errors import MeasureError
from driple.jobs.workload import Workload
from driple.measure.testbed.archive import write_archive
from scripts.settings.archive import read_archive
from tests.measure.runs import run_folder

ROOT = Path(__file__).parents[3]
NAMES = ("lenet/mnist/b1/sgd/sync", "lenet/mnist/b2/sgd/sync")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts/settings/reduce_samples.py"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder with the samples of two runs of each workload."""
    for name in NAMES:
        for repeat in (0, 1):
            run_folder(tmp_path / "runs", Workload.parse(name), repeat, "2026-11-21")
    folder = tmp_path / "data"
    folder.mkdir()
    assert write_archive(tmp_path / "runs", folder) == 4
    return folder


def test_the_first_run_of_a_named_workload_stays(
    script: dict[str, Any], archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its samples are as they were; the three other runs are gone."""
    name = f"{Workload.parse(NAMES[1]).file_name}.r0"
    before = read_archive(archive)[name]
    script["main"]([str(archive), NAMES[1]])
    after = read_archive(archive)
    assert list(after) == [name]
    assert (after[name].samples.values == before.samples.values).all()
    assert "samples of 1 run(s) stay, 3 deleted" in capsys.readouterr().out


def test_a_workload_without_samples_is_refused(script: dict[str, Any], archive: Path) -> None:
    """Nothing is deleted then."""
    with pytest.raises(MeasureError, match="holds no samples of lenet_mnist_b64"):
        script["reduce_samples"](archive, ["lenet/mnist/b64/sgd/sync"])
    assert len(read_archive(archive)) == 4


def test_the_shipped_data_sets_hold_the_runs_that_the_program_keeps(
    script: dict[str, Any],
) -> None:
    """And fewer than were measured, as datasets/README.md says."""
    num_kept = num_measured = 0
    for folder, workloads in script["KEPT"].items():
        names = {f"{Workload.parse(name).file_name}.r0" for name in workloads}
        assert set(read_archive(ROOT / "datasets" / "settings" / folder)) == names
        num_kept += len(names)
        about = json.loads((ROOT / "datasets" / "settings" / folder / "dataset.json").read_bytes())
        num_measured += about["num_runs"]
    text = (ROOT / "datasets/README.md").read_text()
    assert f"raw samples of all {num_measured:,} measured runs" in text
    assert f"the samples of {num_kept} runs" in text
