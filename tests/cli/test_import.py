"""What others published, from file to inspector: `driple data import`, `driple train` on it."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from driple.dataset.store import read_dataset
from driple.inspector.checkpoint import load_checkpoint
from driple.training.authors import read_authors_weights
from driple.training.config import preset_named
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused
from tests.dataset import test_perftable, test_released
from tests.training import test_authors

GROUPS = test_authors.GROUPS
SETTING = "V100-P1w2/ho-PCIe"
EPOCH = ("--set", "max_epochs=1", "--set", "threads=1", "--json")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of a file of the form of the public ones; 12 workloads of 8 groups."""
    folder = tmp_path_factory.mktemp("imported")
    file = test_released.saved(folder, test_released.content(GROUPS))
    done = driple("data", "import", file, "--setting", "V100", "-o", folder / "set")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "12 workloads\n"
    again = driple("data", "import", file, "--setting", "V100", "-o", folder / "set", "--json")
    assert errors_of(json.loads(again.stdout)) == []
    assert f"driple train --setting {SETTING} --dataset {folder / 'set'}" in done.stderr
    return folder / "set"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """The state of a model with the names of the authors' one."""
    torch.manual_seed(0)
    return test_authors.saved(tmp_path, test_authors.Authors().state_dict())


def trained(dataset: Path, out: Path, *options: object, setting: str = "V100") -> Path:
    """Train for one epoch; the checkpoint."""
    place = ("--dataset", dataset, "--output", out)
    done = driple("train", "--setting", setting, *place, *EPOCH, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert np.isfinite(result["metrics"]["test_nrmse"])
    return Path(result["checkpoint"])


def refused_after_the_bar(*arguments: object) -> str:
    """As `refused`, of a command that has begun to show its progress."""
    done = driple(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    *others, line = done.stderr.splitlines()
    assert not [other for other in others if other.startswith("driple: ")]
    assert line.startswith("driple: ")
    return line


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_an_inspector_learns_from_an_imported_data_set(
    imported: Path, tmp_path: Path, preset: str
) -> None:
    """On the file's own parts: 7 workloads to train on."""
    checkpoint = load_checkpoint(trained(imported, tmp_path / "run", "--preset", preset))
    assert checkpoint.setting == SETTING
    assert checkpoint.provenance == "published"
    assert checkpoint.trained_on.num_workloads == 12
    assert checkpoint.trained_on.num_train == 7


def test_a_table_of_dripleperf_becomes_a_data_set_that_trains(tmp_path: Path) -> None:
    """Ten jobs, whose graphs lie beside the table."""
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    text = (ROOT / "datasets/examples/resnet20.pbtxt").read_text()
    lines = []
    for i in range(10):
        (graphs / f"job{i}.pbtxt").write_text(text)
        lines += test_perftable.rows(f"job{i}")
    table, out = test_perftable.table(tmp_path, lines), tmp_path / "set"
    done = driple(
        *("data", "import", table, "--graphs", graphs),
        *("--setting", "2080Ti", "-o", out),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "10 workloads\n"
    assert read_dataset(out).setting == "2080Ti-P1w2/ho-PCIe"
    checkpoint = trained(out, tmp_path / "run", setting="2080Ti")
    shown = driple(
        "predict", ROOT / "datasets/examples/resnet20.pbtxt", "--checkpoint", checkpoint, "--json"
    )
    assert shown.returncode == 0, shown.stderr
    (answer,) = json.loads(shown.stdout)["answers"]
    assert answer["setting"] == "2080Ti-P1w2/ho-PCIe"


@pytest.mark.parametrize("kept", ["torch", "pickle"])
def test_what_would_run_is_refused_and_nothing_is_written(tmp_path: Path, kept: str) -> None:
    """In a file of torch, and in a bare pickle."""
    file, out = tmp_path / "evil.pkl", tmp_path / "set"
    what = (test_released.Evil(), {}, {})
    if kept == "torch":
        torch.save(what, file)
    else:
        file.write_bytes(pickle.dumps(what))
    line = refused("data", "import", file, "--setting", "V100", "-o", out)
    assert "evil.pkl" in line
    assert [path.name for path in tmp_path.iterdir()] == ["evil.pkl"]


def test_other_tables_and_half_an_order_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    """A table of something else; a table without graphs; no file; graphs without a table."""
    table, graphs, out = tmp_path / "other.csv", tmp_path / "graphs", tmp_path / "set"
    table.write_text("a,b\n1,2\n")
    graphs.mkdir()
    rest = ("--setting", "V100", "-o", out)
    assert "lacks column" in refused_after_the_bar(
        "data", "import", table, "--graphs", graphs, *rest
    )
    assert "give their folder with --graphs" in refused("data", "import", table, *rest)
    assert "FILE" in refused("data", "import", *rest).upper()
    public = refused("data", "import", tmp_path / "x.pkl", "--graphs", graphs, *rest)
    assert "--graphs apply to a table" in public
    assert not out.exists()


def test_training_begins_with_the_authors_weights(
    imported: Path, tmp_path: Path, weights: Path
) -> None:
    """After one epoch they are nearer to what was given than two drawings are to each other."""
    paper = ("--preset", "paper")
    begun = load_checkpoint(
        trained(imported, tmp_path / "begun", *paper, "--set", f"init={weights}")
    )
    drawn = load_checkpoint(trained(imported, tmp_path / "drawn", *paper))
    given = read_authors_weights(weights, preset_named("paper").inspector, begun.num_groups)

    def apart(checkpoint: object) -> float:
        return max(
            float(np.abs(checkpoint.weights[name] - weight.numpy()).max())  # type: ignore[attr-defined]
            for name, weight in given.items()
        )

    assert apart(begun) < 0.05
    assert apart(drawn) > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"conv_layers.1.b": torch.zeros(3)}, "has shape (3,), needed is (64,)"),
        ({"more": torch.ones(1)}, "that ours lacks: more"),
        ({"conv_layers.1.b": test_released.Evil()}, "nothing of it was run"),
    ],
    ids=["shape", "key", "code"],
)
def test_other_weights_are_refused(
    imported: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    """One line, and the folder of the run is left to whoever has the right ones."""
    state = test_authors.Authors().state_dict() | change
    file, out = test_authors.saved(tmp_path, state), tmp_path / "run"
    command = ("train", "--setting", "V100", "--dataset", imported, "--preset", "paper")
    assert words in refused_after_the_bar(
        *command, "--set", f"init={file}", "--output", out, *EPOCH
    )
    assert not out.exists()


def test_the_authors_weights_do_not_fit_preset_default(
    imported: Path, tmp_path: Path, weights: Path
) -> None:
    """The line says which preset they are for."""
    command = ("train", "--setting", "V100", "--dataset", imported, "--set", f"init={weights}")
    assert "preset paper" in refused_after_the_bar(*command, "--output", tmp_path / "run", *EPOCH)
