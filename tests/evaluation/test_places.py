"""Folds by seed, or by seed and family, each with its rows."""

from __future__ import annotations

from driple.dataset import random_split
from driple.evaluation.benchmark import BenchmarkConfig
from driple.evaluation.places import places_of
from tests.dataset.examples import synthetic_dataset

DATASET = synthetic_dataset()


def test_a_random_split_is_a_fold_of_each_seed() -> None:
    places = list(places_of(DATASET, BenchmarkConfig(methods=("mean",), seeds=(3, 5))))
    assert [place.name for place in places] == ["seed 3", "seed 5"]
    for place, seed in zip(places, (3, 5), strict=True):
        assert place.split.test.tolist() == random_split(DATASET.workloads, seed).test.tolist()


def test_each_family_is_held_out_once_a_seed() -> None:
    """Its workloads, and no others, are the test part."""
    config = BenchmarkConfig(methods=("mean",), split="family", seeds=(0, 1))
    places = list(places_of(DATASET, config))
    families = {example.family for example in DATASET.examples}
    assert sorted((place.seed, place.family) for place in places) == sorted(
        (seed, family) for seed in (0, 1) for family in families
    )
    for place in places:
        assert place.name == f"{place.family}, seed {place.seed}"
        tested = {DATASET.examples[row].family for row in place.split.test}
        assert tested == {place.family}
