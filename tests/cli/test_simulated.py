"""What is shipped with simulated labels: settings of the paper's Table 6, and GPUs of today."""

import json
from pathlib import Path

import pytest

from driple.cluster.setting import SIMULATED_SETTINGS, Setting
from driple.inspector.checkpoint import load_checkpoint
from scripts.settings.checkpoints import ships
from tests.cli.test_main import ROOT, driple

EXAMPLE = ROOT / "datasets/examples/resnet50.pbtxt"
FIRST = "V100-P1w2/ho-PCIe"
# A device alone has no network, and no inspector; others have one that ships where it answers.
SHIPPED = [
    (name, preset)
    for name in SIMULATED_SETTINGS
    for preset in ("default", "paper")
    if Setting.parse(name).num_workers > 1 and ships(name, preset, "simulated")
]
LEARNED = [name for name, preset in SHIPPED if preset == "default"]


def test_there_are_the_papers_fourteen_and_five_of_today() -> None:
    assert len(SIMULATED_SETTINGS) == 19
    assert SIMULATED_SETTINGS[0] == FIRST


@pytest.mark.parametrize("setting", SIMULATED_SETTINGS)
def test_every_data_set_tells_where_it_comes_from(setting: str) -> None:
    """832 workloads in at most 1.5 MB, called simulated, with the simulator's error."""
    folder = ROOT / "datasets" / "settings" / Setting.parse(setting).file_name
    about = json.loads((folder / "dataset.json").read_text())
    assert about["setting"] == setting
    assert about["num_examples"] == 832
    assert about["label_source"] == "simulated"
    assert (
        0 < about["iteration_time_error"]["median_pct"] < about["iteration_time_error"]["p90_pct"]
    )
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 1.5e6


@pytest.mark.parametrize("setting", LEARNED)
def test_every_prediction_says_simulated_and_how_wrong(setting: str) -> None:
    """In words and as JSON."""
    asked = ("predict", EXAMPLE, "--setting", setting, "--method", "inspector")
    first = driple(*asked)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.replace("\n          ", " ").splitlines()  # continued ones joined
    (sure,) = [line for line in lines if line.startswith("how sure")]
    assert sure.startswith("how sure  learned from simulated labels, ")
    shown = driple(*asked, "--explain")
    assert shown.returncode == 0, shown.stderr
    assert f"{setting}: learned from simulated labels" in shown.stdout
    assert "labels: " in shown.stdout
    done = driple(*asked, "--json")
    (result,) = json.loads(done.stdout)["answers"]
    assert result["checkpoint"]["provenance"] == "simulated"
    stated = result["stated_error"]
    assert stated["checked"] == (stated["nearest_because"] is None)
    assert ("of the nearest kind: " in shown.stdout) != stated["checked"]
    assert f"; labels up to {stated['p90_pct']:.0f} % off in nine of ten" in sure
    assert "label_error" not in result["checkpoint"]["trained_on"]


def test_without_a_setting_it_is_the_papers_first() -> None:
    done = driple("predict", EXAMPLE)
    assert f"no --setting given; predicting for {FIRST}" in done.stderr
    assert done.stdout == driple("predict", EXAMPLE, "--setting", "V100").stdout


@pytest.mark.parametrize(("setting", "preset"), SHIPPED)
def test_inspectors_come_from_the_first_by_transfer(setting: str, preset: str) -> None:
    """With 320 labels, as in the paper (section 4.2.1)."""
    folder = ROOT / "checkpoints" / Setting.parse(setting).file_name
    trained = load_checkpoint(folder / f"{preset}.safetensors").trained_on
    origin = trained.transferred_from
    if setting == FIRST:
        assert origin is None
        assert trained.num_train == 832 - 2 * 166
    else:
        assert origin is not None
        assert origin.setting == FIRST
        assert trained.num_train == 240  # 80 more validate


def test_an_inspector_of_v100_is_transferred_to_2080ti(tmp_path: Path) -> None:
    """The design's example, with few labels."""
    done = driple(
        *("transfer", "--from", "V100", "--to", "2080Ti", "--workloads", 20, "--set", "curve=off"),
        *("-o", tmp_path, "--json"),
    )
    assert done.returncode == 0, done.stderr
    checkpoint = load_checkpoint(tmp_path / "checkpoint.safetensors")
    assert checkpoint.setting == "2080Ti-P1w2/ho-PCIe"
    assert checkpoint.provenance == "simulated"
