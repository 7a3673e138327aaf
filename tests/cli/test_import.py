"""What Driple's authors published, from their files to a prediction, on the command line."""

import json
import pickle
from pathlib import Path

import pytest
import torch

from driple.dataset.store import read_dataset
from driple.inspector.checkpoint import load_checkpoint
from tests.cli.test_main import ROOT, driple, refused
from tests.dataset import test_perftable, test_released
from tests.training.test_authors import GROUPS, Authors

SETTING = "V100-P1w2/ho-PCIe"
QUICK = ("--preset", "paper", "--max-epochs", 2, "--threads", 1)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set made of a file of the form of the public one."""
    folder = tmp_path_factory.mktemp("imported")
    file = test_released.saved(folder, test_released.content(GROUPS))
    done = driple("dataset", "import", file, "--setting", SETTING, "-o", folder / "data")
    assert done.returncode == 0, done.stderr
    assert "driple train --setting" in done.stderr
    return folder / "data"


def test_train_works_on_imported_data_and_says_that_it_is_published(
    imported: Path, tmp_path: Path
) -> None:
    command = ("train", "--setting", SETTING, "--dataset", imported, "--out", tmp_path, *QUICK)
    done = driple(*command, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "test_nrmse" in found["metrics"]
    assert load_checkpoint(found["checkpoint"]).provenance == "published"


def test_training_begins_with_the_authors_weights(imported: Path, tmp_path: Path) -> None:
    """Another first loss than with weights of our own."""
    torch.manual_seed(0)
    torch.save(Authors().state_dict(), tmp_path / "model.pkl")
    command = ("train", "--setting", SETTING, "--dataset", imported, *QUICK, "--json")
    own = driple(*command, "--out", tmp_path / "own")
    theirs = driple(*command, "--out", tmp_path / "theirs", "--init", tmp_path / "model.pkl")
    assert (own.returncode, theirs.returncode) == (0, 0), own.stderr + theirs.stderr
    losses = [
        json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[0])
        for name in ("own", "theirs")
    ]
    assert losses[0] != losses[1]


class Evil:
    """Unpickled, it would leave a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


def test_files_that_would_run_something_are_refused_and_nothing_is_written(
    imported: Path, tmp_path: Path
) -> None:
    file, mark = tmp_path / "evil.pkl", tmp_path / "was-here"
    file.write_bytes(pickle.dumps(Evil(mark)))
    refused("dataset", "import", file, "--setting", SETTING, "-o", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    done = driple(
        *("train", "--setting", SETTING, "--dataset", imported, "--out", tmp_path / "run"),
        *(*QUICK, "--init", file),
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("driple: ")
    assert not mark.exists()


def test_weights_of_another_form_are_refused(imported: Path, tmp_path: Path) -> None:
    state = Authors().state_dict()
    state.pop("gru.gru.weight_hh_l0")
    torch.save(state, tmp_path / "model.pkl")
    done = driple(
        *("train", "--setting", SETTING, "--dataset", imported, "--out", tmp_path / "run"),
        *(*QUICK, "--init", tmp_path / "model.pkl"),
    )
    assert done.returncode == 2
    assert "gru.gru.weight_hh_l0" in done.stderr.splitlines()[-1]


def test_a_table_of_driple_perf_becomes_a_data_set(tmp_path: Path) -> None:
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    (graphs / "job1.pbtxt").write_text(test_perftable.GRAPH)
    table = test_perftable.table(tmp_path, test_perftable.rows("job1"))
    command = ("dataset", "import", "--perf", table, "--graphs", graphs, "--setting", "2080Ti")
    done = driple(*command, "-o", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "1 workloads" in done.stdout
    (made,) = read_dataset(tmp_path / "data").examples
    assert made.targets.to_dict()["device_util"]["burst_duration"] == 1.5
    assert "belong together" in refused("dataset", "import", "--perf", table, "--setting", "V100")


def test_one_source_is_needed() -> None:
    assert "either" in refused("dataset", "import", "--setting", SETTING, cwd=ROOT)
