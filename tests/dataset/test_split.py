"""Splits: sizes, disjoint parts, whole families, and nothing that depends on the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.dataset import Split, family_splits, random_split
from driple.errors import DatasetError
from tests.dataset.examples import example, synthetic_dataset

WORKLOADS = st.lists(st.text(min_size=1, max_size=6), min_size=3, max_size=60, unique=True)


def rows_of(split: Split) -> list[int]:
    return np.concatenate([split.train, split.validation, split.test]).tolist()


@settings(max_examples=100)
@given(WORKLOADS, st.integers(0, 1000))
def test_random_parts_are_disjoint_complete_and_of_the_right_size(
    workloads: list[str], seed: int
) -> None:
    """Each row is in exactly one part; 20 % each are held out, and no part is empty."""
    split = random_split(workloads, seed)
    assert sorted(rows_of(split)) == list(range(len(workloads)))
    assert len(split.test) == len(split.validation) == max(1, round(0.2 * len(workloads)))
    assert len(split.train) >= 1


@settings(max_examples=50)
@given(WORKLOADS, st.integers(0, 1000))
def test_the_order_of_rows_changes_nothing(workloads: list[str], seed: int) -> None:
    """The same workloads are held out wherever they stand."""
    turned = workloads[::-1]
    held_out = {workloads[i] for i in random_split(workloads, seed).test}
    assert {turned[i] for i in random_split(turned, seed).test} == held_out


def test_a_hundred_workloads_are_split_60_20_20() -> None:
    """The shares of the paper's split; another seed gives another split."""
    names = [f"w{i}" for i in range(100)]
    split, other = random_split(names, 0), random_split(names, 1)
    assert (len(split.train), len(split.validation), len(split.test)) == (60, 20, 20)
    assert split.test.tolist() != other.test.tolist()
    assert split.test.tolist() == random_split(names, 0).test.tolist()


def test_each_family_is_held_out_whole() -> None:
    """The test part is the family, all of it and nothing else; the rest is split 80 / 20."""
    dataset = synthetic_dataset(20)
    splits = family_splits(dataset.examples, seed=3)
    assert [family for family, _ in splits] == ["branch", "chain"]
    for family, split in splits:
        inside = [i for i, one in enumerate(dataset.examples) if one.family == family]
        assert split.test.tolist() == inside
        assert sorted(rows_of(split)) == list(range(20))
        assert (len(split.train), len(split.validation)) == (8, 2)


def test_too_few_workloads_are_refused() -> None:
    """A split with an empty part would be no split."""
    with pytest.raises(DatasetError, match="2 workload"):
        random_split(["a", "b"], 0)
    with pytest.raises(DatasetError, match="not unique"):
        random_split(["a", "b", "b"], 0)
    with pytest.raises(DatasetError, match="1 model family"):
        family_splits([example("a"), example("b")], 0)
    with pytest.raises(DatasetError, match="only 1 workload is not of family 'chain'"):
        family_splits([example("a"), example("b", family="x")], 0)
