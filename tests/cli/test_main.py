"""The command line as its users meet it: real files, real checkpoints, nothing stubbed."""

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.answers import by_inspector as inspector_module
from driple.answers import checked as checked_module
from driple.cli.main import _run
from driple.features import FEATURES_VERSION
from driple.graph import READER_VERSION
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from driple.inspector.predict import Prediction
from driple.render.show import print_targets
from driple.trace.targets import RESOURCES, Targets
from driple.units import three_digits
from tests.inspector.examples import checkpoint_of, constant_inspector
from tests.texts import texts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "datasets/examples/resnet50.pbtxt"
MEASURED = ROOT / "datasets/examples/resnet20.pbtxt"
UNHEARD = "V100-P3w3/ho-40G"  # can be simulated, but nobody has
HEAVY = ("torch", "tensorflow", "pandas", "sklearn", "networkx", "matplotlib", "pyarrow")


def driple(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command in this process; what a process of its own would print and return."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(argument) for argument in arguments]
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        status = _run(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def refused(*arguments: object, cwd: Path = ROOT) -> str:
    """Run a command that must be refused: exit status 2, one line, nothing on stdout."""
    done = driple(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = [
        line for line in done.stderr.splitlines() if not line.startswith("driple: no --setting")
    ]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("driple: ")
    return lines[0]


def test_predict_prints_exactly_the_json_of_the_design() -> None:
    """Keys and types; the iteration time is the longer of TX's and RX's burst and gap."""
    done = driple("predict", EXAMPLE, "--setting", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    assert list(whole) == ["question", "answers"]
    (result,) = whole["answers"]
    assert result["setting"] == "CPU-P1w2/ho-200M"
    assert list(result["targets"]) == list(RESOURCES)
    for figures in result["targets"].values():
        assert list(figures) == ["burst_amount", "burst_duration", "idle_duration"]
        for figure in figures.values():
            assert list(figure) == ["value", "interval", "method", "source"]
            assert np.isfinite(figure["value"])
            assert (figure["method"], figure["source"]) == ("inspector", "measured")
    assert list(result["graph"]) == ["nodes", "edges", "groups", "unknown_op_types"]
    assert list(result["checkpoint"]) == [
        "setting",
        "provenance",
        "trained_on",
        "metrics",
        "outdated",
    ]
    assert result["checkpoint"]["provenance"] == "measured"
    periods_s = [
        sum(
            result["targets"][name][figure]["value"]
            for figure in ("burst_duration", "idle_duration")
        )
        for name in ("net_tx", "net_rx")
    ]
    assert result["iteration_time_s"]["value"] == pytest.approx(max(periods_s))


def test_predict_prints_a_table_for_people_and_says_where_it_knows_from() -> None:
    """All four resources, the iteration time, the provenance; notes go to stderr."""
    done = driple("predict", EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step ")
    for word in (*RESOURCES, "\nhow sure  learned from simulated labels, "):
        assert word in done.stdout
    explained = driple("predict", EXAMPLE, "--explain").stdout
    for word in (*RESOURCES, "iteration time", "simulated labels"):
        assert word in explained
    assert "no --setting given" in done.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("V100", "learned from 500 of 832 workloads of V100-P1w2_ho-PCIe; SMAPE"),
        (
            "2080Ti",
            "learned from 240 of 832 workloads of 2080Ti-P1w2_ho-PCIe, transferred from "
            "V100-P1w2/ho-PCIe; SMAPE",
        ),
    ],
)
def test_predict_says_how_many_labels_the_inspector_learned_from(setting: str, words: str) -> None:
    """Not how many its data set has, and where the rest of its knowledge is from."""
    assert words in driple("predict", EXAMPLE, "--setting", setting, "--explain").stdout


def test_ranges_that_are_extrapolated_claim_no_share(tmp_path: Path) -> None:
    """A graph of 77 ops is further from all known ones than any that was left out."""
    tiny, picture = ROOT / "tests/data/graphs/functions.pb.gz", tmp_path / "tiny.svg"
    done = driple("predict", tiny, "--setting", "CPU-P1w2", "--plot", picture)
    assert "whiskers: uncalibrated intervals" in picture.read_text()
    assert done.stdout.startswith("a guess:  between ")
    explained = driple("predict", tiny, "--setting", "CPU-P1w2", "--explain")
    assert "how many of such values lie there is not known" in explained.stdout
    assert "so that they are extrapolated" in done.stderr
    done = driple("predict", tiny, "--setting", "CPU-P1w2", "--json")
    (result,) = json.loads(done.stdout)["answers"]
    assert result["iteration_time_s"]["interval"]["level"] is None


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_predict_loads_nothing_heavy(preset: str) -> None:
    """Neither torch nor TensorFlow nor pandas, scikit-learn, networkx or matplotlib."""
    program = (
        "import sys; from driple.cli.main import _run; "
        f"words = ['predict', {str(MEASURED)!r}, '--setting', 'cpu', '--set', 'preset={preset}']; "
        "status = _run(words); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[] 0"


def test_plot_draws_a_picture(tmp_path: Path) -> None:
    """A PNG of sensible size, and no part file left."""
    done = driple("predict", EXAMPLE, "--setting", "cpu", "--plot", tmp_path / "pattern.png")
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "pattern.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["pattern.png"]


def test_a_gpu_that_is_busier_than_it_can_be_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is printed as it is, and named; a CPU of several cores may exceed 100 %."""
    values = np.array([[126.9, 0.3, 0.2], [80.0, 0.3, 0.2], [300.0, 0.3, 0.2], [300.0, 0.3, 0.2]])
    right = inspector_module.predict

    def busy(*arguments: Any, **more: Any) -> Prediction:
        return replace(right(*arguments, **more), targets=Targets(values))

    monkeypatch.setattr(inspector_module, "predict", busy)
    words = "predicted device_util of 126.9 % exceeds 100 %, the most that a GPU reaches"
    done = driple("predict", EXAMPLE, "--setting", "V100", "--json")
    assert words in done.stderr
    (result,) = json.loads(done.stdout)["answers"]
    assert texts(result["remarks"])[-1] == words
    assert result["targets"]["device_util"]["burst_amount"]["value"] == 126.9
    assert "exceed" not in driple("predict", EXAMPLE, "--setting", "cpu", "--json").stdout


def test_a_guess_is_called_a_guess_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the step time contradicts the closed form; the table comes after."""
    monkeypatch.setattr(checked_module, "allowed_error", lambda *_, **__: 0.0)
    asked = ("predict", EXAMPLE, "--setting", "V100-P1w2", "--method", "inspector")
    done = driple(*asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a guess:  between ")
    assert "\nhow sure  a guess: step time " in done.stdout
    done = driple(*asked, "--explain")
    assert done.returncode == 0, done.stderr
    job, first = done.stdout.splitlines()[:2]
    assert job.startswith("job: ")
    assert first.startswith("a guess for V100-P1w2/ho-PCIe: step time ")
    assert "driple predict JOB --method simulator --setting V100-P1w2/ho-PCIe" in first
    assert "closed form, to compare: step time" in done.stdout
    done = driple(*asked, "--json")
    (result,) = json.loads(done.stdout)["answers"]
    assert len(texts(result["warnings"])) == 1
    interval = result["iteration_time_s"]["interval"]
    assert interval["level"] is None
    assert interval["low"] <= result["closed_form_s"]["value"] <= interval["high"]


def test_impossible_answers_are_refused_by_name(tmp_path: Path) -> None:
    """An inspector that gives -1 for everything: inspector ends in one line, all and auto go on."""
    folder = tmp_path / "checkpoints/V100-P1w2_ho-PCIe"
    folder.mkdir(parents=True)
    negative = checkpoint_of(constant_inspector(-1, 4), 4)
    save_checkpoint(negative, folder / "paper.safetensors")
    asked = (EXAMPLE, "--set", "preset=paper", "--setting", "V100-P1w2")
    line = refused("predict", *asked, "--method", "inspector", cwd=tmp_path)
    assert "of preset paper for V100-P1w2/ho-PCIe has no answer for this graph" in line
    assert "device_util.burst_amount -1 %" in line
    assert "use --set preset=default, or driple predict JOB --method simulator" in line
    (auto,) = json.loads(driple("predict", *asked, "--json", cwd=tmp_path).stdout)["answers"]
    assert auto["method"] == "simulator"
    assert "has no answer for this graph" in auto["reason"]["text"]
    done = driple("predict", *asked, "--method", "all", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["answers"]
    assert "has no answer for this graph" in result["silent"]["inspector"]
    assert "inspector" not in result["methods"]


def test_a_checkpoint_of_another_version_is_named(tmp_path: Path) -> None:
    """On stdout and in the JSON; nothing of it where the versions are equal."""
    file = tmp_path / "c.safetensors"
    shipped = load_checkpoint(ROOT / "checkpoints/V100-P1w2_ho-PCIe/default.safetensors")
    save_checkpoint(replace(shipped, reader_version=1, features_version=1), file)
    words = "was trained with reader version 1 and features version 1, this Driple has reader"
    done = driple("predict", EXAMPLE, "--checkpoint", file)
    assert "; the checkpoint is of another version (--explain)\n" in done.stdout
    done = driple("predict", EXAMPLE, "--checkpoint", file, "--explain")
    assert words in done.stdout
    assert "driple train --setting V100-P1w2/ho-PCIe" in done.stdout
    done = driple("predict", EXAMPLE, "--checkpoint", file, "--json")
    (stored,) = json.loads(done.stdout)["answers"]
    assert words in stored["checkpoint"]["outdated"]["text"]
    own = {"reader_version": READER_VERSION, "features_version": FEATURES_VERSION}
    save_checkpoint(replace(shipped, **own), file)
    assert "version" not in driple("predict", EXAMPLE, "--checkpoint", file).stdout


def test_bursts_longer_than_iterations_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Where NVML's windows hold many iterations a burst is no part of one."""
    rows = [[9.5, 0.823, 0.143], [6.3, 0.009, 0.010], [361.0, 0.003, 0.017], [355.9, 0.003, 0.016]]
    print_targets(Targets(np.array(rows)), 0.019)
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .startswith(
            "a burst and a gap of device_util span 51 iterations: utilisation is counted in windows"
        )
    )
    print_targets(Targets(np.array([rows[1], *rows[1:]])), 0.019)
    assert "span" not in capsys.readouterr().out


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    """Each kind of bad input of the command line: exit status 2 and one line."""
    (tmp_path / "cut.pb").write_bytes(b"\x0a\xff\xff\x03cut")
    (tmp_path / "prose.pbtxt").write_text("this is not a graph\n")
    (tmp_path / "deep.pbtxt").write_text("node { attr { value { list " + "{ func " * 10_000)
    (tmp_path / "empty.pb").write_bytes(b"")
    (tmp_path / "cut.safetensors").write_bytes(b"\x10\x00\x00")
    refused("predict", tmp_path / "cut.pb")
    refused("predict", tmp_path / "prose.pbtxt")
    refused("predict", tmp_path / "deep.pbtxt")
    refused("predict", tmp_path / "empty.pb")
    assert "missing.pb" in refused("predict", tmp_path / "missing.pb")
    refused("predict", tmp_path)
    assert "max" in refused("predict", EXAMPLE, "--set", "max_mib=0.001")
    assert "did you mean V100" in refused("predict", EXAMPLE, "--setting", "V1000")
    unheard = ("--setting", UNHEARD, "--method", "inspector")
    assert "CPU-P1w2/ho-200M" in refused("predict", EXAMPLE, *unheard)
    refused("predict", EXAMPLE, "--checkpoint", tmp_path / "cut.safetensors")
    refused("predict", EXAMPLE, "--set", "preset=papre")
    refused("predict", EXAMPLE, "--plot", tmp_path / "picture.docx")
    refused("predict")
    refused("predict", EXAMPLE, "--no-such-option")
    refused("no-such-command")
    refused("train", "--setting", UNHEARD)
    refused("measure")
    refused("measure", "resnet21/cifar10/b1/sgd/sync")
    refused("jobs", "build", "resnet20", "-o", tmp_path / "graph.pb")
    assert "not both" in refused("jobs", "build", "-o", tmp_path / "graph.pb")
    name = "lenet/mnist/b2/sgd/sync"
    assert "not both" in refused("jobs", "build", name, "--list", "cpu", "-o", tmp_path / "graphs")
    assert "--list" in refused("jobs", "list", "--list", "gpu")
    ring = ("--setting", "V100-R4/ho-PCIe", "-o", tmp_path / "graph.pb")
    assert "parameter server" in refused("jobs", "build", name, *ring)
    refused("data", "list", tmp_path)
    refused("data", "label", tmp_path, "-o", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {
        "cut.pb",
        "prose.pbtxt",
        "deep.pbtxt",
        "empty.pb",
        "cut.safetensors",
    }


def test_ctrl_c_says_that_the_same_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driple.api.predicting.predict", pressed)
    done = driple("predict", EXAMPLE)
    assert done.returncode == 130
    assert done.stderr.endswith("driple: stopped; run the same command again to continue\n")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Writing to /dev/full's file system fails in one line; what was there stays."""
    target = tmp_path / "picture.png"
    target.write_bytes(b"before")
    program = (
        "import resource, signal, sys; from driple.cli.main import _run; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        f"sys.exit(_run(['predict', {str(EXAMPLE)!r}, '--plot', {str(target)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"MPLCONFIGDIR": str(tmp_path / "mpl")},
    )
    assert done.returncode == 2, done.stderr
    assert target.read_bytes() == b"before"


def test_a_place_that_takes_no_picture_gets_one_line(tmp_path: Path) -> None:
    """A folder that is missing, and a folder in place of the file; nothing is left there."""
    (tmp_path / "folder.png").mkdir()
    for target, reason in (("none/a.png", "does not exist"), ("folder.png", "it is a folder")):
        done = driple("predict", EXAMPLE, "--setting", "cpu", "--plot", tmp_path / target)
        assert (done.returncode, done.stdout) == (2, "")
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"driple: --plot {tmp_path / target}: ")
        assert reason in last
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["predict"],
        ["train"],
        ["evaluate"],
        ["measure"],
        ["env"],
        ["plan"],
        ["sweep"],
        ["inspect"],
        ["validate"],
        ["jobs", "build"],
        ["data", "list"],
        ["data", "label"],
        ["profile", "links"],
        ["trace", "run"],
        ["list"],
    ],
)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    """`--help` works everywhere and shows how the command is typed."""
    done = driple(*command, "--help")
    assert done.returncode == 0
    if command:
        assert f"driple {command[0]}" in done.stdout


def test_inspect_and_env_and_list_speak_json() -> None:
    """Machine-readable forms of the small commands."""
    shown = json.loads(driple("inspect", EXAMPLE, "--json").stdout)
    assert shown["nodes_in_file"] >= 3000
    assert shown["op_types"]["Conv2D"] == 53
    assert "CPU-P1w2/ho-200M" in json.loads(driple("env", "--json").stdout)["checkpoints"]
    shown = driple("env").stdout
    assert "inspectors for: " in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    jobs = json.loads(driple("jobs", "list", "--json").stdout)["workloads"]
    assert len(jobs) >= 832
    assert "resnet20/" in driple("jobs", "list", "resnet20").stdout
    assert "conv filter gradient" in driple("inspect", EXAMPLE).stdout


def test_dataset_info_shows_the_shipped_data() -> None:
    """At least 160 workloads of at least ten families."""
    folder = ROOT / "datasets/settings/CPU-P1w2_ho-200M"
    listing = json.loads(driple("data", "list", folder, "--json").stdout)
    assert listing["examples"] >= 160
    assert len(listing["families"]) >= 10
    assert listing["about"]["label_source"] == "measured"
    assert "net_rx.idle_duration" in driple("data", "list", folder).stdout
    name = "resnet20/cifar10/b24/adam/sync"
    label = json.loads(driple("data", "show", folder, name, "--json").stdout)
    assert label["label_source"] == "measured"
    assert label["details"]["optimizer"] == "adam"
    assert (
        f"{three_digits(label['iteration_time_s']['value'])} s"
        in driple("data", "show", folder, name).stdout
    )
    assert "did you mean resnet" in refused("data", "show", folder, "resnet20")


def test_the_command_is_installed_and_jobs_builds_what_inspect_reads(tmp_path: Path) -> None:
    """In processes of their own: TensorFlow's graph mode cannot be undone."""
    graph = tmp_path / "graph.pb.gz"
    command = Path(sys.executable).with_name("driple")
    name = "lenet-x0.25/mnist/b2/sgd/async"
    for arguments in (
        ["jobs", "build", name, "-o", str(graph)],
        ["inspect", str(graph), "--top", "99"],
    ):
        done = subprocess.run(
            [str(command), *arguments], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
    assert "conv filter gradient" in done.stdout
