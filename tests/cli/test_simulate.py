"""`driple simulate`: one graph on settings, data sets of settings, comparison with others."""

import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import pytest

from driple.dataset import read_dataset
from tests.cli.test_main import EXAMPLE, ROOT, driple, refused

PUBLISHED = ROOT / "datasets/published"
QUICK = ("--steps", 20)


def test_simulate_prints_what_predict_prints_and_says_that_it_is_simulated() -> None:
    done = driple("simulate", EXAMPLE, "--setting", "V100-P1w2", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["setting"] == "V100-P1w2/ho-PCIe"
    assert found["provenance"] == "simulated"
    assert found["stated_error"]["checked"] is False  # its filters are small, as of CIFAR
    rx = found["targets"]["net_rx"]
    both = rx["burst_duration"] + rx["idle_duration"]
    assert both == pytest.approx(found["iteration_time_s"], rel=0.15)
    shown = driple("simulate", EXAMPLE, *QUICK)
    assert "simulated" in shown.stdout
    assert "was not checked against any published run of this kind" in shown.stdout
    assert "no --setting given" in shown.stderr


def test_the_error_is_that_of_the_setting_and_the_graph() -> None:
    """ResNet-50 with one server on a slow network was checked, on more servers it was not."""
    large = ROOT / "datasets/examples/resnet50.pbtxt"
    settings = ("--setting", "2080Ti-P1w2/ho-10G", "--setting", "2080Ti-P2w2/ho-10G")
    done = driple("simulate", large, *settings, *QUICK)
    assert done.returncode == 0, done.stderr
    one, two = (line for line in done.stdout.splitlines() if "published run" in line)
    assert one.startswith("the simulator's error on 34 published runs of one device (2080Ti)")
    assert "up to 1 of them and 3 workers, this setting 2 and 2" in two


def test_a_device_that_nobody_measured_is_said_to_be_one() -> None:
    done = driple("simulate", EXAMPLE, "--setting", "TitanRTX-P1w2/ho-10G", *QUICK)
    assert "no published run on TitanRTX" in done.stderr
    assert "Turing" in done.stderr


def test_unlike_workers_of_one_device_are_told_with_what_is_their_mean() -> None:
    done = driple("simulate", EXAMPLE, "--setting", "2080Ti-P5w5/he-1G", *QUICK)
    assert "mean over the 3 workers on 2080Ti" in done.stderr


def test_simulate_draws_every_worker(tmp_path: Path) -> None:
    picture = tmp_path / "timeline.png"
    done = driple("simulate", EXAMPLE, "--setting", "V100-P1w2", *QUICK, "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    assert "--validate alone" in refused("simulate")
    assert "--validate alone" in refused("simulate", EXAMPLE, "--validate")
    assert "did you mean" in refused("simulate", EXAMPLE, "--setting", "V101-P1w2/ho-PCIe")
    assert "--steps" in driple("simulate", EXAMPLE, "--steps", 1).stderr
    assert "--placement" in refused("simulate", EXAMPLE, "--placement", "anywhere")
    assert "-o FOLDER" in refused("simulate", tmp_path, "--all")
    assert "one --setting" in refused(
        *("simulate", EXAMPLE, "--setting", "V100", "--setting", "2080Ti"),
        *("--plot", tmp_path / "x.png"),
    )


def test_every_graph_of_a_folder_becomes_a_data_set_of_each_setting(tmp_path: Path) -> None:
    out = tmp_path / "sets"
    command = ("simulate", ROOT / "datasets/calibration/paper", "--all", "-o", out, *QUICK)
    done = driple(*command, "--setting", "V100-P1w2", "--setting", "2080Ti-P1w2")
    assert done.returncode == 0, done.stderr
    for name in ("V100-P1w2_ho-PCIe", "2080Ti-P1w2_ho-PCIe"):
        data = read_dataset(out / name)
        assert {item.label_source for item in data.examples} == {"simulated"}
        assert f"{len(data.examples)} workloads, simulated" in done.stderr


@pytest.fixture
def little(tmp_path: Path) -> Path:
    """Published data of one source only, so that fits take seconds."""
    folder = tmp_path / "data"
    shutil.copytree(ROOT / "datasets/calibration", folder / "calibration")
    (folder / "published").mkdir()
    for file in PUBLISHED.glob("*.csv.gz"):
        with gzip.open(file, "rt") as stream:
            rows = list(csv.reader(stream))
        kept = rows if file.name.startswith(("zeng_iteration", "network")) else rows[:1]
        text = io.StringIO()
        csv.writer(text).writerows(kept)
        (folder / "published" / file.name).write_bytes(gzip.compress(text.getvalue().encode()))
    rows = (PUBLISHED / "driple_paper.csv").read_text().splitlines()
    (folder / "published/driple_paper.csv").write_text("\n".join(rows[:6]) + "\n")
    return folder


def test_validate_prints_errors_of_what_was_held_out(little: Path) -> None:
    done = driple("simulate", "--validate", "--data", little, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    kinds = {(row["kind"], row["held_out"]) for row in found["errors"]}
    assert ("single", "model") in kinds
    assert ("servers", "model") in kinds
    assert all(row["median_pct"] < 60 for row in found["errors"] if row["held_out"] == "nothing")
    assert len(found["facts"]) == 5
    assert "stay empty" in done.stderr


def test_validate_without_the_data_says_what_is_missing(tmp_path: Path) -> None:
    assert "come with a checkout" in refused("simulate", "--validate", "--data", tmp_path)


def test_ops_without_a_formula_are_named(tmp_path: Path) -> None:
    """One ReLU under a name that nobody knows."""
    text = Path(ROOT / EXAMPLE).read_text()
    odd = text.replace('op: "Relu"', 'op: "Fancy"', 1)
    assert odd != text
    (tmp_path / "odd.pbtxt").write_text(odd)
    done = driple("simulate", tmp_path / "odd.pbtxt", "--setting", "V100-P1w2", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["op_types_without_cost"] == {"Fancy": 1}
    assert "ops without a formula, counted without FLOPs: Fancy (1)" in done.stderr
