"""`driple profile`, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from driple.plot.stalls import bars_of
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused
from tests.profiler.profiles import write_profile

RESNET50 = ROOT / "datasets/examples/resnet50.pbtxt"
SCRIPT = ROOT / "scripts/checks/file_sizes.py"
TIMES = {1: [0.1, 0.1], 2: [0.15, 0.15], 3: [0.4, 0.4], 4: [0.2, 0.2]}


def test_run_profiles_a_script_and_a_second_run_shows_it_again(tmp_path: Path) -> None:
    """One device, its steps with and without synthetic data; step 1 and 5 are named as left out."""
    command = [
        *("profile", "run", "-o", tmp_path / "out", "--devices", 1, "--set", "steps=1,2,5"),
        *(
            "--set",
            "iterations=2",
            "--set",
            "warmup=3",
            "--set",
            "repeats=1",
            "--set",
            "tries=1",
            "--json",
        ),
        *("--", "-m", "driple.profiler.train", "bert-tiny", "--length", 8, "--batch-size", 2),
    ]
    done = driple(*command)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["steps"]) == {"2"}
    assert set(result["left_out"]) == {"1", "5"}
    assert result["steps"]["2"]["iteration_time_s"]["value"] > 0
    assert errors_of(result) == []
    assert result["overhead_pct"] < 5
    again = driple(*command)
    assert json.loads(again.stdout)["steps"] == result["steps"]
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
    assert "other programs used up to 1.5 cores during steps 1, 2, 3, 4" in done.stderr
    assert "the hypervisor gave other machines up to 0.4 cores" in done.stderr
    assert (tmp_path / "p.png").stat().st_size > 10_000


def test_a_profile_of_another_format_is_refused(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "p", TIMES)
    about = json.loads((folder / "profile.json").read_text())
    (folder / "profile.json").write_text(json.dumps({**about, "format": 1}))
    done = driple("profile", "show", folder)
    assert done.returncode == 2
    assert "format 1, and this version reads 2; measure anew" in done.stderr


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
    done = driple("profile", "links", *folders, "--links", links, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert errors_of(result) == []
    assert result["links"]["800M"]["bytes_per_s"] == pytest.approx(1e8, rel=0.05)
    assert result["links"]["800M"]["left_out_error_pct"] < 5
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
    assert fitted["channels"][1]["bytes_per_s"] == result["links"]["800M"]["bytes_per_s"]
    assert fitted["interconnect_stall_s"] == plain["interconnect_stall_s"]
    assert fitted["network_stall_s"]["value"] > 1.02e8 / 1e8
    assert "network" in driple(*predict).stdout


def test_data_is_made(tmp_path: Path) -> None:
    done = driple(
        *("jobs", "build", "-o", tmp_path / "images", "--samples", 4, "--set", "image_size=16"),
        "--json",
    )
    assert errors_of(json.loads(done.stdout)) == []
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "images").rglob("*.jpg")]) == 4
    assert driple("jobs", "build", "-o", tmp_path / "t.npy", "--samples", 4).returncode == 0
    assert np.load(tmp_path / "t.npy").shape == (4, 128)


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    assert "no script" in refused("profile", "run", "--output", tmp_path / "o")
    assert "not there" in refused("profile", "run", "--output", tmp_path / "o", "--", "none.py")
    assert "--set steps" in refused("profile", "run", "--set", "steps=6", "--", "none.py")
    assert "100M" in refused("profile", "run", "--set", "bandwidth=fast", "--", SCRIPT)
    assert "--set iterations" in refused("profile", "run", "--set", "iterations=0", "--", SCRIPT)
    assert "no stall profile" in refused("profile", "show", tmp_path)
    for steps in (",", "1-6"):
        line = refused("profile", "run", "--set", f"steps={steps}", "--", "train.py")
        assert "--set steps needs numbers from 1 to 5" in line
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
    drawn = bars_of(measured)
    assert sorted((bar.step, bar.base, bar.stalls) for bar in drawn) == sorted(bars)


def test_the_picture_names_the_steps_that_were_run(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "p", {1: [0.1], 2: [0.15]})
    picture = tmp_path / "p.svg"
    assert driple("profile", "show", folder, "--plot", picture).returncode == 0
    text = picture.read_text()
    assert "all devices of a machine" in text
    assert "real data" not in text
    assert "several machines" not in text
