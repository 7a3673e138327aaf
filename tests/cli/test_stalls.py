"""`driple stalls`, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from driple.plot.stalls import bars_of
from tests.cli.test_main import ROOT, driple, refused
from tests.profiler.profiles import write_profile

RESNET50 = ROOT / "datasets/examples/resnet50.pbtxt"
SCRIPT = ROOT / "scripts/check_file_sizes.py"
TIMES = {1: [0.1, 0.1], 2: [0.15, 0.15], 3: [0.4, 0.4], 4: [0.2, 0.2]}


def test_run_profiles_a_script_and_a_second_run_shows_it_again(tmp_path: Path) -> None:
    """One device, its steps with and without synthetic data; step 1 and 5 are named as left out."""
    command = [
        *("profile", "run", "-o", tmp_path / "out", "--devices", 1, "--only", "1,2,5"),
        *(
            "--set",
            "iterations=2",
            "--set",
            "warmup=3",
            "--repeats",
            1,
            "--set",
            "tries=1",
            "--json",
        ),
        *("--", "-m", "driple.profiler.train", "bert-tiny", "--length", 8, "--batch-size", 2),
    ]
    done = driple(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["steps"]) == {"2"}
    assert set(found["left_out"]) == {"1", "5"}
    assert found["steps"]["2"]["iteration_s"] > 0
    assert found["overhead_pct"] < 5
    again = driple(*command)
    assert json.loads(again.stdout)["steps"] == found["steps"]
    shown = driple("profile", "show", tmp_path / "out")
    assert "step 5 was left out: there is one device" in shown.stdout
    assert "all devices of a machine" in shown.stdout


def test_show_tells_stalls_shares_epochs_and_doubts(tmp_path: Path) -> None:
    """By hand: 50 ms of 100 are 50 %, and half a second of ten iterations."""
    folder = write_profile(tmp_path / "p", TIMES, other_cores=1.5, stolen_cores=0.4)
    done = driple("profile", "show", folder, "--plot", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert "50.0 ms" in lines["interconnect"]
    assert "50.0 % of step 1" in lines["interconnect"]
    assert "0.5 s" in lines["interconnect"]
    assert "50.0 % of step 3" in lines["fetch"]
    assert "not measured" in lines["network"]
    assert "caches were cleared with fadvise" in done.stdout
    assert "other programs used up to 1.5 cores during step(s) 1, 2, 3, 4" in done.stderr
    assert "the hypervisor gave other machines up to 0.4 cores" in done.stderr
    assert (tmp_path / "p.png").stat().st_size > 10_000


def test_a_profile_of_another_format_is_refused(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "p", TIMES)
    about = json.loads((folder / "profile.json").read_text())
    (folder / "profile.json").write_text(json.dumps({**about, "format": 1}))
    done = driple("profile", "show", folder)
    assert done.returncode == 2
    assert "format 1, and this version reads 2; measure anew" in done.stderr


def test_cost_recommends_and_users_prices_win(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("instances: [{name: p3.16xlarge, price_per_hour: 0.01}]")
    picture = tmp_path / "cost.png"
    done = driple(
        *("stalls", "cost", RESNET50, "--batch-size", 32, "--instance", "p3", "--json"),
        *("--instances", mine, "--plot", picture),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["offers"][0]["name"] == "p3.16xlarge"
    assert found["recommendation"].startswith("Rent p3.16xlarge")
    assert {offer["provenance"] for offer in found["offers"]} == {"simulated"}
    assert found["assumptions"]["precision"] == "float32"
    assert found["assumptions"]["samples_per_epoch"] == 1_281_167
    assert found["refused"] == []
    assert found["no_price"] is None
    assert found["op_types_without_cost"] == {}
    assert picture.stat().st_size > 10_000


def test_the_order_of_options_changes_no_error() -> None:
    """Each row states its own: a K80's is not a V100's, and eight K80s have none."""
    cost = ("stalls", "cost", RESNET50, "--batch-size", 32, "--json")
    stated = []
    for names in (("p2.xlarge", "p3.2xlarge", "p2.8xlarge"), ("p2.8xlarge", "p3.2xlarge", "p2")):
        chosen = [text for name in names for text in ("--instance", name)]
        offers = json.loads(driple(*cost, *chosen).stdout)["offers"]
        stated.append({offer["name"]: offer["stated_error"] for offer in offers})
    for name, error in stated[0].items():
        assert stated[1][name] == error
    assert "K80" in stated[0]["p2.xlarge"]["of"]
    assert stated[0]["p2.xlarge"]["median_pct"] != stated[0]["p3.2xlarge"]["median_pct"]
    assert stated[0]["p2.8xlarge"]["checked"] is False
    shown = driple(*cost[:-1], "--instance", "p2").stdout
    assert "not checked" in shown
    assert "assumed: products in float32; optimizer Momentum; batches of 32 samples" in shown


def test_a_transformer_carries_no_error_of_convolutional_networks() -> None:
    cost = ("stalls", "cost", "bert-tiny", "--instance", "p5.4xlarge")
    done = driple(*cost)
    assert "not checked against any published run of this kind" in done.stdout
    assert "90th percentile" not in done.stdout
    found = json.loads(driple(*cost, "--json").stdout)
    assert found["offers"][0]["stated_error"]["checked"] is False
    assert any("no published run on H100" in one for one in found["notes"])


def test_unknown_dimensions_get_no_price_and_no_recommendation(tmp_path: Path) -> None:
    graph = tmp_path / "graph.pbtxt"
    control = (ROOT / "tests/data/cases/01_control.pbtxt").read_text()
    graph.write_text(control.replace("size: 56 ", "size: -1 "))  # height and width
    cost = ("stalls", "cost", graph, "--batch-size", 32, "--instance", "p3")
    shown = driple(*cost)
    assert shown.returncode == 0, shown.stderr
    assert "no price and no recommendation: " in shown.stdout
    assert "Rent" not in shown.stdout
    found = json.loads(driple(*cost, "--json").stdout)
    assert found["recommendation"] is None
    assert "unknown dimensions" in found["no_price"]
    assert {offer["epoch_cost"] for offer in found["offers"]} == {None}
    assert {offer["stated_error"]["checked"] for offer in found["offers"]} == {False}


def test_a_pytorch_model_needs_only_its_name() -> None:
    """BERT's epoch is SQuAD's 130,319 questions in batches of four on each device."""
    cost = ("stalls", "cost", "bert-tiny", "--instance", "p3.8xlarge", "--json")
    (offer,) = json.loads(driple(*cost).stdout)["offers"]
    assert offer["epoch_s"] == pytest.approx(130_319 / (4 * 4) * offer["iteration_s"])
    (larger,) = json.loads(driple(*cost, "--batch-size", 8).stdout)["offers"]
    assert larger["iteration_s"] > offer["iteration_s"]
    done = driple("profile", "links", "vgg11", "--setting", "V100-R4/ho-NVLink", "--json")
    assert json.loads(done.stdout)["gradient_bytes"] == pytest.approx(4 * 132.86e6, rel=1e-3)


OWN = """
import torch
from torch import nn

