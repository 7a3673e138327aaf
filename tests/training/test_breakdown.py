"""Where the error is: by hand, on folds that are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from driple.dataset import Dataset
from driple.errors import ConfigError
from driple.targets import TARGET_NAMES
from driple.training.arena import ALL, ArenaConfig, ArenaResult, Fold
from driple.training.breakdown import break_down
from driple.training.metrics import score
from tests.dataset.examples import synthetic_dataset

DATASET = synthetic_dataset(6)
REPEATS = {
    "workloads": 2,
    "smape_pct": {**dict.fromkeys(TARGET_NAMES, 5.0), "iteration_time": 4.0},
    "smape_pct_by_workload": {DATASET.workloads[0]: 60.0, "elsewhere": 20.0},
}


def result_of(factors: dict[str, list[float]], about: dict[str, Any] | None = None) -> ArenaResult:
    """Every workload predicted as its label times a factor, one for each seed."""
    data: Dataset = replace(DATASET, about={"repeatability": REPEATS} if about is None else about)
    labels = {item.workload: item.targets.flat for item in data.examples}
    folds = []
    for seed in range(max(map(len, factors.values()))):
        rows = {
            name: labels[name] * values[seed]
            for name, values in factors.items()
            if seed < len(values)
        }
        true = np.array([labels[name] for name in rows])
        scores = score(
            np.array(list(rows.values())),
            true,
            true_times_s=np.ones(len(rows)),
            train_labels=true,
        )
        folds.append(
            Fold(
                method="made up",
                seed=seed,
                family="",
                scores=scores,
                validation=None,
                train_seconds=0.0,
                num_epochs=0,
                best_epoch=0,
                stopped_by="fit",
                predictions={name: row.tolist() for name, row in rows.items()},
            )
        )
    return ArenaResult(
        config=ArenaConfig(methods=("made up",), seeds=tuple(range(len(folds)))),
        dataset=data,
        fingerprint="",
        folds=tuple(folds),
        presets={},
    )


def test_a_perfect_method_has_no_error_anywhere() -> None:
    """All zeros, and error over floor is 0."""
    found = break_down(result_of({name: [1.0] for name in DATASET.workloads}), "made up")
    assert found.by_family.max() == 0
    assert {row.ratio for row in found.over_floor} == {0.0}
    assert {item.smape_pct for item in found.worst} == {0.0}


def test_errors_by_hand() -> None:
    """Three times the label is 100 % off, and so is a third of it: families, floor, the worst."""
    first, second = DATASET.workloads[:2]
    factors = {name: [1.0] for name in DATASET.workloads} | {first: [3.0, 1 / 3], second: [3.0]}
    found = break_down(result_of(factors), "made up")
    by_family = dict(zip(found.families, found.by_family.T.tolist(), strict=True))
    # Three workloads each; the first was tested twice, and each test counts.
    assert by_family["chain"] == pytest.approx([50.0] * 13)
    assert by_family["branch"] == pytest.approx([100 / 3] * 13)
    assert found.num_workloads == (3, 3)
    rows = {row.name: row for row in found.over_floor}
    assert list(rows) == [*TARGET_NAMES, ALL, "iteration_time"]
    assert rows[ALL].smape_pct == pytest.approx(300 / 7)
    assert rows[ALL].ratio == pytest.approx(300 / 7 / 5)
    assert rows["iteration_time"].ratio == pytest.approx(300 / 7 / 4)
    assert {item.workload for item in found.worst[:2]} == {first, second}
    worst = {item.workload: item for item in found.worst}
    assert worst[second].predicted_time_s == pytest.approx(3 * worst[second].time_s)
    assert worst[first].num_tested == 2
    json.dumps(found.to_json_dict(), allow_nan=False)


def test_the_reason_follows_from_the_repeats() -> None:
    """Its own runs where there are some; else whether any workload repeats that badly."""
    first, second, third = DATASET.workloads[:3]
    factors = {first: [3.0], second: [3.0], third: [9.0]}
    worst = {item.workload: item for item in break_down(result_of(factors), "made up").worst}
    assert worst[first].reason == "label noise: its own runs differ by 60 %"
    assert worst[first].repeat_smape_pct == 60.0
    assert worst[second].reason.startswith("may be label noise: runs of 1 of 2 repeated")
    assert worst[third].reason.startswith("model: no repeated workload's runs differ by half")
    assert worst[third].repeat_smape_pct is None


def test_without_repeats_there_is_no_floor() -> None:
    """Nothing is divided by, and no reason is made up."""
    found = break_down(result_of({DATASET.workloads[0]: [3.0]}, about={}), "made up")
    assert {row.floor_pct for row in found.over_floor} == {None}
    assert {row.ratio for row in found.over_floor} == {None}
    assert found.worst[0].reason == "unknown: nothing ran more than once"
    assert found.num_repeated == 0


def test_a_method_without_folds_is_refused() -> None:
    """The line tells how to make them."""
    with pytest.raises(ConfigError, match="no fold of 'trees'; run driple evaluate --where trees"):
        break_down(result_of({DATASET.workloads[0]: [1.0]}), "trees")
