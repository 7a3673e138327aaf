"""What the source of a transfer has learned: from the folder of its run, or from seed 0."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from driple.dataset import write_dataset
from driple.dataset.split import random_split
from driple.evaluation.leakage import Leakage, learned_tests
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.inspector.trained_on import Source, TrainedOn
from tests.dataset.examples import synthetic_dataset

ROOT = Path(__file__).parents[2]
DATA = replace(synthetic_dataset(30), name="old")


def parts(seed: int) -> tuple[set[str], set[str]]:
    """Names of the training and of the test part."""
    split = random_split(DATA.workloads, seed)
    return {DATA.workloads[i] for i in split.train}, {DATA.workloads[i] for i in split.test}


def source(**facts: Any) -> Checkpoint:
    """An inspector that tells this of its training."""
    some = load_checkpoint(ROOT / "checkpoints/CPU-P1w2_ho-200M/default.safetensors")
    usual = {"data_set": "old", "num_workloads": 30, "num_train": 18, "fingerprint": "f"}
    return replace(some, trained_on=TrainedOn(**{**usual, **facts}))


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Where data sets are looked for: an empty folder, and one that has it."""
    write_dataset(DATA, tmp_path / "sets" / "old")
    return [tmp_path / "none", tmp_path / "sets"]


def test_the_folder_of_its_run_tells_what_it_learned(tmp_path: Path) -> None:
    """Whatever the seed was; a folder of another run tells nothing."""
    train, tested = parts(3)[0], parts(1)[1]
    run = {"data_set": {"fingerprint": "f"}, "split": {"train": sorted(train)}}
    (tmp_path / "config.json").write_text(json.dumps({"run": run}))
    file = tmp_path / "checkpoint.safetensors"
    leakage = learned_tests(source(), file, tested, [])
    assert leakage == Leakage(tested=6, learned=len(train & tested), recorded=True)
    assert learned_tests(source(), file, parts(3)[1], []) == replace(leakage, learned=0)
    for other in ({"fingerprint": "g"}, {"num_train": 10}):
        assert learned_tests(source(**other), file, tested, []) is None


def test_without_a_record_the_split_is_taken_for_that_of_seed_0(roots: list[Path]) -> None:
    """The data set is found by name and size; more learned than that split has, may be all."""
    file, (train, own_tests), tested = Path("x.safetensors"), parts(0), parts(1)[1]
    learned = len(train & tested)
    assert learned > 0
    leakage = learned_tests(source(), file, tested, roots)
    assert leakage == Leakage(tested=6, learned=learned, recorded=False)
    assert learned_tests(source(), file, own_tests, roots) == replace(leakage, learned=0)
    assert learned_tests(source(num_train=20), file, own_tests, roots) == replace(
        leakage, learned=6
    )
    assert learned_tests(source(num_workloads=31), file, tested, roots) is None
    assert learned_tests(source(data_set="lost"), file, tested, roots) is None


def test_an_inspector_knows_what_it_was_transferred_from_knew(
    roots: list[Path], tmp_path: Path
) -> None:
    """Its own labels, and those of the inspector before it."""
    run = {"data_set": {"fingerprint": "f"}, "split": {"train": ["mine"]}}
    (tmp_path / "config.json").write_text(json.dumps({"run": run}))
    origin = Source(data_set="old", num_workloads=30)
    carried = source(data_set="new", num_train=1, transferred_from=origin)
    leakage = learned_tests(carried, tmp_path / "c.safetensors", {"mine", *parts(1)[1]}, roots)
    assert leakage == Leakage(tested=7, learned=1 + len(parts(0)[0] & parts(1)[1]), recorded=False)