def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 4))

def build_dataset():
    return torch.utils.data.TensorDataset(torch.zeros(50, 3, 2, 2), torch.zeros(50).long())

class Decides(nn.Linear):
    def forward(self, images):
        made = super().forward(images.flatten(1))
        return made if made.sum() > 0 else -made

def build_decider():
    return Decides(12, 4)

class Large(nn.Linear):
    def __init__(self):
        super().__init__(30_000, 30_000, device="meta")

    def forward(self, images):
        return super().forward(images.flatten(1)[:, :1].expand(-1, 30_000))

def build_large():
    return Large()
"""


def test_a_model_of_the_users_own_is_read_from_its_file(tmp_path: Path) -> None:
    """An epoch is the 50 samples of its data set."""
    own = tmp_path / "own.py"
    own.write_text(OWN)
    ends = ("--dataset", f"{own}:build_dataset", "--batch-size", 5)
    done = driple("stalls", "cost", f"{own}:build_model", *ends, "--instance", "p3.8xlarge",
                  "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (offer,) = json.loads(done.stdout)["offers"]
    assert offer["epoch_s"] == pytest.approx(50 / (5 * 4) * offer["iteration_s"])
    cost = ("stalls", "cost")
    assert "needs --dataset" in refused(*cost, f"{own}:build_model", "--batch-size", 5)
    assert "has no 'other'" in refused(*cost, f"{own}:other", *ends)
    assert "not there" in refused(*cost, f"{tmp_path}/none.py:build_model", *ends)
    assert "without running it" in refused(*cost, f"{own}:build_decider", *ends)


def test_what_cannot_fit_is_refused(tmp_path: Path) -> None:
    """900 million weights: 3.6 GB each for them, gradients, momenta and the largest tensor."""
    own = tmp_path / "own.py"
    own.write_text(OWN)
    cost = ("stalls", "cost", f"{own}:build_large", "--dataset", f"{own}:build_dataset")
    size = ("--batch-size", 5)
    both = (*cost, *size, "--instance", "p2.xlarge", "--instance", "p3.2xlarge")
    found = json.loads(driple(*both, "--json").stdout)
    assert [offer["name"] for offer in found["offers"]] == ["p3.2xlarge"]
    (small,) = found["refused"]
    assert small["name"] == "p2.xlarge"
    assert "at least 14.4 GB" in small["reason"]
    assert "p2.xlarge is refused: each device needs at least 14.4 GB" in driple(*both).stdout
    assert "none of these instances can run the job" in refused(*cost, *size, "--instance", "p2")


def test_a_profile_stands_in_for_a_simulation(tmp_path: Path) -> None:
    """Measured on p3.8xlarge: ten iterations of 0.2 s at 12.24 an hour; it is not simulated."""
    folder = write_profile(tmp_path / "p", TIMES)
    alone = driple("stalls", "cost", "--measured", f"{folder}=p3.8xlarge", "--json")
    (offer,) = json.loads(alone.stdout)["offers"]
    assert json.loads(alone.stdout)["assumptions"] is None
    assert offer["stated_error"] is None
    assert (offer["name"], offer["provenance"]) == ("p3.8xlarge", "measured")
    assert offer["epoch_s"] == pytest.approx(2.0)
    assert offer["epoch_cost"] == pytest.approx(2.0 / 3600 * 12.24)
    both = driple(
        *("stalls", "cost", RESNET50, "--batch-size", 32, "--instance", "p3", "--json"),
        *("--measured", f"{folder}=p3.8xlarge", "--samples", 800),
    )
    offers = {offer["name"]: offer for offer in json.loads(both.stdout)["offers"]}
    assert offers["p3.8xlarge"]["epoch_s"] == pytest.approx(800 / (2 * 4) * 0.2)
    assert offers["p3.2xlarge"]["provenance"] == "simulated"


def test_fit_and_predict_with_what_was_fitted(tmp_path: Path) -> None:
    """Profiles of a link of 0.1 s per 10 MB without overlap; the prediction uses that rate."""
    folders = []
    for i, (count, nbytes) in enumerate([(60, 2e5), (20, 6e6), (160, 1.6e5), (300, 1e4)]):
        ready = np.linspace(0.05, 0.1, count).tolist()
        gradients = {"nbytes": [nbytes] * count, "ready_s": ready, "step_s": 0.1}
        exchange_s = count * (1e-3 + nbytes / 1e8)
        times = {1: [0.1], 2: [0.1 + count * 1e-4], 5: [0.1 + exchange_s]}
        folders.append(
            write_profile(
                tmp_path / f"p{i}", times, model=f"m{i}", network_bits_per_s=8e8,
                gradients=gradients,
            )
        )  # fmt: skip
    links = tmp_path / "links.json"
    done = driple("profile", "links", *folders, "-o", links, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["800M"]["bytes_per_s"] == pytest.approx(1e8, rel=0.05)
    assert found["800M"]["left_out_error_pct"] < 5
    table = driple("profile", "links", *folders)
    assert "error on left-out models" in table.stdout
    predict = (
        "profile",
        "links",
        RESNET50,
        "--setting",
        "V100-R2/ho-NVLink",
        "--bandwidth",
        "800M",
    )
    fitted = json.loads(driple(*predict, "--links", links, "--json").stdout)
    plain = json.loads(driple(*predict, "--json").stdout)
    assert fitted["channels"][1]["bytes_per_s"] == found["800M"]["bytes_per_s"]
    assert fitted["interconnect_stall_s"] == plain["interconnect_stall_s"]
    assert fitted["network_stall_s"] > 1.02e8 / 1e8
    assert "network" in driple(*predict).stdout


def test_data_is_made(tmp_path: Path) -> None:
    done = driple(
        *("jobs", "build", "-o", tmp_path / "images", "--samples", 4, "--set", "image_size=16")
    )
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "images").rglob("*.jpg")]) == 4
    assert driple("jobs", "build", "-o", tmp_path / "t.npy", "--samples", 4).returncode == 0
    assert np.load(tmp_path / "t.npy").shape == (4, 128)


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    assert "no script" in refused("profile", "run", "--output", tmp_path / "o")
    assert "not there" in refused("profile", "run", "--output", tmp_path / "o", "--", "none.py")
    assert "--only" in refused("profile", "run", "--only", "6", "--", "none.py")
    assert "100M" in refused("profile", "run", "--bandwidth", "fast", "--", SCRIPT)
    assert "--set iterations" in refused("profile", "run", "--set", "iterations=0", "--", SCRIPT)
    assert "no stall profile" in refused("profile", "show", tmp_path)
    assert "give a graph" in refused("stalls", "cost")
    assert "--batch-size" in refused("stalls", "cost", RESNET50)
    for job in (RESNET50, "mobilenet_v2"):
        assert "--batch-size must be" in refused("stalls", "cost", job, "--batch-size", 0)
    assert "did you mean resnet50" in refused("stalls", "cost", "resnet51")
    zoo = ("stalls", "cost", "resnet20/cifar10/b32/sgd/sync")
    assert "has batches of 32" in refused(*zoo, "--batch-size", 8)
    cost = ("stalls", "cost", RESNET50, "--batch-size", 32)
    assert "p3.8xlarge" in refused(*cost, "--instance", "p99")
    assert "--machines" in refused(*cost, "--machines", "0")
    steps = ("profile", "run", "--only")
    assert "--only needs numbers from 1 to 5" in refused(*steps, ",", "--", "train.py")
    assert "--only needs numbers from 1 to 5" in refused(*steps, "1-6", "--", "train.py")
    assert "2022-12-31" in refused(*cost, "--on-date", "yesterday")
    assert "FOLDER=INSTANCE" in refused("stalls", "cost", "--measured", "x")
    assert "ring" in refused("profile", "links", RESNET50, "--setting", "V100-P1w2")
    assert "no fitted links" in refused("profile", "links", RESNET50, "--links", tmp_path / "x")
    folder = write_profile(tmp_path / "p", TIMES)
    assert "step 1 with gradients" in refused("profile", "links", folder)


@pytest.mark.parametrize(
    ("measured", "bars"),
    [
        (
            (1, 2, 3, 4, 5),
            [(3, 1, ("interconnect", "prep", "fetch")), (5, 1, ("interconnect", "network"))],
        ),
        ((1, 2), [(2, 1, ("interconnect",))]),
        ((1, 2, 5), [(5, 1, ("interconnect", "network"))]),
        ((2, 4), [(4, 2, ("prep",))]),
        ((1, 4), [(4, 4, ()), (1, 1, ())]),
    ],
)
def test_only_steps_that_were_run_are_drawn(
    measured: tuple[int, ...], bars: list[tuple[int, int, tuple[str, ...]]]
) -> None:
    """A bar for the last step of each chain, and only stalls between measured neighbours."""
    found = bars_of(measured)
    assert sorted((bar.step, bar.base, bar.stalls) for bar in found) == sorted(bars)


def test_the_picture_names_the_steps_that_were_run(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "p", {1: [0.1], 2: [0.15]})
    picture = tmp_path / "p.svg"
    assert driple("profile", "show", folder, "--plot", picture).returncode == 0
    text = picture.read_text()
    assert "all devices of a machine" in text
    assert "real data" not in text
    assert "several machines" not in text
