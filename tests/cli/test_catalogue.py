"""`driple jobs` and its names: what cannot be built is told before TensorFlow is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_main import ROOT, driple, refused


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nmt_small/imagenet/b64/sgd/sync", "nmt_small reads text, and imagenet holds images"),
        ("resnet50/europarl/b64/sgd/sync", "resnet50 reads images, and europarl holds text"),
    ],
)
def test_a_model_that_does_not_read_the_data_set_is_refused(
    name: str, reason: str, tmp_path: Path
) -> None:
    """By every command that would build it; data sets that fit are named, nothing is written."""
    out = tmp_path / "out"
    for command in (
        ("jobs", "build", name, "-o", out),
        ("measure", name, "-o", out),
        ("trace", "run", name, "-o", out),
    ):
        line = refused(*command)
        assert reason in line
        assert "choose a data set of" in line
    assert not out.exists()


def test_a_name_that_is_no_workload_gets_the_nearest(tmp_path: Path) -> None:
    """The catalogue and a data set agree on what is near."""
    out = ("-o", tmp_path / "graph.pb")
    assert "did you mean resnet50/imagenet/" in refused("jobs", "build", "resnet50", *out)
    wrong = "resnet20/cifar10/b24/adam/synch"
    assert "did you mean resnet20/cifar10/b24/adam/sync" in refused("jobs", "build", wrong, *out)
    folder = ROOT / "datasets/settings/CPU-P1w2_ho-200M"
    for typed in ("resnet20", "resnet20/cifar10"):
        line = refused("data", "show", folder, typed)
        assert "did you mean resnet20/" in line
        assert " or resnet20/" in line


def test_the_papers_spelling_finds_its_workloads() -> None:
    """Upper and lower case count as one."""
    lower, paper = (driple("jobs", "list", name).stdout for name in ("resnet50", "ResNet50"))
    assert lower == paper
    assert "resnet50/imagenet/" in paper


@pytest.mark.parametrize(
    ("typed", "offer"),
    [
        ("nosuch", "driple jobs list shows all"),
        ("ResNet21", "did you mean resnet20, resnet32, "),
        ("resnet20/imagenet", "did you mean resnet20/cifar10/"),
        ("fp15", "did you mean fp16?"),
    ],
)
def test_a_filter_that_fits_nothing_is_refused(typed: str, offer: str) -> None:
    """With what comes near, for people and machines; of one list, by its name."""
    for more in ((), ("--json",)):
        line = refused("jobs", "list", typed, *more)
        assert f"no workload of the catalogue has '{typed}' in its name" in line
        assert offer in line
    assert "no workload of --list cpu has" in refused("jobs", "list", "--list", "cpu", "nchw")


def test_a_whole_list_has_a_folder_of_its_own_and_one_graph_needs_a_file(tmp_path: Path) -> None:
    """The folder is the setting's; what lies there already is looked at first."""
    folder = tmp_path / "graphs" / "V100-P1w2_ho-PCIe"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text("{")
    done = driple("jobs", "build", "--list", "paper", "--setting", "V100-P1w2", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot read graphs/V100-P1w2_ho-PCIe/index.json" in done.stderr
    assert "graphs/SETTING" in driple("jobs", "build", "--help").stdout
    assert "give -o" in refused("jobs", "build", "lenet/mnist/b2/sgd/sync", cwd=tmp_path)
    assert "engine" in refused("jobs", "build", "--list", "cpu", "--set", "engine=slurm")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["index.json"]
