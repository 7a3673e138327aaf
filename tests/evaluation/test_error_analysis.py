"""Where the error is: by hand, on folds that are made up."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from driple.codec import to_dict
from driple.dataset import Dataset
from driple.errors import ConfigError
from driple.evaluation.benchmark import ALL, BenchmarkConfig, BenchmarkResult, Fold
from driple.evaluation.error_analysis import break_down
from driple.trace.provenance import Provenance, Repeatability
from driple.trace.targets import TARGET_NAMES
from driple.training.metrics import score
from tests.dataset.examples import synthetic_dataset

DATASET = synthetic_dataset(6)
REPEATS = Repeatability(
    workloads=2,
    smape_pct={**dict.fromkeys(TARGET_NAMES, 5.0), "iteration_time": 4.0},
    smape_pct_by_workload={DATASET.workloads[0]: 60.0, "elsewhere": 20.0},
)


def result_of(factors: dict[str, list[float]], about: Provenance | None = None) -> BenchmarkResult:
    """Every workload predicted as its label times a factor, one for each seed."""
    data: Dataset = replace(DATASET, about=about or Provenance(repeatability=REPEATS))
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
    return BenchmarkResult(
        config=BenchmarkConfig(methods=("made up",), seeds=tuple(range(len(folds)))),
        dataset=data,
        fingerprint="",
        folds=tuple(folds),
        presets={},
    )


def test_a_perfect_method_has_no_error_anywhere() -> None:
    """All zeros, and error over floor is 0."""
    breakdown = break_down(result_of({name: [1.0] for name in DATASET.workloads}), "made up")
    assert breakdown.by_family.max() == 0
    assert {row.ratio for row in breakdown.over_floor} == {0.0}
    assert {item.smape_pct for item in breakdown.worst} == {0.0}


def test_errors_by_hand() -> None:
    """Three times the label is 100 % off, and so is a third of it: families, floor, the worst."""
    first, second = DATASET.workloads[:2]
    factors = {name: [1.0] for name in DATASET.workloads} | {first: [3.0, 1 / 3], second: [3.0]}
    breakdown = break_down(result_of(factors), "made up")
    by_family = dict(zip(breakdown.families, breakdown.by_family.T.tolist(), strict=True))
    # Three workloads each; the first was tested twice, and each test counts.
    assert by_family["chain"] == pytest.approx([50.0] * 13)
    assert by_family["branch"] == pytest.approx([100 / 3] * 13)
    assert breakdown.num_workloads == (3, 3)
    rows = {row.name: row for row in breakdown.over_floor}
    assert list(rows) == [*TARGET_NAMES, ALL, "iteration_time"]
    assert rows[ALL].smape_pct == pytest.approx(300 / 7)
    assert rows[ALL].ratio == pytest.approx(300 / 7 / 5)
    assert rows["iteration_time"].ratio == pytest.approx(300 / 7 / 4)
    assert {item.workload for item in breakdown.worst[:2]} == {first, second}
    worst = {item.workload: item for item in breakdown.worst}
    assert worst[second].predicted_time_s == pytest.approx(3 * worst[second].time_s)
    assert worst[first].num_tested == 2
    json.dumps(to_dict(breakdown.to_json_dict()))


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


def about_repeats(of: dict[str, float]) -> Provenance:
    """What a data set records, with these workloads as those that ran more than once."""
    return Provenance(repeatability=replace(REPEATS, smape_pct_by_workload=of))


def test_a_family_that_leans_is_the_model() -> None:
    """Noise has no direction: who errs as the whole family does is not told of label noise."""
    chain, branch = (
        [item.workload for item in DATASET.examples if item.family == family]
        for family in ("chain", "branch")
    )
    factors = dict(zip(chain, ([1.2], [1.3], [3.0]), strict=True))
    factors |= dict(zip(branch, ([0.9], [1.1], [0.4]), strict=True))
    breakdown = break_down(
        result_of(factors, about_repeats({chain[0]: 1.0, "other": 90.0})), "made up"
    )
    reasons = {item.workload: item.reason for item in breakdown.worst}
    leans = "the family is predicted 30 % too slow (median)"
    assert reasons[chain[2]] == reasons[chain[1]] == f"model: {leans}"
    assert reasons[chain[0]] == f"model: its own runs differ by 1 %; {leans}"
    assert reasons[branch[2]].startswith("may be label noise: runs of 1 of 2 repeated")
    fast = {name: [1 / value[0]] for name, value in factors.items()}
    breakdown = break_down(result_of(fast, about_repeats({"other": 90.0})), "made up")
    reasons = {item.workload: item.reason for item in breakdown.worst}
    assert reasons[chain[2]] == "model: the family is predicted 23 % too fast (median)"


def test_who_errs_the_other_way_is_not_told_of_the_familys_leaning() -> None:
    """Nor is one whose family leans by no more than repeats differ by (4 % here)."""
    chain = [item.workload for item in DATASET.examples if item.family == "chain"]
    about = about_repeats({"other": 90.0})
    other_way = dict(zip(chain, ([1.5], [1.5], [0.5]), strict=True))
    small = dict(zip(chain, ([1.03], [1.03], [3.0]), strict=True))
    for factors in (other_way, small):
        breakdown = break_down(result_of(factors, about), "made up")
        reasons = {item.workload: item.reason for item in breakdown.worst}
        assert reasons[chain[2]].startswith("may be label noise")


def test_repeats_of_the_family_count_before_those_of_others() -> None:
    """Others repeat badly, its own family does not."""
    chain = [item.workload for item in DATASET.examples if item.family == "chain"]
    about = about_repeats({chain[0]: 5.0, chain[1]: 8.0, "other": 90.0})
    breakdown = break_down(result_of({chain[2]: [3.0]}, about), "made up")
    assert breakdown.worst[0].reason == (
        "model: runs of the 2 repeated workloads of its family differ by 8 % at most"
    )


def test_without_repeats_there_is_no_floor() -> None:
    """Nothing is divided by, and no reason is made up."""
    breakdown = break_down(
        result_of({DATASET.workloads[0]: [3.0]}, about=Provenance(licence="none")), "made up"
    )
    assert {row.floor_pct for row in breakdown.over_floor} == {None}
    assert {row.ratio for row in breakdown.over_floor} == {None}
    assert breakdown.worst[0].reason == "unknown: nothing ran more than once"
    assert breakdown.num_repeated == 0


def test_simulated_labels_have_no_noise() -> None:
    """Whatever the error is, it is the model; where a whole family leans, the reason says so."""
    chain, branch = (
        [item.workload for item in DATASET.examples if item.family == family]
        for family in ("chain", "branch")
    )
    factors = dict(zip(chain, ([1.2], [1.3], [3.0]), strict=True))
    factors |= dict(zip(branch, ([0.9], [1.1], [0.4]), strict=True))
    result = result_of(factors, about=Provenance(licence="none"))
    examples = tuple(replace(item, label_source="simulated") for item in DATASET.examples)
    result = replace(result, dataset=replace(result.dataset, examples=examples))
    reasons = {item.workload: item.reason for item in break_down(result, "made up").worst}
    assert reasons[chain[2]] == "model: the family is predicted 30 % too slow (median)"
    assert reasons[branch[2]] == "model: simulated labels are the same each time"


def test_a_method_without_folds_is_refused() -> None:
    """The line tells how to make them."""
    with pytest.raises(
        ConfigError, match="no fold of 'trees'; run driple evaluate --against trees"
    ):
        break_down(result_of({DATASET.workloads[0]: [1.0]}), "trees")
