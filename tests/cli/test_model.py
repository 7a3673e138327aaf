"""`driple model` and `driple compare` on shipped graphs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driple.features import FEATURES_VERSION
from driple.graph import READER_VERSION
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from tests.cli.test_main import EXAMPLE, ROOT, driple, refused

MEASURED = ROOT / "datasets/examples/resnet20.pbtxt"


@pytest.mark.parametrize(
    ("command", "methods"), [("zeng", ["zeng", "zeng-repaired"]), ("zhang", ["zhang"])]
)
def test_model_as_json_and_as_a_picture(command: str, methods: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "parts.png"
    setting = "2080Ti-P1w2/ho-10G"
    done = driple("model", command, EXAMPLE, "--setting", setting, "--json", "--plot", picture)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["setting"] == setting
    assert list(found["models"]) == methods
    for model in found["models"].values():
        assert sum(model["parts_s"].values()) == pytest.approx(model["iteration_time_s"])
        assert model["error"]["mean_pct"] > 0
    assert found["ops_of_unknown_flops"] == {}
    assert picture.stat().st_size > 10_000


def test_model_as_a_table() -> None:
    done = driple("model", "zhang", EXAMPLE)
    assert done.returncode == 0, done.stderr
    for word in ("compute", "push", "pull", "wait", "aggregation", "held back by", "not known"):
        assert word in done.stdout
    layer = driple("model", "zhang", EXAMPLE, "--exchange", "layer", "--json")
    step = driple("model", "zhang", EXAMPLE, "--json")
    times = [json.loads(one.stdout)["models"]["zhang"]["iteration_time_s"] for one in (layer, step)]
    assert times[0] < times[1]


def last_line(*arguments: object) -> str:
    """What is said when a graph had to be read first: its notes, then one line; status 2."""
    done = driple(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


def test_bad_input_gets_one_line() -> None:
    assert "ring" in refused("model", "zhang", EXAMPLE, "--setting", "A100-R8")
    assert "no worker" in refused("model", "zeng", EXAMPLE, "--setting", "V100-P1w0/ho-1G")
    assert "no parameter server" in refused(
        "model", "zeng", EXAMPLE, "--setting", "V100-P0w2/ho-1G"
    )
    assert "no graph file" in refused("model", "zeng", "nowhere.pb")
    assert "is no file" in refused("model", "zeng", "nowhere")
    assert "--exchange" in refused("model", "zhang", EXAMPLE, "--exchange", "magic")
    assert "--plot" in refused("model", "zhang", EXAMPLE, "--plot", "parts.gif")
    assert "--background" in last_line("model", "zhang", EXAMPLE, "--background", 1.5)
    assert "--measured" in last_line("model", "zhang", EXAMPLE, "--measured", 0.001)
    assert "--bandwidth" in refused("whatif", EXAMPLE, "--bandwidth", "-1G")
    assert "--workers" in refused("whatif", EXAMPLE, "--workers", "0")


def test_compare_puts_the_measured_value_beside_all_methods(tmp_path: Path) -> None:
    picture = tmp_path / "compared.png"
    settings = ("--setting", "CPU-P1w2", "--setting", "V100-P1w2", "--setting", "A100-R8")
    done = driple("compare", MEASURED, *settings, "--steps", 6, "--json", "--plot", picture)
    assert done.returncode == 0, done.stderr
    cpu, gpu, ring = json.loads(done.stdout)["settings"]
    assert set(cpu["methods"]) == {
        "measured", "inspector", "simulator", "zhang", "zeng-repaired", "zeng",
    }  # fmt: skip
    assert cpu["methods"]["measured"]["workload"] == "resnet20/cifar10/b24/adam/sync"
    assert cpu["silent"] == {}
    assert "measured" in gpu["silent"]
    assert {"simulator", "zhang", "zeng-repaired", "zeng"} <= set(gpu["methods"])
    assert "ring" in ring["silent"]["zhang"]
    assert "simulator" in ring["methods"]
    assert picture.stat().st_size > 10_000


def test_compare_tells_the_interval_that_predict_tells(tmp_path: Path) -> None:
    """Of an inspector that was calibrated; the others' follow from their errors.

    Of one that an earlier reader's graphs trained, none is stated.
    """
    setting = ("--setting", "CPU-P1w2", "--json")
    shipped = driple("compare", MEASURED, *setting, "--steps", 6)
    stated = json.loads(shipped.stdout)["settings"][0]["methods"]["inspector"]
    name = "checkpoints/CPU-P1w2_ho-200M/default.safetensors"
    checkpoint = load_checkpoint(ROOT / name)
    assert (stated["interval_s"] is None) == (checkpoint.reader_version < READER_VERSION)
    today = replace(checkpoint, reader_version=READER_VERSION, features_version=FEATURES_VERSION)
    (tmp_path / name).parent.mkdir(parents=True)
    save_checkpoint(today, tmp_path / name)
    told = json.loads(driple("predict", MEASURED, *setting, cwd=tmp_path).stdout)["interval"]
    done = driple("compare", MEASURED, *setting, "--steps", 6, cwd=tmp_path)
    methods = json.loads(done.stdout)["settings"][0]["methods"]
    assert methods["inspector"]["interval_s"] == pytest.approx(told["iteration_time_s"])
    low, high = methods["simulator"]["interval_s"]
    assert low < methods["simulator"]["iteration_time_s"] < high


def test_compare_claims_no_share_where_the_interval_is_extrapolated() -> None:
    """A graph of 77 ops is further from all known ones than any that was left out."""
    tiny = ROOT / "tests/data/graphs/functions.pb.gz"
    done = driple("compare", tiny, "--setting", "CPU-P1w2", "--steps", 6, "--json")
    inspector = json.loads(done.stdout)["settings"][0]["methods"]["inspector"]
    assert (inspector["p90_error_pct"], inspector["interval_s"]) == (None, None)


def test_compare_goes_on_without_an_inspector_and_says_so() -> None:
    """Nobody has an inspector of such a cluster."""
    setting = "RTX8000-P1w3/ho-25G"
    done = driple("compare", MEASURED, "--setting", setting, "--steps", 6)
    assert done.returncode == 0, done.stderr
    assert f"no inspector of preset default for {setting}" in done.stderr
    assert "simulator" in done.stdout


def test_compare_needs_a_setting() -> None:
    assert "--setting" in refused("compare", MEASURED)
