"""What can be compared on a data set, and one line for what cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.dataset.lookup import StoredLabels
from driple.errors import ConfigError
from driple.evaluation.methods import choose_methods
from tests.dataset.examples import SETTING, grouped_dataset, of_setting, synthetic_dataset

DATASET = synthetic_dataset()
LABELS = StoredLabels(SETTING, {item.workload: item.targets.flat for item in DATASET.examples})
LEARNERS = {"knn", "trees", "forest"}


def test_all_is_all_that_applies() -> None:
    """Baselines first, presets last; the simulator where its labels are there."""
    chosen = choose_methods(DATASET, simulated=LABELS)
    assert chosen.methods == ("mean", "knn", "trees", "forest", "simulator", "paper", "default")
    assert chosen.left_out.keys() == {"transferred"}
    assert "give the folder of its data set, --set source=FOLDER" in chosen.left_out["transferred"]
    without = choose_methods(DATASET)
    assert set(chosen.methods) - set(without.methods) == {"simulator"}
    assert "no simulated labels of CPU-P1w2/ho-200M" in without.left_out["simulator"]
    assert "--set simulated=FOLDER" in without.left_out["simulator"]


def test_names_keep_their_order() -> None:
    """Blanks after commas do no harm."""
    assert choose_methods(DATASET, "trees, mean").methods == ("trees", "mean")


def test_the_simulator_does_not_judge_its_own_labels() -> None:
    """On a simulated data set it would always be right."""
    simulated = replace(
        DATASET,
        examples=tuple(replace(item, label_source="simulated") for item in DATASET.examples),
    )
    left_out = choose_methods(simulated, simulated=LABELS).left_out
    assert left_out["simulator"] == "the simulator made its labels"


def test_an_inspector_comes_from_another_setting() -> None:
    """Not from its own, and not from graphs of which only the groups are known."""
    other = of_setting(DATASET, "CPU-P2w2/ho-200M")
    assert choose_methods(DATASET, source=other).methods[-1] == "transferred"
    own = choose_methods(DATASET, source=DATASET).left_out["transferred"]
    assert own == "--set source=synthetic is of the same setting; give another"
    grouped = of_setting(grouped_dataset(), "CPU-P2w2/ho-200M")
    assert "groups alone" in choose_methods(DATASET, source=grouped).left_out["transferred"]


def test_groups_have_no_summaries() -> None:
    """The public Driple data: only the mean and the inspectors are compared."""
    chosen = choose_methods(grouped_dataset())
    assert set(chosen.left_out) >= LEARNERS
    assert {"mean", "paper", "default"} <= set(chosen.methods)
    assert all("groups alone" in chosen.left_out[name] for name in LEARNERS)


@pytest.mark.parametrize(
    ("against", "line"),
    [
        ("best", "--against: 'best' is none of all, mean, knn"),
        ("mean,", "--against: '' is none of all"),
        ("simulator", "--against: simulator cannot be compared on synthetic: no simulated labels"),
    ],
)
def test_a_name_that_does_not_apply_is_refused(against: str, line: str) -> None:
    """What is asked for by name is never left out in silence."""
    with pytest.raises(ConfigError, match=line):
        choose_methods(DATASET, against)
    with pytest.raises(ConfigError, match="trees cannot be compared on synthetic: its graphs"):
        choose_methods(grouped_dataset(), "mean,trees")


def test_other_simulated_labels_are_refused() -> None:
    """Of another setting, or without some of the workloads."""
    elsewhere = StoredLabels("V100-P1w2/ho-PCIe", LABELS.targets)
    with pytest.raises(ConfigError, match=r"are of V100-P1w2/ho-PCIe, needed is CPU-P1w2/ho-200M"):
        choose_methods(DATASET, "simulator", simulated=elsewhere)
    first = DATASET.workloads[0]
    fewer = {name: row for name, row in LABELS.targets.items() if name != first}
    with pytest.raises(ConfigError, match=f"1 of its workloads were not simulated.* {first}"):
        choose_methods(DATASET, "simulator", simulated=StoredLabels(SETTING, fewer))
